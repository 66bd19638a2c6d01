package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/admin/resets"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	datastore "oauth-server/internal/store"
)

// erasures is a store that records what it erases.
type erasures struct {
	mu   sync.Mutex
	down bool
	lost string // fails once
	done []string
}

func (e *erasures) EraseCounters(_ context.Context, clientID string, _ *string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return errors.New("no database")
	}
	if e.lost == clientID {
		e.lost = ""
		return errors.New("the connection was closed")
	}
	e.done = append(e.done, clientID)
	return nil
}

func (e *erasures) setDown(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

func (e *erasures) seen() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.done...)
}

// TestResetsAreErasedInTheStore: resets are applied in order, and retried each second after a
// failure. Counters erased before the failure are not erased again.
func TestResetsAreErasedInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &erasures{down: true, lost: ratelimit.CandidateID("shop")}
		erasing := resets.New(counting.NewCounters(10), store, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- erasing.Run(ctx) }()
		adopt := func(clients ...string) {
			for _, id := range clients {
				erasing.CarryOut(clientcfg.Reset{Version: 1, ClientID: id})
			}
		}
		adopt("shop", "app")
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		check.Equal(t, "erased while the store fails", len(store.seen()), 0)
		store.setDown(false)
		<-time.After(2 * time.Second)
		synctest.Wait()
		want := []string{"shop", ratelimit.CandidateID("shop"), "app", ratelimit.CandidateID("app")}
		check.Equal(t, "erased", store.seen(), want)
		stop()
		check.OK(t, <-done)
	})
}

// resetting is an instance with counts in a store, which its resets erase.
func resetting(t *testing.T, store *erasures) *instance {
	t.Helper()
	erasing := resets.New(counting.NewCounters(10), store, slog.New(slog.DiscardHandler))
	w := newInstance(t, "i-1", openStore(t), file(), func(o *admin.Options) {
		follower, err := datastore.NewFollower(t.Context(), o.Events.(*shared))
		check.OK(t, err)
		o.Policies, err = clientcfg.NewPolicySource(t.Context(), follower, clientcfg.PolicyOptions{Base: file(), Reset: erasing.CarryOut})
		check.OK(t, err)
		o.Resets = erasing
	})
	w.resets = erasing
	return w
}

// run runs the resets of the instance. The returned function stops them.
func (w *instance) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.resets.Run(ctx) }()
	return func() {
		cancel()
		check.OK(w.t, <-done)
	}
}

func (w *instance) reset(path string) answer {
	return w.send(request{method: "DELETE", path: path + "?reason=test", token: writer})
}

// TestResetIsAnsweredWhenTheStoreHasForgotten: a process that dies right after the response has
// nothing left to do. If the store fails, the response says so after a while, and the trail has the
// reset.
func TestResetIsAnsweredWhenTheStoreHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &erasures{}
		w := resetting(t, store)
		defer w.run()()
		w.reset("/clients/shop/counters").is(204)
		check.Equal(t, "erased when it is answered", len(store.seen()), 2)

		store.setDown(true)
		began := time.Now()
		w.reset("/clients/app/counters").is(503).says("the store could not")
		check.Equal(t, "answered after", time.Since(began), 10*time.Second)
		check.Equal(t, "erased while the store fails", len(store.seen()), 2)
		w.get("/audit").has("entries.#=2")

		time.AfterFunc(3*time.Second, func() { store.setDown(false) })
		w.reset("/clients/ops/counters").is(204) // after the previous one
		want := []string{"shop", ratelimit.CandidateID("shop"), "app", ratelimit.CandidateID("app"), "ops", ratelimit.CandidateID("ops")}
		check.Equal(t, "erased", store.seen(), want)
	})
}

// TestResetWhileTheServerStops: the reset does not need the stopped Run.
func TestResetWhileTheServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &erasures{}
		w := resetting(t, store)
		w.run()()
		w.reset("/clients/shop/counters").is(204)
		check.Equal(t, "erased", len(store.seen()), 2)
	})
}
