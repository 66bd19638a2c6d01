package clientcfg_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// gatedStore answers after the gate lets it.
type gatedStore struct {
	*policyStore
	gate  chan struct{} // nil: at once
	asked atomic.Int64
}

func (s *gatedStore) PolicyVersion(ctx context.Context) (clientcfg.PolicyVersion, error) {
	s.asked.Add(1)
	v, err := s.policyStore.PolicyVersion(ctx) // as of now, however late the answer comes
	if s.gate == nil {
		return v, err
	}
	select {
	case <-s.gate:
		return v, err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// TestRenewShowsWhatWasStoredBefore: whatever was read for others, and however many wait.
func TestRenewShowsWhatWasStoredBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gatedStore{policyStore: &policyStore{}}
		s := newPolicySource(t, store)
		store.gate = make(chan struct{})
		var callers sync.WaitGroup
		defer callers.Wait()
		renew := func(want int64) {
			callers.Go(func() {
				check.OK(t, s.Renew(t.Context()))
				if got := s.Snapshot().Version(); got < want {
					t.Errorf("version %d, want %d at least", got, want)
				}
			})
		}
		renew(0)
		synctest.Wait() // it has read the version, and has no answer
		store.put(shopHas(1))
		for range 100 {
			renew(1)
		}
		synctest.Wait()
		before := store.asked.Load()
		close(store.gate)
		synctest.Wait()
		check.Equal(t, "reads for a hundred", store.asked.Load()-before, int64(1))
	})
}

// TestRenewDoesNotWaitForAStoreThatIsAway: for two seconds at most, also behind others. A caller that goes away ends
// no read, which others may wait for.
func TestRenewDoesNotWaitForAStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gatedStore{policyStore: &policyStore{}}
		s := newPolicySource(t, store)
		store.gate = make(chan struct{})
		began := time.Now()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if err := s.Renew(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		callers.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		close(store.gate)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		store.put(shopHas(1))
		check.OK(t, s.Renew(gone))
		check.Equal(t, "version", s.Snapshot().Version(), int64(1))
	})
}
