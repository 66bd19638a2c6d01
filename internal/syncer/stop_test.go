package syncer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

// TestStopSaysWhatIsLeft: with the store unavailable, the final flush ends at its deadline and
// reports the counts that it could not write.
func TestStopSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &wrapped{exchange: func(context.Context, []exchange.Item) ([]exchange.Result, error) { return nil, errNetwork }}
		m := alone(t, store, nil)
		for i := range 3 {
			m.take(keyOf(i), policyOf(t, perMinute), 2)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		left, err := m.syncer.Stop(ctx)
		check.Equal(t, "left", left, syncer.Left{Keys: 3, Requests: 6})
		if err == nil || !strings.Contains(err.Error(), "6 requests of 3 counters") {
			t.Errorf("the error says %v", err)
		}
		check.Equal(t, "time", time.Since(began), 10*time.Second)
	})
}

// TestStopAbortsACall: a store that does not answer does not delay Stop beyond its deadline.
func TestStopAbortsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alone(t, &wrapped{took: time.Hour}, func(c *syncer.Config) { c.Timeout = 2 * time.Hour })
		m.take(keyOf(0), policyOf(t, perMinute), 2)
		pass(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		left, err := m.syncer.Stop(ctx)
		if err == nil || left.Requests != 2 {
			t.Errorf("left %+v, %v", left, err)
		}
		check.Equal(t, "time", time.Since(began), time.Second)
	})
}

// TestStopBeforeStart does no harm.
func TestStopBeforeStart(t *testing.T) {
	s := syncer.New(counting.NewCounters(1), &memstore.Store{}, nil, syncer.DefaultConfig())
	if left, err := s.Stop(t.Context()); err != nil || left != (syncer.Left{}) {
		t.Errorf("left %+v, %v", left, err)
	}
}

// TestSlowStore: calls shrink until each takes an acceptable time, even if the store is so slow
// that a full call would never end before its deadline.
func TestSlowStore(t *testing.T) {
	for _, perItem := range []time.Duration{6 * time.Millisecond, 40 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			store := &wrapped{}
			store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
				if err := travel(ctx, time.Duration(len(items))*perItem); err != nil {
					return nil, err
				}
				return store.Store.Exchange(ctx, items)
			}
			m := alone(t, store, nil)
			policy := policyOf(t, ratelimit.NewLimit("per-day", 1000, 24*time.Hour))
			for i := range 3000 {
				m.take(keyOf(i), policy, 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if left, err := m.syncer.Stop(ctx); err != nil || left != (syncer.Left{}) {
				t.Fatalf("%v an item: left %+v, %v", perItem, left, err)
			}
			check.Equal(t, "documents", store.Len(), 3000)
		})
	}
}

// TestSeveralCallsAtOnce: with a slow store, several exchanges are under way at once, but never
// more than four.
func TestSeveralCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policy := &wrapped{took: 300 * time.Millisecond}, policyOf(t, perMinute)
		m := alone(t, store, nil)
		most := int64(0)
		for i := range 400 {
			m.take(keyOf(i), policy, 3) // enough to be read at once
			pass(5 * time.Millisecond)
			ended, _ := m.calls.of(syncer.OpRead) // all of these read
			most = max(most, store.calls.Load()-ended)
		}
		check.Equal(t, "exchanges under way at once", most, 4)
	})
}
