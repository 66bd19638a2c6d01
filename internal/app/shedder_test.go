package app

import (
	"context"
	"net/http"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// TestShedderSeesCallersGo checks that the contexts of requests contain the client's connection. The
// shedder uses it to check whether the caller is still connected, before net/http notices.
func TestShedderSeesCallersGo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a connection that was closed is noticed on Linux only")
	}
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	there, gone := make(chan bool, 1), make(chan bool, 1)
	leave := make(chan struct{})
	f.edge.http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := context.WithoutCancel(r.Context()) // only the connection
		there <- !overload.CallerGone(ctx)
		close(leave)
		deadline := time.Now().Add(10 * time.Second)
		for !overload.CallerGone(ctx) && time.Now().Before(deadline) {
			runtime.Gosched()
		}
		gone <- overload.CallerGone(ctx)
	})
	failed := make(chan error, 1)
	stop := f.edge.serve(failed)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.base.listener.Addr().String()+"/", http.NoBody)
	check.OK(t, err)
	client := newClient(t, nil)
	go func() {
		<-leave
		hangUp()
	}()
	if res, err := client.Do(req); err == nil {
		check.OK(t, res.Body.Close())
		t.Error("the request was answered")
	}
	check.Equal(t, "there before", <-there, true)
	check.Equal(t, "gone afterwards", <-gone, true)
	check.OK(t, stop(t.Context()))
}

// TestShedderKnowsWhoIsNearItsLimit checks that the shedder learns from the limiter's decisions how much
// of its limit a client has used. Decisions that count against no limit change nothing.
func TestShedderKnowsWhoIsNearItsLimit(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	decide := func(id string, d ratelimit.Decision) {
		for range 100 {
			f.limiter.decided(t.Context(), limiter.Decided{ClientID: id, Decision: d})
		}
	}
	denied := decision(t, ratelimit.Enforce)
	decide("near", denied)
	decide("trusted since", denied)
	decide("trusted since", ratelimit.Decision{Outcome: ratelimit.Trusted})
	rank := func(id string) overload.Rank {
		r, err := f.base.overload.shedder.Admit(t.Context(), &overload.Request{ClientID: id, Class: overload.Refresh})
		check.OK(t, err)
		f.base.overload.shedder.Leave()
		return r
	}
	near, trusted, silent := rank("near"), rank("trusted since"), rank("silent")
	if near >= silent || trusted != near {
		t.Errorf("rank %d near its limit, %d near it and trusted since, %d where nothing was decided", near, trusted, silent)
	}
}
