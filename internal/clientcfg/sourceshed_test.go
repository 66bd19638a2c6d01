package clientcfg_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestSourceRefusesWhoWaitsTooLong: behind a read of a store that does not answer, a request waits a second, and is told
// when to come again: later, the longer that lasts. One that goes before is not refused.
func TestSourceRefusesWhoWaitsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowChanges{fakeStore: storeOf(named("a"))}
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		check.OK(t, err)
		store.took = time.Hour
		var refresh sync.WaitGroup
		refresh.Go(func() { check.OK(t, source.Refresh(t.Context())) })
		defer refresh.Wait()
		synctest.Wait()
		for _, earliest := range []time.Duration{time.Second, 10 * time.Second} {
			began := time.Now()
			err := source.Renew(t.Context(), 0)
			var shed *admission.ShedError
			if !errors.As(err, &shed) || shed.Short != admission.Store || shed.RetryAfter < earliest {
				t.Errorf("Renew() = %v, want a refusal for want of the store, for %v at least", err, earliest)
			}
			check.Equal(t, "waited", time.Since(began), time.Second)
			time.Sleep(time.Minute) //nolint:forbidigo // the clock of synctest
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var shed *admission.ShedError
		if err := source.Renew(gone, 0); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &shed) {
			t.Errorf("Renew() of a caller that goes = %v", err)
		}
	})
}
