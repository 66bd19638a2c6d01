package counting

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

func TestModes(t *testing.T) {
	now := at(60_000_000)
	for _, tc := range []struct {
		name    string
		eff     ratelimit.Effective
		want    []ratelimit.Outcome
		counted int64
		headers bool
	}{
		{"enforce", ratelimit.Effective{Mode: ratelimit.Enforce}, []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Denied, ratelimit.Denied}, 1, true},
		{"dry run counts the same", ratelimit.Effective{Mode: ratelimit.DryRun}, []ratelimit.Outcome{ratelimit.Allowed, ratelimit.WouldDeny, ratelimit.WouldDeny}, 1, false},
		{"off", ratelimit.Effective{Mode: ratelimit.Off}, []ratelimit.Outcome{ratelimit.Passed, ratelimit.Passed, ratelimit.Passed}, 0, false},
		{"trusted", ratelimit.Effective{Mode: ratelimit.Enforce, Trusted: true}, []ratelimit.Outcome{ratelimit.Trusted, ratelimit.Trusted, ratelimit.Trusted}, 0, false},
		{"off before trusted", ratelimit.Effective{Mode: ratelimit.Off, Trusted: true}, []ratelimit.Outcome{ratelimit.Passed, ratelimit.Passed, ratelimit.Passed}, 0, false},
		{"hidden headers", ratelimit.Effective{Mode: ratelimit.Enforce, HideHeaders: true}, []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Denied, ratelimit.Denied}, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, k, limits := single(ratelimit.NewLimit("client-user", 1, time.Minute))
			tc.eff.User, tc.eff.Client = limits.User, limits.Client
			for _, want := range tc.want {
				d := c.Take(now, k, &tc.eff, 1)
				mustEqual(t, "Outcome", want, d.Outcome)
				mustEqual(t, "Rejected", want == ratelimit.Denied, d.Rejected())
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
	c, k, eff := single(ratelimit.NewLimit("client-user", 2, time.Minute), ratelimit.NewLimit("burst", 5, 1500*time.Millisecond))
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

func TestViolated(t *testing.T) {
	minute, burst := ratelimit.NewLimit("client-user", 2, time.Minute), ratelimit.NewLimit("burst", 2, time.Second)
	for _, tt := range []struct {
		name string
		edit func(*ratelimit.Effective)
		last time.Duration // of the denied request, after the first ones
		cost int64
		want string
	}{
		{"both", func(*ratelimit.Effective) {}, 0, 1, "client-user,burst"},
		{"one", func(*ratelimit.Effective) {}, 3 * time.Second, 1, "client-user"},
		{"more than a limit ever admits", func(*ratelimit.Effective) {}, time.Hour, 3, "client-user,burst"},
		{"more than is left", func(*ratelimit.Effective) {}, 90 * time.Second, 2, "client-user"},
		{"dry run", func(e *ratelimit.Effective) { e.Mode = ratelimit.DryRun }, 0, 1, ""},
		{"hidden", func(e *ratelimit.Effective) { e.HideHeaders = true }, 0, 1, ""},
	} {
		c, k, eff := single(minute, burst)
		tt.edit(eff)
		now := at(60_000_000)
		for range 2 {
			d := c.Take(now, k, eff, 1)
			mustEqual(t, tt.name+", while there is room", "", strings.Join(d.Violated(), ","))
		}
		d := c.Take(now.Add(tt.last), k, eff, tt.cost)
		mustEqual(t, tt.name, tt.want, strings.Join(d.Violated(), ","))
	}
}

// TestDeniedWithoutExceeding: a request that is denied during an outage, or because it cannot be
// counted, is over no limit, although RateLimit shows nothing left. Another limit of the same list
// may still be exceeded.
func TestDeniedWithoutExceeding(t *testing.T) {
	deny := ratelimit.NewLimit("strict", 2, time.Minute)
	deny.OnOutage = ratelimit.Deny
	once := ratelimit.NewLimit("once", 1, time.Minute)
	once.OnOutage = ratelimit.Memory
	full := func(c *Counters) {
		for i := range maxOverflow + 1 {
			_, k, eff := single(ratelimit.NewLimit("l"+strconv.Itoa(i), 5, time.Minute))
			k.Username = strconv.Itoa(i)
			c.Take(at(epoch), k, eff, 1)
		}
	}
	for _, tt := range []struct {
		name   string
		limits []ratelimit.Limit
		keys   int
		upset  func(*Counters)
		want   string
	}{
		{"outage", []ratelimit.Limit{deny}, 1000, func(c *Counters) { stall(c) }, ""},
		{"outage, and another limit", []ratelimit.Limit{deny, once}, 1000, func(c *Counters) { stall(c) }, "once"},
		{"no room", []ratelimit.Limit{deny, once}, 1, full, ""},
	} {
		_, k, eff := single(tt.limits...)
		c := NewCounters(tt.keys)
		now := at(epoch)
		if tt.keys > 1 {
			d := c.Take(now, k, eff, 1)
			mustEqual(t, tt.name+", before", ratelimit.Allowed, d.Outcome)
		}
		tt.upset(c)
		d := c.Take(now.Add(time.Second), k, eff, 1)
		mustEqual(t, tt.name, ratelimit.Denied, d.Outcome)
		mustEqual(t, tt.name+", limits exceeded", tt.want, strings.Join(d.Violated(), ","))
		mustEqual(t, tt.name+", any exceeded", tt.want != "", d.Exceeded())
	}
}

// stall simulates a store that has been away for long.
func stall(c *Counters) {
	y := c.Sync(SyncOptions{Interval: time.Second, MaxBackoff: time.Second})
	y.SetInstances(10)
	y.Stalled()
}

// TestResetOfAnIdleKey: an unused limit has a reset of 0.
func TestResetOfAnIdleKey(t *testing.T) {
	c, k, eff := single(ratelimit.Limit{Name: "w", Requests: 5, Window: time.Minute, Frames: 1, Algorithm: ratelimit.Weighted, SoftRatio: 1, OnOutage: ratelimit.Share})
	d := c.Take(at(60_000_000), k, eff, 1) // at the start of a frame the weighted formula gives it no weight
	_, limit := d.Headers()
	mustEqual(t, "RateLimit", `"w";r=5;t=0`, limit)
}

func TestCost(t *testing.T) {
	c, k, eff := single(ratelimit.NewLimit("per-minute", 5, time.Minute))
	now := at(60_000_000)
	for _, step := range []struct {
		cost int64
		want ratelimit.Outcome
		wait time.Duration
	}{
		{3, ratelimit.Allowed, 0},
		{3, ratelimit.Denied, 60*time.Second + time.Millisecond}, // from then on less than 3 of the 3 are inside
		{2, ratelimit.Allowed, 0},
		{6, ratelimit.Denied, ratelimit.Never},
		{0, ratelimit.Denied, 60*time.Second + time.Millisecond}, // counts as 1
		{2, ratelimit.Denied, 72*time.Second + time.Millisecond}, // 5 x 48/60 = 4
	} {
		d := c.Take(now, k, eff, step.cost)
		mustEqual(t, "Outcome", step.want, d.Outcome)
		mustEqual(t, "RetryAfter", step.wait, d.RetryAfter)
	}
	d := c.Take(now, k, eff, 6)
	mustEqual(t, "RetryAfterSeconds, a number that fits a field,", 62*24*3600, d.RetryAfterSeconds())
}
