package ratelimit

import (
	"encoding/json"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// strictly returns a strict limit.
func strictly(requests int64, window time.Duration) Limit {
	l := NewLimit("strict", requests, window)
	l.MakeStrict()
	return l
}

func TestMakeStrict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		window time.Duration
		frames int
	}{
		{10 * time.Minute, 60},
		{time.Minute, 60},
		{7 * time.Second, 56}, // 60 frames do not divide it
		{time.Second, 20},     // a frame is at least 50 ms long
		{40 * time.Millisecond, 1},
	} {
		l := strictly(5, tc.window)
		want := Limit{
			Name: "strict", Requests: 5, Window: tc.window, Frames: tc.frames, Algorithm: Sliding,
			SoftRatio: 0.8, OnOutage: Deny, Strict: true, LeaseWait: 50 * time.Millisecond,
		}
		check.Equal(t, tc.window.String(), l, want)
		check.OK(t, l.Validate())
	}
}

func TestStrictLimitIsValidated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*Limit)
		want   string
	}{
		{"weighted", func(l *Limit) { l.Algorithm, l.Frames = Weighted, 1 }, `algorithm: "weighted" can admit more`},
		{"fixed", func(l *Limit) { l.Algorithm, l.Frames = Fixed, 1 }, `algorithm: "fixed" can admit more`},
		{"share", func(l *Limit) { l.OnOutage = Share }, `on_outage: "share" admits requests that other instances do not count`},
		{"memory", func(l *Limit) { l.OnOutage = Memory }, `on_outage: "memory" admits`},
		{"no wait", func(l *Limit) { l.LeaseWait = 0 }, "lease_wait: 0s is not between 1ms and 5s"},
		{"a long wait", func(l *Limit) { l.LeaseWait = 6 * time.Second }, "lease_wait: 6s is not between 1ms and 5s"},
		{"not strict", func(l *Limit) { l.Strict = false }, "lease_wait: only a strict limit has it"},
	} {
		l := strictly(10, time.Minute)
		tc.change(&l)
		check.ErrorSays(t, l.Validate(), tc.want)
	}
}

func TestStrictLimitAsJSON(t *testing.T) {
	t.Parallel()
	var l Limit
	check.OK(t, json.Unmarshal([]byte(`{"name":"a","requests":10,"window":"10m","strict":true}`), &l))
	want := strictly(10, 10*time.Minute)
	want.Name = "a"
	check.Equal(t, "defaults of a strict limit", l, want)

	check.OK(t, json.Unmarshal([]byte(`{"name":"a","requests":10,"window":"10m","strict":true,"frames":6,"lease_wait":"200ms"}`), &l))
	want.Frames, want.LeaseWait = 6, 200*time.Millisecond
	check.Equal(t, "given fields", l, want)

	text, err := json.Marshal(l)
	check.OK(t, err)
	var again Limit
	check.OK(t, json.Unmarshal(text, &again))
	check.Equal(t, "read again", again, l)
}

// TestStrictEstimate: a frame counts in full while any part of it is inside the window. Without a
// syncer no permits are needed.
func TestStrictEstimate(t *testing.T) {
	t.Parallel()
	c, k, eff := single(strictly(2, time.Minute))
	take := func(ms int64, want Outcome) Decision {
		t.Helper()
		d := c.Take(at(minute+ms), k, eff, 1)
		check.Equal(t, "outcome", d.Outcome, want)
		return d
	}
	take(0, Allowed)
	take(500, Allowed)
	d := take(999, Denied)
	check.Equal(t, "RetryAfter", d.RetryAfter, 61*time.Second-999*time.Millisecond)
	take(60_999, Denied)
	take(61_000, Allowed)
	take(61_000, Allowed)
	take(61_001, Denied)
	check.Equal(t, "refund", c.Refund(at(minute+61_002), at(minute+61_000), k, eff, 1), true)
	take(61_003, Allowed)
}
