package ratelimit

import (
	"strconv"
	"strings"
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

// TestFieldNames: every name comes from the table, for each draft.
func TestFieldNames(t *testing.T) {
	limits := []Limit{NewLimit("client-user", 2, time.Minute), NewLimit("burst", 5, 1500*time.Millisecond)}
	d := Decision{limits: compile(limits, false)}
	d.status[0], d.status[1] = status{1, 38}, status{4, 2}
	for _, tt := range []struct {
		draft         draft
		policy, limit string
	}{
		{draft08, `"client-user";q=2;w=60, "burst";q=5;w=2`, `"client-user";r=1;t=38, "burst";r=4;t=2`},
		{proposed, `"client-user";q=2;w=60, "burst";q=5;w=2`, `"client-user";a=1;w=38, "burst";a=4;w=2`},
	} {
		w := fieldsOf(tt.draft)
		mustEqual(t, "policy of draft "+string(tt.draft), tt.policy, w.policy(limits))
		mustEqual(t, "limit of draft "+string(tt.draft), tt.limit, w.limit(&d))
	}
	mustEqual(t, "draft that answers follow", namesOf[draft08], Fields())
}

func TestViolated(t *testing.T) {
	minute, burst := NewLimit("client-user", 2, time.Minute), NewLimit("burst", 2, time.Second)
	for _, tt := range []struct {
		name string
		edit func(*Effective)
		last time.Duration // of the denied request, after the first ones
		cost int64
		want string
	}{
		{"both", func(*Effective) {}, 0, 1, "client-user,burst"},
		{"one", func(*Effective) {}, 3 * time.Second, 1, "client-user"},
		{"more than a limit ever admits", func(*Effective) {}, time.Hour, 3, "client-user,burst"},
		{"more than is left", func(*Effective) {}, 90 * time.Second, 2, "client-user"},
		{"dry run", func(e *Effective) { e.Mode = DryRun }, 0, 1, ""},
		{"hidden", func(e *Effective) { e.HideHeaders = true }, 0, 1, ""},
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
	deny := NewLimit("strict", 2, time.Minute)
	deny.OnOutage = Deny
	once := NewLimit("once", 1, time.Minute)
	once.OnOutage = Memory
	full := func(c *Counters) {
		for i := range maxOverflow + 1 {
			_, k, eff := single(NewLimit("l"+strconv.Itoa(i), 5, time.Minute))
			k.Username = strconv.Itoa(i)
			c.Take(at(epoch), k, eff, 1)
		}
	}
	for _, tt := range []struct {
		name   string
		limits []Limit
		keys   int
		upset  func(*Counters)
		want   string
	}{
		{"outage", []Limit{deny}, 1000, func(c *Counters) { stall(c) }, ""},
		{"outage, and another limit", []Limit{deny, once}, 1000, func(c *Counters) { stall(c) }, "once"},
		{"no room", []Limit{deny, once}, 1, full, ""},
	} {
		_, k, eff := single(tt.limits...)
		c := NewCounters(tt.keys)
		now := at(epoch)
		if tt.keys > 1 {
			d := c.Take(now, k, eff, 1)
			mustEqual(t, tt.name+", before", Allowed, d.Outcome)
		}
		tt.upset(c)
		d := c.Take(now.Add(time.Second), k, eff, 1)
		mustEqual(t, tt.name, Denied, d.Outcome)
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
	c, k, eff := single(Limit{Name: "w", Requests: 5, Window: time.Minute, Frames: 1, Algorithm: Weighted, SoftRatio: 1, OnOutage: Share})
	d := c.Take(at(60_000_000), k, eff, 1) // at the start of a frame the weighted formula gives it no weight
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
