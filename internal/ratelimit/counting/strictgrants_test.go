package counting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestStrictGrants: other grants do not wait for the permits of a strict limit for refreshes. A
// waiting refresh counts against the source when it gets its permits.
func TestStrictGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := leaseFrom(t, forGrants(strictly(10, time.Minute), ratelimit.GrantRefresh))
		p.eff = &ratelimit.Effective{User: p.eff.User, Client: p.eff.Client, Source: ratelimit.NewLimits([]ratelimit.Limit{ratelimit.NewLimit("per-address", 2, time.Minute)}), Mode: ratelimit.Enforce}
		code, refresh := p.eff.ForRequest(ratelimit.GrantCode, ""), p.eff.ForRequest(ratelimit.GrantRefresh, "192.0.2.1")
		d, waited := p.c.Await(context.Background(), p.now, p.k, code, 1)
		check.Equal(t, "a code", d.Outcome, ratelimit.Allowed)
		check.Equal(t, "waited", waited, 0)

		outcomes := make(chan ratelimit.Outcome)
		for range 3 {
			go func() {
				d, _ := p.c.Await(context.Background(), p.now, p.k, refresh, 1)
				outcomes <- d.Outcome
			}()
		}
		synctest.Wait()
		p.exchange()
		counts := map[ratelimit.Outcome]int{}
		for range 3 {
			counts[<-outcomes]++
		}
		check.Equal(t, "outcomes", counts, map[ratelimit.Outcome]int{ratelimit.Allowed: 2, ratelimit.Denied: 1})
		check.Equal(t, "source", counted(p.c, p.now, p.k.Source("192.0.2.1")), int64(2))
	})
}

// codesAndRefreshes returns a process with a strict limit for each of two grants.
func codesAndRefreshes(t *testing.T, codes int64) (p *tenant, code, refresh *ratelimit.Effective) {
	t.Helper()
	forCodes, forRefreshes := strictly(codes, time.Minute), strictly(100, time.Minute)
	forCodes.Name, forRefreshes.Name = "codes", "refreshes"
	p = leaseFrom(t, forGrants(forCodes, ratelimit.GrantCode), forGrants(forRefreshes, ratelimit.GrantRefresh))
	return p, p.eff.ForRequest(ratelimit.GrantCode, ""), p.eff.ForRequest(ratelimit.GrantRefresh, "")
}

// TestWaitersOfAnotherLimit: requests that wait for permits of one limit do not make another limit
// deny requests, use its permits or ask for more of them.
func TestWaitersOfAnotherLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, code, refresh := codesAndRefreshes(t, 5)
		p.c.Take(p.now, p.k, code, 3) // denied, but the next exchange brings permits for them
		p.exchange()
		for range 5 {
			go p.c.Await(context.Background(), p.now, p.k, refresh, 1)
		}
		synctest.Wait()
		d, waited := p.c.Await(context.Background(), p.now, p.k, code, 1)
		check.Equal(t, "a code", d.Outcome, ratelimit.Allowed)
		check.Equal(t, "waited", waited, 0)
		pass()
	})
	synctest.Test(t, func(t *testing.T) {
		p, code, refresh := codesAndRefreshes(t, 10)
		for range 9 {
			go p.c.Await(context.Background(), p.now, p.k, refresh, 1)
		}
		go p.c.Await(context.Background(), p.now, p.k, code, 1)
		synctest.Wait()
		asked := map[string]int64{}
		for i, plan := range p.y.Due(p.now, nil) {
			task, ok := p.y.Begin(p.now, plan.Ticket, int64(10*(i+1)))
			check.Equal(t, "begins", ok, true)
			asked[task.Limit.Name] = task.Delta[0].Count
		}
		check.Equal(t, "permits asked for", asked, map[string]int64{"codes": 1, "refreshes": 9})
		pass()
	})
}

// TestServeAcrossGrants: a request with permits does not wait behind requests that lack permits of
// another limit.
func TestServeAcrossGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, code, refresh := codesAndRefreshes(t, 10)
		codes, refreshes := make(chan ratelimit.Outcome, 1), make(chan ratelimit.Outcome, 1)
		await := func(e *ratelimit.Effective, outcome chan<- ratelimit.Outcome) {
			d, _ := p.c.Await(context.Background(), p.now, p.k, e, 1)
			outcome <- d.Outcome
		}
		go await(refresh, refreshes)
		synctest.Wait()
		go await(code, codes)
		synctest.Wait()
		p.exchange() // of the first limit, for codes
		synctest.Wait()
		check.Equal(t, "refreshes decided", len(refreshes), 0)
		check.Equal(t, "codes decided", len(codes), 1)
		check.Equal(t, "a code", <-codes, ratelimit.Allowed)
		pass()
	})
}

// TestRefundUnderAnotherMask: a request that a limit did not count is not refunded to it after a
// change, so no window exceeds the limit.
func TestRefundUnderAnotherMask(t *testing.T) {
	l := strictly(3, time.Minute)
	p := leaseFrom(t, forGrants(l, ratelimit.GrantRefresh), ratelimit.NewLimit("all", 100, time.Minute))
	_, _, after := single(l, ratelimit.NewLimit("all", 100, time.Minute))
	code := p.eff.ForRequest(ratelimit.GrantCode, "")
	d := p.c.Take(p.now, p.k, code, 1)
	check.Equal(t, "a code", d.Outcome, ratelimit.Allowed)
	admitted, came := p.now, int64(0)
	p.c.Take(p.now, p.k, p.eff.ForRequest(ratelimit.GrantRefresh, ""), 3)
	p.exchange()
	for range 8 {
		if d := p.c.Take(p.now, p.k, after.ForRequest(ratelimit.GrantRefresh, ""), 1); d.Outcome == ratelimit.Allowed {
			came++
		}
	}
	check.Equal(t, "given back under the policy that counted it", p.c.Refund(p.now, admitted, p.k, code, 1), false)
	for range 3 {
		if d := p.c.Take(p.now, p.k, after.ForRequest(ratelimit.GrantRefresh, ""), 1); d.Outcome == ratelimit.Allowed {
			came++
		}
	}
	if came > 3 {
		t.Errorf("%d refreshes are admitted by a strict limit of 3", came)
	}
}

func pass() {
	time.Sleep(time.Second) //nolint:forbidigo // simulated
	synctest.Wait()
}
