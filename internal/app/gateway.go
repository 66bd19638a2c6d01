package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/envoy"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/judgement"
	"oauth-server/internal/metrics"
)

// becomeGateway has clients served the upstream, or other proxies the judgement, instead of the endpoints of this server.
func (e *edge) becomeGateway(l *limiter) error {
	f := e.base
	e.judge = judgement.New(judgement.Options{
		Counters: l.counters, Policies: l.policies.Snapshot, Clock: f.clock.Now, Bans: l.bans, Observe: l.decided,
	})
	f.telemetry.WatchWaiting(e.judge.Waiting)
	addresses := &httpapi.Addresses{
		TrustedProxies: f.cfg.TrustedProxies.Ranges(), TrustedHeader: http.CanonicalHeaderKey(f.cfg.TrustedHeader),
		TrustedHops: f.cfg.TrustedHops, Logger: f.log,
	}
	set := &f.cfg.Gateway
	o := gateway.Options{
		TokenPaths: set.TokenPath, Judge: e.judge, Claim: set.SubjectClaim,
		Subjects: subject.NewMemory(subject.Options{MaxEntries: set.MaxSubjects}),
		OnError:  gateway.OnError(set.OnError), ClientAddr: addresses.Of, LimitedCode: l.file.limitedCode, Logger: f.log,
	}
	if set.Judge {
		return e.answerProxies(o)
	}
	return e.passOn(o)
}

// answerProxies has other proxies served the judgement.
func (e *edge) answerProxies(o gateway.Options) error {
	f := e.base
	j, err := gateway.NewJudge(o)
	if err != nil {
		return err
	}
	f.telemetry.WatchGateway(func() metrics.Gateway { return gatewayMetrics(j.Stats()) })
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

// serveEnvoy answers Envoy in the background. Without an address for it, it does nothing, and stop is nil.
func (e *edge) serveEnvoy(failed chan<- error) (stop func(context.Context) error) {
	if e.envoy == nil {
		return nil
	}
	go func() {
		if err := e.envoy.Serve(e.base.envoy); err != nil {
			failed <- err
		}
	}()
	return func(ctx context.Context) error {
		ctx, cancel := withShare(ctx, 3.0/4)
		defer cancel()
		e.stopWaiting()
		if err := e.envoy.Shutdown(ctx); err != nil {
			e.base.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "cutting off questions of Envoy that would not end")
		}
		return nil
	}
}

// passOn has clients served the upstream.
func (e *edge) passOn(o gateway.Options) (err error) {
	f := e.base
	if o.Upstream, err = url.Parse(f.cfg.Gateway.Upstream); err != nil {
		return err // which config.Validate has said
	}
	g, err := gateway.New(o)
	if err != nil {
		return err
	}
	f.telemetry.WatchGateway(func() metrics.Gateway { return gatewayMetrics(g.Stats()) })
	e.gateway = g
	// What passes may be a stream, and take as long as it likes; the gateway bounds the time of a token request itself.
	e.http.Handler = e.around(g)
	e.http.ReadTimeout, e.http.WriteTimeout, e.http.ReadHeaderTimeout = 0, 0, 10*time.Second
	return nil
}

func gatewayMetrics(s gateway.Stats) metrics.Gateway {
	m := metrics.Gateway{
		Requests: map[string]uint64{}, Unknown: map[string]uint64{}, Late: s.Late, Defects: s.Defects, UnderWay: s.UnderWay, Subjects: s.Subjects,
	}
	for o, n := range s.Requests {
		m.Requests[gateway.Outcome(o).String()] = n
	}
	for reason, n := range s.Unknown {
		m.Unknown[reason.String()] = n
	}
	return m
}

// stopWaiting denies all requests that wait for their turn.
func (e *edge) stopWaiting() {
	e.service.StopWaiting()
	if e.judge != nil {
		e.judge.StopWaiting()
	}
}
