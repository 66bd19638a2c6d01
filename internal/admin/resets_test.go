package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/testworld"
)

// erasures is a store that notes what it erases.
type erasures struct {
	mu   sync.Mutex
	down bool
	done []string
}

func (e *erasures) EraseCounters(_ context.Context, clientID string, _ *string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return errors.New("no database")
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

// TestResetsAreErasedInTheStore: in their order, and again each second after a failure.
func TestResetsAreErasedInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &erasures{down: true}
		resets := admin.NewResets(ratelimit.NewCounters(10), store, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- resets.Run(ctx) }()
		adopt := func(clients ...string) {
			p := testworld.Policies(t, ratelimit.DefaultSettings(), clientcfg.PolicySet{})
			entry := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: 1}}
			for _, id := range clients {
				reset, err := clientcfg.ResetCounters(id, nil)
				check.OK(t, err)
				entry.Changes = append(entry.Changes, reset)
			}
			next, err := p.Apply(&entry)
			check.OK(t, err)
			resets.Adopted(p, next)
		}
		adopt("shop", "app")
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		equal(t, "erased while the store fails", len(store.seen()), 0)
		store.setDown(false)
		<-time.After(time.Second)
		synctest.Wait()
		want := []string{"shop", clientcfg.CandidateID("shop"), "app", clientcfg.CandidateID("app")}
		if diff := cmp.Diff(want, store.seen()); diff != "" {
			t.Errorf("erased (-want +got):\n%s", diff)
		}
		stop()
		check.OK(t, <-done)
	})
}
