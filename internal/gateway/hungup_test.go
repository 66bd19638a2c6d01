package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

const oneToken = "grant_type=client_credentials"

// hangUp sends a token request and hangs up while the upstream processes it. The answer comes when
// end is called. end returns when the gateway has finished with it.
func (w *world) hangUp(version int, form string, answer http.HandlerFunc) (end func()) {
	w.t.Helper()
	came, answers, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath {
			close(came)
			<-answers
			check.OK(w.t, r.Context().Err())
		}
		answer(rw, r)
	})
	noticed := make(chan (<-chan struct{}), 1)
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(answered)
		noticed <- r.Context().Done()
		check.Equal(w.t, "version", r.ProtoMajor, version)
		w.ServeHTTP(rw, r)
	}))
	front.EnableHTTP2 = version == 2
	front.StartTLS()
	ctx, hangUp := context.WithCancel(w.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+tokenPath, strings.NewReader("client_id=shop&client_secret=s&"+form))
	check.OK(w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	go func() {
		<-came
		hangUp()
	}()
	if res, err := front.Client().Do(req); err == nil {
		_ = res.Body.Close()
		w.t.Fatal("it was answered")
	}
	<-<-noticed
	return func() {
		close(answers)
		<-answered
		front.Close()
		w.upstream(issues("shop", ""))
	}
}

// TestHungUp checks that a request that was sent continues at the upstream, keeps its place, and is
// settled by the answer. Log and metrics show that the client has gone.
func TestHungUp(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		next   int // status of the next request, under a limit of one
	}{
		"a token":   {issues("shop", ""), 429},
		"a refusal": {fails, 200},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 200},
		"broken off": {func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "1000")
			issues("shop", "")(rw, r)
		}, 200},
		"too large to be read": {func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(rw, `{"access_token":"%s"}`, strings.Repeat("x", 2<<20))
		}, 429},
	} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, HTTP/%d", name, version), func(t *testing.T) {
				var log check.Buffer
				w := newWorld(t, 1, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				end := w.hangUp(version, oneToken, tc.answer)
				check.Equal(t, "under way", w.Stats().UnderWay, 1)
				end()
				check.Equal(t, "under way afterwards", w.Stats().UnderWay, 0)
				check.Equal(t, "gone", w.Stats().Requests[gateway.Gone], 1)
				check.Equal(t, "log: "+log.String(), strings.Count(log.String(), "gone=true"), 1)
				w.wantStatus("next", oneToken, tc.next)
			})
		}
	}
}

// TestManyGone checks that beyond the bound a request ends with its client and does not count.
func TestManyGone(t *testing.T) {
	w := newWorld(t, 1)
	w.ManyGone()
	came, ended := make(chan struct{}), make(chan struct{})
	w.upstream(func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
		close(ended)
	})
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		<-came
		hangUp()
	}()
	w.ServeHTTP(httptest.NewRecorder(), tokenRequest(ctx))
	<-ended
	check.Equal(t, "gone", w.Stats().Requests[gateway.Gone], 1)
	w.upstream(issues("shop", ""))
	w.wantStatus("next", oneToken, 200)
}

func tokenRequest(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, tokenPath, strings.NewReader("client_id=shop&"+oneToken))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestGoneBefore checks that a request is neither sent nor counted if its client hung up before it
// was sent.
func TestGoneBefore(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("shop", ""))
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	w.ServeHTTP(httptest.NewRecorder(), tokenRequest(gone))
	w.wantCame(0)
	check.Equal(t, "gone", w.Stats().Requests[gateway.Gone], 1)
	w.wantStatus("next", oneToken, 200)
	w.wantCame(1)
}

// TestGoneWhileItWaits checks the same for a client that hung up while its request waited in the
// queue.
func TestGoneWhileItWaits(t *testing.T) {
	settings, longest := ratelimit.DefaultSettings(), ratelimit.Duration(ratelimit.LongestWait)
	settings.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("client", 1, ratelimit.LongestWait)}
	settings.Default.MaxWait = &longest
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	var limits *limiter.Limiter
	w := newWorld(t, 1, func(o *gateway.Options) {
		limits = limiter.New(limiter.Options{
			Counters: counting.NewCounters(0), Clock: func() time.Time { return noon.Add(50 * time.Millisecond) }, // within a frame
			Policies: func() limiter.Policies { return policies },
		})
		o.Limiter = limits
	})
	w.upstream(issues("shop", ""))
	w.wantStatus("first", oneToken, 200)
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ServeHTTP(httptest.NewRecorder(), tokenRequest(ctx))
	}()
	check.Eventually(t, "it waits", func() bool { return limits.Waiting() == 1 })
	hangUp()
	<-done
	w.wantCame(1)
	check.Equal(t, "under way", w.Stats().UnderWay, 0)
}

// TestStopWaitsForTheGone checks that Stop returns when requests without clients are settled, or at
// the end of its time.
func TestStopWaitsForTheGone(t *testing.T) {
	w := newWorld(t, 1)
	end := w.hangUp(2, oneToken, issues("shop", ""))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	check.OK(t, w.Stop(over))
	check.Equal(t, "under way", w.Stats().UnderWay, 1)
	go end()
	check.OK(t, w.Stop(t.Context()))
	check.Equal(t, "under way at the end", w.Stats().UnderWay, 0)
	w.wantStatus("next", oneToken, 429)
}
