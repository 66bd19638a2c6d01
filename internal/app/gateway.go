package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"oauth-server/internal/config"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/envoy"
	"oauth-server/internal/gateway/introspection"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/upstream"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

// becomeGateway serves clients the upstream, or serves other proxies a Decider, instead of the
// endpoints of this server.
func (e *edge) becomeGateway(l *limiting) error {
	f := e.base
	e.limiter = limiter.New(limiter.Options{
		Counters: l.counters, Policies: func() limiter.Policies { return l.policies.Snapshot() }, Clock: f.clock.Now, Bans: l.bans, Observe: l.decided,
	})
	f.telemetry.WatchWaiting(e.limiter.Waiting)
	set := &f.cfg.Gateway
	o := gateway.Options{
		TokenPaths: set.TokenPath, Limiter: e.limiter, Claim: set.SubjectClaim,
		Subjects: subject.NewMemory(set.MaxSubjects),
		OnError:  gateway.OnError(set.OnError), ClientAddr: e.addresses.Of, ClientHost: e.addresses.Host, LimitedCode: l.file.limitedCode, Logger: f.log,
		Answered: func(_ context.Context, r gateway.Result) { f.telemetry.GatewayAnswered(r.Outcome.String(), r.Took) },
		Exchanged: func(x gateway.Exchange) {
			f.telemetry.GatewayExchanged(x.Token, x.Status, x.Missing, x.Took)
		},
	}
	if set.Judge {
		return e.answerProxies(o)
	}
	return e.passOn(o)
}

// answerProxies serves a Decider to other proxies.
func (e *edge) answerProxies(o gateway.Options) error {
	f := e.base
	j, err := gateway.NewDecider(o)
	if err != nil {
		return err
	}
	f.telemetry.WatchGateway(j.Stats, nil)
	e.http.Handler = e.around(j)
	if f.envoy == nil {
		return nil
	}
	var config *tls.Config
	if f.cert != nil {
		config = f.cert.config()
	}
	e.envoy = envoy.NewServer(j, config)
	return nil
}

// serveEnvoy serves Envoy in the background. Without an address for it, it does nothing and returns
// nil.
func (e *edge) serveEnvoy(failed chan<- error) (stop func(context.Context) error) {
	if e.envoy == nil {
		return nil
	}
	go func() {
		if err := e.envoy.Serve(e.base.bounds.Envoy.Listener(e.base.envoy)); err != nil {
			failed <- err
		}
	}()
	return func(ctx context.Context) error {
		ctx, cancel := withShare(ctx, 3.0/4)
		defer cancel()
		e.stopWaiting()
		if err := e.envoy.Shutdown(ctx); err != nil {
			e.base.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "aborting unfinished Envoy calls")
		}
		return nil
	}
}

// passOn serves clients the upstream.
func (e *edge) passOn(o gateway.Options) (err error) {
	f := e.base
	if o.Upstream, err = url.Parse(f.cfg.Gateway.Upstream); err != nil {
		return err // already checked by config.Validate
	}
	if public := f.cfg.Gateway.PublicURL; public == "" {
		f.log.Info("public_url is not set: serving every host, and sending the upstream its own host")
	} else if o.PublicURL, err = url.Parse(public); err != nil {
		return err // already checked by config.Validate
	}
	if f.cfg.Gateway.ShareSubjects {
		e.shared = sharing.New(sharing.Options{
			Store: sharing.NewRepository(f.data), Memory: o.Subjects, Logger: f.log,
		})
		o.Shared = e.shared
	}
	if f.cfg.Gateway.Introspection.URL != "" {
		if o.Introspection, err = newIntrospection(f.cfg.Gateway.Introspection, o.Claim); err != nil {
			return err
		}
	}
	g, err := gateway.New(o)
	if err != nil {
		return err
	}
	var shared func() sharing.Stats
	if e.shared != nil {
		shared = e.shared.Stats
	}
	f.telemetry.WatchGateway(g.Stats, shared)
	f.telemetry.ExpectUpstream()
	e.gateway = g
	// A forwarded request may be a stream and take any time. The gateway itself bounds the time of
	// token requests, and of each write to a client.
	e.http.Handler = e.around(g)
	e.http.DisableGeneralOptionsHandler = true // OPTIONS * also goes to the upstream
	e.http.ReadTimeout, e.http.WriteTimeout, e.http.ReadHeaderTimeout = 0, 0, 10*time.Second
	return nil
}

// newIntrospection returns the client of the configured endpoint. claim holds the user in answers.
func newIntrospection(set config.Introspection, claim string) (*introspection.Client, error) {
	u, err := url.Parse(set.URL)
	if err != nil {
		return nil, err // already checked by config.Validate
	}
	secret, err := set.Secret()
	if err != nil {
		return nil, err
	}
	reader, err := subject.NewReader(claim)
	if err != nil {
		return nil, err
	}
	e := introspection.Endpoint{URL: u, ClientID: set.ClientID, ClientSecret: secret}
	return introspection.New(e, upstream.New(u, upstream.Options{}), reader)
}

// stopGateway waits, within its share of the time, for requests without clients and for
// introspections, because their counts must still be written.
func (e *edge) stopGateway(ctx context.Context) error {
	ctx, cancel := withShare(ctx, 1.0/4)
	defer cancel()
	return e.gateway.Stop(ctx)
}

// stopWaiting denies all requests that wait in a queue.
func (e *edge) stopWaiting() {
	e.service.StopWaiting()
	if e.limiter != nil {
		e.limiter.StopWaiting()
	}
}

// maxDescribed bounds the text of one attribute in bytes.
const maxDescribed = 400

// describeGateway returns the log attributes of a gateway at startup: its upstream and the limits
// in force.
func describeGateway(set *config.Gateway, in ratelimit.Settings) (attrs []slog.Attr) {
	if set.Judge {
		attrs = append(attrs, slog.Bool("judge", true))
	} else {
		attrs = append(attrs, slog.String("upstream", set.Upstream), slog.String("public_url", set.PublicURL))
	}
	if len(set.TokenPath) > 0 {
		attrs = append(attrs, slog.String("token_path", shorten(set.TokenPath)))
	}
	mode := cmp.Or(in.Instance, in.Mode, ratelimit.Enforce)
	attrs = append(attrs, slog.String("mode", string(mode)))
	if mode == ratelimit.Enforce && in.Instance == ratelimit.Unset {
		attrs = append(attrs, slog.Float64("canary_percent", in.CanaryPercent))
	}
	for _, list := range []struct {
		kind   string
		limits []ratelimit.Limit
	}{{"user", in.Default.User}, {"client", in.Default.Client}, {"total", in.Default.Total}, {"source", in.Default.Source}} {
		specs := make([]string, len(list.limits))
		for i, l := range list.limits {
			specs[i] = fmt.Sprintf("%s:%d/%s", l.Name, l.Requests, config.Duration(l.Window))
		}
		if len(specs) > 0 {
			attrs = append(attrs, slog.String(list.kind+"_limits", shorten(specs)))
		}
	}
	return attrs
}

// shorten joins words and truncates the result to maxDescribed.
func shorten(words []string) string {
	text := strings.Join(words, " ")
	if len(text) > maxDescribed {
		text = strings.ToValidUTF8(text[:maxDescribed], "") + "…"
	}
	return text
}
