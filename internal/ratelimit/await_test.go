package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
)

// awaiting is a request that waits in a goroutine.
type awaiting struct {
	d      Decision
	waited time.Duration
}

func (p *tenant) await(ctx context.Context) *awaiting {
	a := &awaiting{}
	now := p.now
	go func() { a.d, a.waited = p.c.Await(ctx, now, p.k, p.eff, 1) }()
	synctest.Wait()
	return a
}

// TestAwait: requests wait for permits, each for one, and no longer than the limit allows.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(2, time.Minute))
		first, second, third := p.await(t.Context()), p.await(t.Context()), p.await(t.Context())
		task, _ := p.due()
		check.Equal(t, "asked for", task.Delta, []FrameCount{{Name: 60_000, Count: 2}})
		p.pass(20 * time.Millisecond)
		p.finish(task, p.store(&task))
		synctest.Wait()
		check.Equal(t, "the third", third.d.Outcome, Denied)
		fourth := p.await(t.Context())
		check.Equal(t, "the fourth, at once", fourth.d.Outcome, Denied)
		for _, a := range []*awaiting{first, second} {
			check.Equal(t, "outcome", a.d.Outcome, Allowed)
			check.Equal(t, "waited", a.waited >= 20*time.Millisecond, true)
			check.Equal(t, "outage", a.d.Outage, false)
		}
	})
}

// TestAwaitWithoutAnswer: the request is denied, and its permit is there for the next.
func TestAwaitWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(2, time.Minute))
		late := p.await(t.Context())
		task, _ := p.due()
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "outcome", late.d.Outcome, Denied)
		check.Equal(t, "outage", late.d.Outage, true)
		check.Equal(t, "waited", late.waited, 50*time.Millisecond)
		check.Equal(t, "RetryAfter", late.d.RetryAfter, time.Second)
		p.finish(task, p.store(&task))
		p.take(1, Allowed)
	})
}

// TestAwaitCancelled: a request that is no longer wanted takes no permit, also if it was decided in
// the same moment.
func TestAwaitCancelled(t *testing.T) {
	for _, decided := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
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
			check.Equal(t, "outcome", gone.d.Outcome, Denied)
			check.Equal(t, "counted", p.counted(), int64(1))
			p.take(1, Allowed)
		})
	}
}

// TestAwaitChangedLimit: what waits under a limit that changes is denied at once.
func TestAwaitChangedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, strictly(2, time.Minute))
		a := p.await(t.Context())
		_, _, p.eff = single(strictly(5, time.Minute))
		p.take(1, Denied)
		synctest.Wait()
		check.Equal(t, "outcome", a.d.Outcome, Denied)
		check.Equal(t, "waited", a.waited, 0)
	})
}

// TestAwaitAmongLimits: a request waits only if every other limit has room.
func TestAwaitAmongLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, NewLimit("plain", 1, time.Minute), strictly(5, time.Minute))
		a, b := p.await(t.Context()), p.await(t.Context())
		for range 4 { // the first limit is read, the second leases
			for _, plan := range p.y.Due(p.now, nil) {
				p.seq += 10
				if task, ok := p.y.Begin(p.now, plan.Ticket, p.seq); ok && task.ID.Limit != "" {
					p.finish(task, p.store(&task))
				}
			}
		}
		synctest.Wait()
		check.Equal(t, "the first", a.d.Outcome, Allowed)
		check.Equal(t, "the second", b.d.Outcome, Denied)
		check.Equal(t, "counted", p.counted() >= 1, true)
		c := p.await(t.Context())
		check.Equal(t, "the third at once", c.d.Outcome, Denied)
	})
}
