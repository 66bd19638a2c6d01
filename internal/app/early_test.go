package app

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/httpapi/early"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// full is a shedder that refuses everything and keeps the last request.
type full struct {
	asked *overload.Request
	of    context.Context //nolint:containedctx // which the test looks at
}

func (*full) RefusingTokens() bool { return true }

func (f *full) RefuseEarly(ctx context.Context, r *overload.Request) *overload.ShedError {
	f.of, f.asked = ctx, r
	return &overload.ShedError{RetryAfter: 3 * time.Second, Short: overload.Processor}
}

// TestRefusedEarly checks that a proven client is refused according to its policy, and that
// requests that would be refused for another reason are left to the endpoint.
func TestRefusedEarly(t *testing.T) {
	r := start(t, limited(t, nil), io.Discard)
	_, _, err := CreateClient(t.Context(), r.base.store, clientcfg.Client{ID: "app", Public: true, Grants: []clientcfg.Grant{clientcfg.RefreshToken}}, time.Now())
	check.OK(t, err)
	check.OK(t, r.base.clients.Renew(t.Context(), 0))
	own := url.Values{"client_id": {"shop"}, "client_secret": {r.secret}, "grant_type": {"client_credentials"}}
	for name, tc := range map[string]struct {
		edit    func(r url.Values)
		refused bool
	}{
		"proven":         {func(url.Values) {}, true},
		"a wrong secret": {func(r url.Values) { r.Set("client_secret", r.Get("client_secret")+"x") }, false},
		"no secret":      {func(r url.Values) { r.Del("client_secret") }, false},
		"unknown":        {func(r url.Values) { r.Set("client_id", "nobody") }, false},
		"public": {func(r url.Values) {
			r.Set("client_id", "app")
			r.Del("client_secret")
			r.Set("grant_type", "refresh_token")
		}, false},
		"an unknown grant": {func(r url.Values) { r.Set("grant_type", "x") }, false},
		"a grant not its":  {func(r url.Values) { r.Set("grant_type", "authorization_code"); r.Set("code", "x") }, false},
		"not our token":    {func(r url.Values) { r.Set("grant_type", "refresh_token"); r.Set("refresh_token", "x") }, false},
		"password, unread": {func(r url.Values) { r.Set("grant_type", "password") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			shedder := &full{}
			asked := maps.Clone(own)
			tc.edit(asked)
			request := &http.Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
			peer, _ := net.Pipe()
			after, body := (&earlyRefuser{shedder: shedder, service: r.edge.service, own: r.edge.own}).Refuse(peer, request, asked.Encode())
			refused := body != nil
			check.Equal(t, "refused", refused, tc.refused)
			check.Equal(t, "the shedder is asked", shedder.asked != nil, tc.refused)
			if refused {
				check.Equal(t, "Retry-After", after, 3*time.Second)
				check.Equal(t, "request", *shedder.asked, overload.Request{ClientID: "shop", Class: overload.ClientCredentials, Criticality: ratelimit.CriticalityUnset})
			}
		})
	}
}

// TestRefusedEarlyIsSeen checks that early refusals appear in the log and the metrics like requests
// that net/http has read.
func TestRefusedEarlyIsSeen(t *testing.T) {
	var log check.Buffer
	r := start(t, withOperators(t), &log)
	check.Equal(t, "path", r.edge.own.TokenPath(), "/token")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	s := &http.Server{
		Handler: http.NotFoundHandler(), ConnState: early.Track, ReadHeaderTimeout: time.Minute,
	}
	ended := make(chan error, 1)
	refusing := &full{}
	refuser := &earlyRefuser{refusing, r.edge.service, r.edge.own, r.edge.drainer}
	go func() {
		ended <- s.Serve(early.New(l, early.Options{Path: "/token", Refuser: refuser, IdleTimeout: time.Minute}))
	}()
	client := newClient(t, nil)
	status := func() int { return tokenOf(t, client, "http://"+l.Addr().String(), "shop", r.secret).StatusCode }
	check.Equal(t, "the first of a connection is read", status(), http.StatusNotFound)
	// So is one that comes before net/http has noticed that the connection is idle.
	check.Eventually(t, "a later one is refused", func() bool { return status() == http.StatusServiceUnavailable })
	check.Equal(t, "the caller has gone", overload.CallerGone(refusing.of), false)
	client.CloseIdleConnections()
	if runtime.GOOS == "linux" {
		check.Eventually(t, "the shedder sees that the caller has gone", func() bool { return overload.CallerGone(refusing.of) })
	}
	check.OK(t, s.Close())
	check.ErrorIs(t, <-ended, http.ErrServerClosed)
	r.edge.drainer.draining.Store(true)
	check.Equal(t, "a stopping server refuses early", refuser.Refusing(), false)
	page := get(t, client, "http://"+r.AdminAddr()+"/metrics").body
	for _, want := range []string{
		`oauth_token_responses_total{error="overloaded",grant_type="client_credentials"} 1`,
		`oauth_http_request_duration_seconds_count{code="503",method="POST",route="/token"} 1`,
	} {
		check.Equal(t, want, strings.Contains(page, want+"\n"), true)
	}
	check.Equal(t, "in the log", strings.Contains(log.String(), "path=/token status=503 ") && strings.Contains(log.String(), "client_id=shop error=temporarily_unavailable shed=processor"), true)
	client.CloseIdleConnections()
}
