package syncer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// TestLostReplyOfLeases: a lost reply delays the requests of its keys for less than half a second,
// however many keys there are, and does not delay requests of other keys.
func TestLostReplyOfLeases(t *testing.T) {
	for _, keys := range []int{1, 100, 500} {
		synctest.Test(t, func(t *testing.T) {
			store := &hangingAll{wrapped: &wrapped{}}
			m := alone(t, store, nil)
			long := strictLimit(10, time.Minute)
			long.LeaseWait = ratelimit.MaxLeaseWait
			policy, patient := policyOf(t, strictLimit(10, time.Minute)), policyOf(t, long)
			pass(time.Second)
			store.on.Store(true)
			m.take(keyOf(0), patient, 1)
			for i := range keys {
				m.take(keyOf(i+1), policy, 1)
			}
			pass(10 * time.Millisecond)
			store.on.Store(false)
			mustEqual(t, "calls", 1, store.hung.Load())
			for i := range 20 {
				d, _ := m.await(t, 1000+i, policy)
				mustEqual(t, "a request of another key", ratelimit.Allowed, d.Outcome)
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
		lost := map[ratelimit.CounterID]bool{idOf(0): true}
		store := &wrapped{}
		slow := &hanging{wrapped: store, lost: lost}
		m := alone(t, slow, nil)
		policy := policyOf(t, strictLimit(10, time.Minute))
		pass(time.Second)
		d, waited := m.await(t, 0, policy)
		mustEqual(t, "the request whose reply is lost", ratelimit.Denied, d.Outcome)
		mustEqual(t, "its wait", 50*time.Millisecond, waited)
		for i := 1; i < 20; i++ {
			d, _ := m.await(t, i, policy)
			mustEqual(t, "a request of another key", ratelimit.Allowed, d.Outcome)
			pass(20 * time.Millisecond)
		}
		d, _ = m.await(t, 0, policy)
		mustEqual(t, "the key, later", ratelimit.Allowed, d.Outcome)
	})
}

// hanging is a store that does not answer the first exchange of some counters.
type hanging struct {
	*wrapped
	mu   sync.Mutex
	lost map[ratelimit.CounterID]bool
}

// lose makes the store not answer the next exchange of a counter.
func (h *hanging) lose(id ratelimit.CounterID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost[id] = true
}

// Exchange implements [syncer.Store].
func (h *hanging) Exchange(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
	results, err := h.wrapped.Exchange(ctx, items)
	h.mu.Lock()
	var hang bool
	for _, it := range items {
		hang = hang || h.lost[it.ID]
		delete(h.lost, it.ID)
	}
	h.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return results, err
}

// TestStrictWithoutDatabase: without a database requests are denied, after a short time without a
// wait. They are admitted again when it is back.
func TestStrictWithoutDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(2 * time.Millisecond)
		m := newMember(t, net, 1, 0, nil)
		policy := policyOf(t, strictLimit(10, time.Minute))
		pass(time.Second)
		net.become(faults{}, true)
		var waited time.Duration
		for range 50 {
			d, w := m.await(t, 0, policy)
			mustEqual(t, "outcome", ratelimit.Denied, d.Outcome)
			mustEqual(t, "outage", true, d.Outage)
			waited = w
			pass(200 * time.Millisecond)
		}
		mustEqual(t, "the last wait", 0, waited)
		net.become(faults{}, false)
		pass(15 * time.Second)
		d, _ := m.await(t, 0, policy)
		mustEqual(t, "when it is back", ratelimit.Allowed, d.Outcome)
	})
}

// hangingAll is a store that sometimes does not answer.
type hangingAll struct {
	*wrapped
	on   atomic.Bool
	hung atomic.Int64 // calls without an answer
}

// Exchange implements [syncer.Store].
func (h *hangingAll) Exchange(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
	if h.on.Load() {
		h.hung.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.wrapped.Exchange(ctx, items)
}

// TestLostRepliesOfOtherLimits: the maximum number of calls for plain counters hang and fail.
// Strict limits wait neither for them nor for the pause after them.
func TestLostRepliesOfOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{wrapped: &wrapped{}, lost: map[ratelimit.CounterID]bool{}}
		m := alone(t, store, nil)
		strict, plain := policyOf(t, strictLimit(10, time.Minute)), policyOf(t, perMinute)
		pass(time.Second)
		for i := range 4 {
			store.lose(idOf(1000 + i))
			m.take(keyOf(1000+i), plain, 1)
			pass(30 * time.Millisecond)
		}
		for i := range 100 {
			d, _ := m.await(t, i, strict)
			mustEqual(t, "a request under a strict limit", ratelimit.Allowed, d.Outcome)
			pass(50 * time.Millisecond)
		}
	})
}

// TestOneBlipWithOtherLimits: calls that fail at the same time count as one failure. Afterwards
// strict limits of all other keys admit at once.
func TestOneBlipWithOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hangingAll{wrapped: &wrapped{}}
		m := alone(t, store, nil)
		strict, plain := policyOf(t, strictLimit(10, time.Minute)), policyOf(t, perMinute)
		pass(3500 * time.Millisecond) // the next heartbeat is still far away
		store.on.Store(true)
		for i := range 3 {
			m.take(keyOf(100+i), plain, 1)
			pass(25 * time.Millisecond)
			m.take(keyOf(i), strict, 1)
			pass(25 * time.Millisecond)
		}
		pass(300 * time.Millisecond)
		store.on.Store(false)
		for i := 10; i < 30; i++ {
			d, _ := m.await(t, i, strict)
			mustEqual(t, "a request of another key", ratelimit.Allowed, d.Outcome)
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
		mustEqual(t, "from a permit that is here", ratelimit.Allowed, d.Outcome)
		mustEqual(t, "its wait", 0, waited)
		m.wall.step(10 * time.Minute)
		pass(1200 * time.Millisecond)
		for range 3 {
			d, _ = m.await(t, 0, policy)
			mustEqual(t, "late by ten minutes", ratelimit.Denied, d.Outcome)
			pass(time.Second)
		}
		net.become(faults{}, false)
		pass(15 * time.Second)
		d, _ = m.await(t, 0, policy)
		mustEqual(t, "when it is back", ratelimit.Allowed, d.Outcome)
	})
}
