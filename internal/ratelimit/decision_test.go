package ratelimit

import (
	"testing"
	"time"
)

func TestModes(t *testing.T) {
	now := at(60_000_000)
	for _, tc := range []struct {
		name    string
		eff     Effective
		want    []Outcome
		counted int64
		headers bool
	}{
		{"enforce", Effective{Mode: Enforce}, []Outcome{Allowed, Denied, Denied}, 1, true},
		{"dry run counts the same", Effective{Mode: DryRun}, []Outcome{Allowed, WouldDeny, WouldDeny}, 1, false},
		{"off", Effective{Mode: Off}, []Outcome{Passed, Passed, Passed}, 0, false},
		{"trusted", Effective{Mode: Enforce, Trusted: true}, []Outcome{Trusted, Trusted, Trusted}, 0, false},
		{"off before trusted", Effective{Mode: Off, Trusted: true}, []Outcome{Passed, Passed, Passed}, 0, false},
		{"hidden headers", Effective{Mode: Enforce, HideHeaders: true}, []Outcome{Allowed, Denied, Denied}, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, k, limits := single(NewLimit("client-user", 1, time.Minute))
			tc.eff.User, tc.eff.Client = limits.User, limits.Client
			for _, want := range tc.want {
				d := c.Take(now, k, &tc.eff, 1)
				mustEqual(t, "Outcome", want, d.Outcome)
				mustEqual(t, "Rejected", want == Denied, d.Rejected())
				policy, limit := d.Headers()
				mustEqual(t, "a RateLimit-Policy field", tc.headers, policy != "")
				mustEqual(t, "a RateLimit field", tc.headers, limit != "")
			}
			var counted int64
			for _, u := range c.Usage(now, k) {
				counted += u.Unflushed
			}
			mustEqual(t, "counted", tc.counted, counted)
		})
	}
}

func TestHeaders(t *testing.T) {
	c, k, eff := single(NewLimit("client-user", 2, time.Minute), NewLimit("burst", 5, 1500*time.Millisecond))
	now := at(60_023_000) // 23 seconds into a minute, half a second into a frame of 1.5
	for _, want := range []string{
		`"client-user";r=1;t=38, "burst";r=4;t=2`,
		`"client-user";r=0;t=38, "burst";r=3;t=2`,
		`"client-user";r=0;t=38, "burst";r=3;t=2`,
	} {
		d := c.Take(now, k, eff, 1)
		policy, limit := d.Headers()
		mustEqual(t, "RateLimit-Policy", `"client-user";q=2;w=60, "burst";q=5;w=2`, policy)
		mustEqual(t, "RateLimit", want, limit)
	}
	d := c.Take(now, k, eff, 1)
	mustEqual(t, "RetryAfterSeconds, as t of the limit that denies,", 38, d.RetryAfterSeconds())
	mustEqual(t, "Usage", 1.0, d.Usage())
}

// TestResetOfAnIdleKey: nothing used, nothing to wait for.
func TestResetOfAnIdleKey(t *testing.T) {
	c, k, eff := single(Limit{Name: "w", Requests: 5, Window: time.Minute, Frames: 1, Algorithm: Weighted, SoftRatio: 1, OnOutage: Share})
	d := c.Take(at(60_000_000), k, eff, 1) // the weighted formula gives a frame's first moment no weight
	_, limit := d.Headers()
	mustEqual(t, "RateLimit", `"w";r=5;t=0`, limit)
}

func TestCost(t *testing.T) {
	c, k, eff := single(NewLimit("per-minute", 5, time.Minute))
	now := at(60_000_000)
	for _, step := range []struct {
		cost int64
		want Outcome
		wait time.Duration
	}{
		{3, Allowed, 0},
		{3, Denied, 60*time.Second + time.Millisecond}, // from then on less than 3 of the 3 are inside
		{2, Allowed, 0},
		{6, Denied, Never},
		{0, Denied, 60*time.Second + time.Millisecond}, // counts as 1
		{2, Denied, 72*time.Second + time.Millisecond}, // 5 x 48/60 = 4
	} {
		d := c.Take(now, k, eff, step.cost)
		mustEqual(t, "Outcome", step.want, d.Outcome)
		mustEqual(t, "RetryAfter", step.wait, d.RetryAfter)
	}
	d := c.Take(now, k, eff, 6)
	mustEqual(t, "RetryAfterSeconds, a number that fits a field,", 62*24*3600, d.RetryAfterSeconds())
}

func TestDecisionOfNothing(t *testing.T) {
	d := Decision{Outcome: Trusted}
	mustEqual(t, "Usage", 0, d.Usage())
	mustEqual(t, "Counted", false, d.Counted())
	mustEqual(t, "String", "trusted", d.Outcome.String())
	mustEqual(t, "String", "outcome(99)", Outcome(99).String())
	for range d.Limits() {
		t.Fatal("no limit applied")
	}
}
