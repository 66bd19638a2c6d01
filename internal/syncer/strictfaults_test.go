package syncer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// TestLostReplyOfLeases: a lost reply delays the requests of its keys for less than half a second,
// however many keys there are, and does not delay requests of other keys.
func TestLostReplyOfLeases(t *testing.T) {
	for _, keys := range []int{1, 100, 500} {
		synctest.Test(t, func(t *testing.T) {
			store, on := silent()
			m := alone(t, store, nil)
			long := strictLimit(10, time.Minute)
			long.LeaseWait = ratelimit.MaxLeaseWait
			policy, patient := policyOf(t, strictLimit(10, time.Minute)), policyOf(t, long)
			pass(time.Second)
			before := store.calls.Load()
			on.Store(true)
			m.take(keyOf(0), patient, 1)
			for i := range keys {
				m.take(keyOf(i+1), policy, 1)
			}
			pass(10 * time.Millisecond)
			on.Store(false)
			check.Equal(t, "calls", store.calls.Load()-before, 1)
			for i := range 20 {
				d, _ := m.await(t, 1000+i, policy)
				check.Equal(t, "a request of another key", d.Outcome, ratelimit.Allowed)
				pass(20 * time.Millisecond)
			}
			pass(50 * time.Millisecond)
			for i := range keys + 1 {
				d, waited := m.await(t, i, policy)
				if d.Rejected() || waited > 0 {
					t.Fatalf("%d keys: key %d, half a second later: %v, waited %v", keys, i, d.Outcome, waited)
				}
			}
		})
	}
}

// TestLostReplyOfALease: a lost reply delays only the requests of its own key, and for less than
// half a second.
func TestLostReplyOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost sync.Map
		lost.Store(idOf(0), nil)
		m := alone(t, losing(&lost), nil)
		policy := policyOf(t, strictLimit(10, time.Minute))
		pass(time.Second)
		d, waited := m.await(t, 0, policy)
		check.Equal(t, "the request whose reply is lost", d.Outcome, ratelimit.Denied)
		check.Equal(t, "its wait", waited, 50*time.Millisecond)
		for i := 1; i < 20; i++ {
			d, _ := m.await(t, i, policy)
			check.Equal(t, "a request of another key", d.Outcome, ratelimit.Allowed)
			pass(20 * time.Millisecond)
		}
		d, _ = m.await(t, 0, policy)
		check.Equal(t, "the key, later", d.Outcome, ratelimit.Allowed)
	})
}

// losing returns a store that does not answer the next exchange of each counter in lost.
func losing(lost *sync.Map) *wrapped {
	store := &wrapped{}
	store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
		results, err := store.Store.Exchange(ctx, items)
		hang := false
		for _, it := range items {
			_, is := lost.LoadAndDelete(it.ID)
			hang = hang || is
		}
		if hang {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return results, err
	}
	return store
}

// TestStrictWithoutDatabase: without a database requests are denied, after a short time without a
// wait. They are admitted again when it is back. The log does not blame the documents.
func TestStrictWithoutDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, log := newNetwork(2*time.Millisecond), &journal{}
		m := newMember(t, net, 1, 0, func(c *syncer.Config) { c.Log = log.logger() })
		policy := policyOf(t, strictLimit(10, time.Minute))
		pass(time.Second)
		net.become(faults{}, true)
		var waited time.Duration
		for range 50 {
			d, w := m.await(t, 0, policy)
			check.Equal(t, "outcome", d.Outcome, ratelimit.Denied)
			check.Equal(t, "outage", d.Outage, true)
			waited = w
			pass(200 * time.Millisecond)
		}
		check.Equal(t, "the last wait", waited, 0)
		net.become(faults{}, false)
		pass(15 * time.Second)
		d, _ := m.await(t, 0, policy)
		check.Equal(t, "when it is back", d.Outcome, ratelimit.Allowed)
		check.Equal(t, "the log on documents", log.count("problem with a counter document"), 0)
	})
}

// silent returns a store that answers no exchange while on is set.
func silent() (store *wrapped, on *atomic.Bool) {
	store, on = &wrapped{}, &atomic.Bool{}
	store.exchange = func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
		if on.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return store.Store.Exchange(ctx, items)
	}
	return store, on
}

// TestLostRepliesOfOtherLimits: the maximum number of calls for plain counters hang and fail.
// Strict limits wait neither for them nor for the pause after them.
func TestLostRepliesOfOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost sync.Map
		m := alone(t, losing(&lost), nil)
		strict, plain := policyOf(t, strictLimit(10, time.Minute)), policyOf(t, perMinute)
		pass(time.Second)
		for i := range 4 {
			lost.Store(idOf(1000+i), nil)
			m.take(keyOf(1000+i), plain, 1)
			pass(30 * time.Millisecond)
		}
		for i := range 100 {
			d, _ := m.await(t, i, strict)
			check.Equal(t, "a request under a strict limit", d.Outcome, ratelimit.Allowed)
			pass(50 * time.Millisecond)
		}
	})
}

// TestOneBlipWithOtherLimits: calls that fail at the same time count as one failure. Afterwards
// strict limits of all other keys admit at once.
func TestOneBlipWithOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, on := silent()
		m := alone(t, store, nil)
		strict, plain := policyOf(t, strictLimit(10, time.Minute)), policyOf(t, perMinute)
		pass(3500 * time.Millisecond) // the next heartbeat is still far away
		on.Store(true)
		for i := range 3 {
			m.take(keyOf(100+i), plain, 1)
			pass(25 * time.Millisecond)
			m.take(keyOf(i), strict, 1)
			pass(25 * time.Millisecond)
		}
		pass(300 * time.Millisecond)
		on.Store(false)
		for i := 10; i < 30; i++ {
			d, _ := m.await(t, i, strict)
			check.Equal(t, "a request of another key", d.Outcome, ratelimit.Allowed)
			pass(10 * time.Millisecond)
		}
	})
}

// TestStrictOnAResumedMachine: the wall clock shows that the machine was suspended while the
// database is unavailable. Older permits are not used until the store's clock can be read again.
func TestStrictOnAResumedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(2 * time.Millisecond)
		m := newMember(t, net, 1, 0, nil)
		policy := policyOf(t, strictLimit(100, 10*time.Minute))
		wait(time.Until(time.Now().Truncate(time.Minute).Add(61 * time.Second))) // a frame has just begun
		for range 40 {
			m.await(t, 0, policy)
		}
		for range 10 {
			m.take(keyOf(0), policy, 1)
		}
		pass(20 * time.Millisecond) // permits have arrived
		net.become(faults{}, true)
		d, waited := m.await(t, 0, policy)
		check.Equal(t, "from a permit that is here", d.Outcome, ratelimit.Allowed)
		check.Equal(t, "its wait", waited, 0)
		m.wall.step(10 * time.Minute)
		pass(1200 * time.Millisecond)
		for range 3 {
			d, _ = m.await(t, 0, policy)
			check.Equal(t, "late by ten minutes", d.Outcome, ratelimit.Denied)
			pass(time.Second)
		}
		net.become(faults{}, false)
		pass(15 * time.Second)
		d, _ = m.await(t, 0, policy)
		check.Equal(t, "when it is back", d.Outcome, ratelimit.Allowed)
	})
}
