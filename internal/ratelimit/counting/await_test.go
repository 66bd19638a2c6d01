package counting

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// awaiting is a request that waits in a goroutine.
type awaiting struct {
	d      ratelimit.Decision
	waited time.Duration
}

func (p *tenant) await(ctx context.Context) *awaiting {
	a := &awaiting{}
	now := p.now
	go func() { a.d, a.waited = p.c.Await(ctx, now, p.k, p.eff, 1) }()
	synctest.Wait()
	return a
}

// TestAwait: requests wait for one permit each, for at most the LeaseWait of the limit.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(2, time.Minute))
		first, second, third := p.await(t.Context()), p.await(t.Context()), p.await(t.Context())
		task, _ := p.due()
		check.Equal(t, "asked for", task.Delta, []ratelimit.FrameCount{{Name: 60_000, Count: 2}})
		p.pass(20 * time.Millisecond)
		p.finish(task, p.store(&task))
		synctest.Wait()
		check.Equal(t, "the third", third.d.Outcome, ratelimit.Denied)
		fourth := p.await(t.Context())
		check.Equal(t, "the fourth, at once", fourth.d.Outcome, ratelimit.Denied)
		for _, a := range []*awaiting{first, second} {
			check.Equal(t, "outcome", a.d.Outcome, ratelimit.Allowed)
			check.Equal(t, "waited", a.waited >= 20*time.Millisecond, true)
			check.Equal(t, "outage", a.d.Outage, false)
		}
	})
}

// TestAwaitWithoutAnswer: the request is denied, and its permit remains for the next one.
func TestAwaitWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(2, time.Minute))
		late := p.await(t.Context())
		task, _ := p.due()
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "outcome", late.d.Outcome, ratelimit.Denied)
		check.Equal(t, "outage", late.d.Outage, true)
		check.Equal(t, "waited", late.waited, 50*time.Millisecond)
		check.Equal(t, "RetryAfter", late.d.RetryAfter, time.Second)
		p.finish(task, p.store(&task))
		p.take(1, ratelimit.Allowed)
	})
}

// TestAwaitCancelled: a cancelled request takes no permit, even if it was decided at the same
// moment.
func TestAwaitCancelled(t *testing.T) {
	for _, decided := range []bool{false, true} {
		for gone := ratelimit.Allowed; gone == ratelimit.Allowed; { // repeated while the request returns before it is cancelled
			synctest.Test(t, func(t *testing.T) { gone = cancelled(t, decided) })
			if !decided {
				check.Equal(t, "outcome", gone, ratelimit.Denied)
			}
		}
	}
}

// cancelled returns the outcome of a request that is cancelled, before or just after it is decided.
func cancelled(t *testing.T, decided bool) ratelimit.Outcome {
	t.Helper()
	p := leaseFrom(t, strictly(2, time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	gone := p.await(ctx)
	task, _ := p.due()
	if !decided {
		cancel()
		synctest.Wait()
	}
	p.finish(task, p.store(&task))
	cancel()
	synctest.Wait()
	if gone.d.Outcome == ratelimit.Denied {
		check.Equal(t, "counted", p.counted(), int64(1))
		p.take(1, ratelimit.Allowed)
	}
	return gone.d.Outcome
}

// TestAwaitChangedLimit: the present limits of the key decide a waiting request.
func TestAwaitChangedLimit(t *testing.T) {
	other := strictly(2, time.Minute)
	other.Name = "other"
	for _, tc := range []struct {
		name            string
		to              ratelimit.Limit
		atOnce, at, end ratelimit.Outcome // a new request under the new limit, and the waiting one: at once, and after an exchange
	}{
		{"more requests", strictly(5, time.Minute), ratelimit.Denied, ratelimit.Passed, ratelimit.Allowed},
		{"other frames", strictly(5, 2*time.Minute), ratelimit.Denied, ratelimit.Passed, ratelimit.Allowed},
		{"no longer strict", ratelimit.NewLimit("strict", 5, time.Minute), ratelimit.Allowed, ratelimit.Allowed, ratelimit.Allowed},
		{"another limit", other, ratelimit.Denied, ratelimit.Denied, ratelimit.Denied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := leaseFrom(t, strictly(2, time.Minute))
				a := p.await(t.Context())
				_, _, p.eff = single(tc.to)
				p.take(1, tc.atOnce)
				synctest.Wait()
				check.Equal(t, "at once", a.d.Outcome, tc.at)
				p.exchange()
				synctest.Wait()
				check.Equal(t, "after an exchange", a.d.Outcome, tc.end)
				check.Equal(t, "outage", a.d.Outage, false)
				check.Equal(t, "waited", a.waited, 0)
			})
		})
	}
}

// TestAwaitAmongLimits: a request waits only if every other limit has room.
func TestAwaitAmongLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, ratelimit.NewLimit("plain", 1, time.Minute), strictly(5, time.Minute))
		a, b := p.await(t.Context()), p.await(t.Context())
		for range 4 { // reads for the first limit, leases for the second
			for _, plan := range p.y.Due(p.now, nil) {
				p.seq += 10
				if task, ok := p.y.Begin(p.now, plan.Ticket, p.seq); ok && task.ID.Limit != "" {
					p.finish(task, p.store(&task))
				}
			}
		}
		synctest.Wait()
		check.Equal(t, "the first", a.d.Outcome, ratelimit.Allowed)
		check.Equal(t, "the second", b.d.Outcome, ratelimit.Denied)
		check.Equal(t, "counted", p.counted() >= 1, true)
		c := p.await(t.Context())
		check.Equal(t, "the third at once", c.d.Outcome, ratelimit.Denied)
	})
}

// TestAwaitCrowd: no more requests wait than can be admitted, and the others are denied at once.
// Under a large limit maxWaiters bounds the queue, because all waiting requests are decided under
// one lock.
func TestAwaitCrowd(t *testing.T) {
	for _, tc := range []struct {
		limit int64
		cost  int64
		wait  int
	}{{10, 1, 10}, {10, 4, 2}, {1_000_000, 1, maxWaiters}} {
		synctest.Test(t, func(t *testing.T) {
			p := leaseFrom(t, strictly(tc.limit, time.Minute))
			var denied atomic.Int64
			for range 1500 {
				go func() {
					d, waited := p.c.Await(t.Context(), p.now, p.k, p.eff, tc.cost)
					if d.Outcome == ratelimit.Denied && waited == 0 && d.RetryAfter > 0 {
						denied.Add(1)
					}
				}()
			}
			synctest.Wait()
			check.Equal(t, "denied at once", denied.Load(), int64(1500-tc.wait))
			check.Equal(t, "asked for", p.asks() >= int64(tc.wait)*tc.cost, true)
		})
	}
}

// asks begins the planned exchange and returns how many permits it asks for.
func (p *tenant) asks() (n int64) {
	task, _ := p.due()
	for _, f := range task.Delta {
		n += f.Count
	}
	return n
}

// TestAwaitInOrder: requests for fewer permits do not overtake a request for several.
func TestAwaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(10, time.Minute))
		p.take(3, ratelimit.Denied)
		p.exchange()
		var big ratelimit.Decision
		ctx, now := t.Context(), p.now
		go func() { big, _ = p.c.Await(ctx, now, p.k, p.eff, 5) }()
		synctest.Wait()
		p.take(1, ratelimit.Denied)
		small := p.await(ctx)
		task, _ := p.due()
		p.finish(task, p.store(&task))
		synctest.Wait()
		check.Equal(t, "the one of several", big.Outcome, ratelimit.Allowed)
		check.Equal(t, "the one behind", small.d.Outcome, ratelimit.Allowed)
	})
}

// TestAwaitAfterAPause: if a request is delayed after its clock was read, it is decided by the time
// of the decision.
func TestAwaitAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(10, time.Minute))
		p.c.queue.options.Clock = func() time.Time { return p.now }
		p.now = at(minute + 900)
		p.take(1, ratelimit.Denied)
		p.exchange()
		early := at(minute + 990)
		p.now = at(minute + 1030)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d, _ := p.c.Await(ctx, early, p.k, p.eff, 1)
		check.Equal(t, "with a permit of a frame that is over", d.Outcome, ratelimit.Denied)
		p.take(1, ratelimit.Denied)
		p.exchange()
		d, waited := p.c.Await(t.Context(), early, p.k, p.eff, 1)
		check.Equal(t, "with one of the present frame", d.Outcome, ratelimit.Allowed)
		held := p.held()
		check.Equal(t, "refund", p.c.Refund(p.now, early.Add(waited), p.k, p.eff, 1), true)
		check.Equal(t, "held", p.held(), held+1)
	})
}

// TestAwaitEarlierExchange: a request is not decided at a time before its arrival, even if the
// exchange that decides it read its clock earlier.
func TestAwaitEarlierExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(10, time.Minute))
		p.take(1, ratelimit.Denied)
		task, _ := p.due()
		p.pass(time.Millisecond)
		a := p.await(t.Context())
		p.pass(-time.Millisecond)
		p.finish(task, p.store(&task))
		synctest.Wait()
		check.Equal(t, "outcome", a.d.Outcome, ratelimit.Allowed)
		check.Equal(t, "waited", a.waited, 0)
	})
}
