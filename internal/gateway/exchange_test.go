package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestExchanges checks that each request to the upstream is reported once, with its answer or the
// reason why there is no answer.
func TestExchanges(t *testing.T) {
	const token, other = tokenPath, "/login"
	halves := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "20")
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	}
	sleeps := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tc := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   gateway.Exchange
	}{
		"token":                {token, issues("alice", ""), gateway.Exchange{Token: true, Status: 200}},
		"refused":              {token, fails, gateway.Exchange{Token: true, Status: 401}},
		"other":                {other, fails, gateway.Exchange{Status: 401}},
		"token, no answer":     {token, breaksOff, gateway.Exchange{Token: true, Missing: gateway.NoAnswer}},
		"token, half a body":   {token, halves, gateway.Exchange{Token: true, Missing: gateway.NoAnswer}},
		"token, slow":          {token, sleeps, gateway.Exchange{Token: true, Missing: gateway.Timeout}},
		"other, no answer":     {other, breaksOff, gateway.Exchange{Missing: gateway.NoAnswer}},
		"other, client is off": {other, sleeps, gateway.Exchange{Missing: gateway.HungUp}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var got []gateway.Exchange
			answered := make(chan gateway.Result, 1)
			w := newWorld(t, 1, func(o *gateway.Options) {
				if tc.want.Missing == gateway.Timeout {
					o.AnswerWithin = 10 * time.Millisecond
				}
				o.Exchanged = func(e gateway.Exchange) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, e)
				}
				o.Answered = func(_ context.Context, r gateway.Result) { answered <- r }
			})
			came := make(chan struct{}, 1)
			w.upstream(func(rw http.ResponseWriter, r *http.Request) {
				came <- struct{}{}
				tc.answer(rw, r)
			})
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			if tc.want.Missing == gateway.HungUp {
				go func() { <-came; hangUp() }()
			}
			req := w.request(ctx, http.MethodPost, tc.path, strings.NewReader("client_id=shop&grant_type=client_credentials"))
			if res, err := http.DefaultClient.Do(req); err == nil {
				check.OK(t, res.Body.Close())
			}
			check.Eventually(t, "it is reported", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(got) == 1
			})
			check.Equal(t, "took some time", got[0].Took > 0, true)
			took := got[0].Took
			got[0].Took = 0
			check.Equal(t, "exchange", got[0], tc.want)
			if tc.want.Token {
				check.Equal(t, "the whole request takes longer", (<-answered).Took >= took, true)
			}
		})
	}
}

// TestDeniedIsNoExchange checks that requests that do not reach the upstream are not reported as
// exchanges.
func TestDeniedIsNoExchange(t *testing.T) {
	n := 0
	w := newWorld(t, 1, func(o *gateway.Options) { o.Exchanged = func(gateway.Exchange) { n++ } })
	w.upstream(issues("shop", ""))
	w.wantStatus("first", "grant_type=client_credentials", 200)
	w.wantStatus("over the limit", "grant_type=client_credentials", 429)
	check.Equal(t, "exchanges", n, 1)
}
