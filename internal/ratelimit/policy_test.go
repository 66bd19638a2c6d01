package ratelimit

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

func TestLimitProblems(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Limit)
		want   string // path of the only problem; empty for none
	}{
		{"the default", func(*Limit) {}, ""},
		{"no requests", func(l *Limit) { l.Requests = 0 }, "requests"},
		{"negative", func(l *Limit) { l.Requests = -1 }, "requests"},
		{"too many requests", func(l *Limit) { l.Requests = MaxRequests + 1 }, "requests"},
		{"zero window", func(l *Limit) { l.Window = 0 }, "window"},
		{"negative window", func(l *Limit) { l.Window = -time.Second }, "window"},
		{"window too long", func(l *Limit) { l.Window = MaxWindow + time.Second }, "window"},
		{"microseconds", func(l *Limit) { l.Window = 1500 * time.Microsecond }, "window"},
		{"a millisecond", func(l *Limit) { l.Window = time.Millisecond }, ""},
		{"no frames", func(l *Limit) { l.Frames = 0 }, "frames"},
		{"too many frames", func(l *Limit) { l.Frames = MaxFrames + 1 }, "frames"},
		{"frames do not divide", func(l *Limit) { l.Frames = 7 }, "frames"},
		{"frames divide", func(l *Limit) { l.Frames = 60 }, ""},
		{"weighted frames", func(l *Limit) { l.Frames, l.Algorithm = 2, Weighted }, "frames"},
		{"fixed frames", func(l *Limit) { l.Frames, l.Algorithm = 2, Fixed }, "frames"},
		{"no algorithm", func(l *Limit) { l.Algorithm = "" }, "algorithm"},
		{"unknown algorithm", func(l *Limit) { l.Algorithm = "leaky" }, "algorithm"},
		{"no name", func(l *Limit) { l.Name = "" }, "name"},
		{"a name to be escaped", func(l *Limit) { l.Name = `a"b` }, "name"},
		{"a long name", func(l *Limit) { l.Name = strings.Repeat("n", MaxNameSize+1) }, "name"},
		{"no soft ratio", func(l *Limit) { l.SoftRatio = 0 }, "soft_ratio"},
		{"soft ratio above 1", func(l *Limit) { l.SoftRatio = 1.01 }, "soft_ratio"},
		{"soft ratio not a number", func(l *Limit) { l.SoftRatio = math.NaN() }, "soft_ratio"},
		{"deny while away", func(l *Limit) { l.OnOutage = Deny }, ""},
		{"unknown on_outage", func(l *Limit) { l.OnOutage = "panic" }, "on_outage"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := DefaultLimit()
			tc.change(&l)
			err := l.Validate()
			if tc.want == "" {
				if err != nil {
					t.Fatalf("Validate() = %v", err)
				}
				return
			}
			all := fielderr.Of(err)
			if len(all) != 1 || all[0].Path != tc.want {
				t.Fatalf("Validate() = %v, want one problem, of %q", err, tc.want)
			}
		})
	}
}

func TestSettingsProblems(t *testing.T) {
	s := DefaultSettings()
	s.Mode, s.Instance, s.CanaryPercent = "on", "maybe", 101
	s.Default.User[0].Window = 0
	s.Default.Client, s.Default.Trusted, s.Default.Mode = nil, true, Off
	twice := []Limit{DefaultLimit(), NewLimit("x", 0, time.Minute), DefaultLimit()}
	s.Clients = map[string]Policy{
		"shop": {User: twice, Mode: "no", OverLimit: "wait", Criticality: 9},
		"web":  {Trusted: true, OverLimit: OverLimitReuse},
		"cron": {Trusted: true, OverLimit: OverLimitDeny},
		"app":  {Client: make([]Limit, MaxLimits+1)},
	}
	for i := range MaxLimits + 1 {
		s.Clients["app"].Client[i] = NewLimit(strconv.Itoa(i), 1, time.Minute)
	}
	_, err := Compile(s)
	var paths []string
	for _, e := range fielderr.Of(err).Under("rate_limit") {
		paths = append(paths, e.Path)
	}
	want := []string{
		"rate_limit.mode", "rate_limit.instance_mode", "rate_limit.canary_percent",
		"rate_limit.default.user[0].window", "rate_limit.default.client", "rate_limit.default.trusted", "rate_limit.default.mode",
		"rate_limit.clients.app.client",
		"rate_limit.clients.shop.user[1].requests", "rate_limit.clients.shop.user[2].name", "rate_limit.clients.shop.mode",
		"rate_limit.clients.shop.over_limit", "rate_limit.clients.shop.criticality", "rate_limit.clients.web.over_limit",
	}
	check.Equal(t, "paths of the problems", paths, want)
	check.Equal(t, "lines of the error", len(strings.Split(err.Error(), "\n")), len(paths))
	if line := `clients.shop.user[2].name: "per-minute" is already the name of user[0]`; !strings.Contains(err.Error(), line) {
		t.Fatalf("the error has no line %q:\n%v", line, err)
	}
}

func TestDefaultsWhileDecoding(t *testing.T) {
	want := NewLimit("burst", 5, 2*time.Second)
	var got Limit
	check.OK(t, json.Unmarshal([]byte(`{"name":"burst","requests":5,"window":"2s"}`), &got))
	check.Equal(t, "the limit", got, want)
	b, err := json.Marshal(want)
	check.OK(t, err)
	check.Equal(t, "as JSON", string(b), `{"name":"burst","requests":5,"window":"2s","frames":1,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"share"}`)
}

func TestWhatAppliesToAClient(t *testing.T) {
	s := DefaultSettings()
	own := []Limit{NewLimit("own", 7, time.Hour)}
	s.Clients = map[string]Policy{"shop": {User: own}, "app": {Trusted: true, HideHeaders: new(true)}}
	p, err := Compile(s)
	check.OK(t, err)
	shop := p.For("shop")
	same(t, "limits of a user", own, shop.For(Key{"shop", "joe"}).All())
	same(t, "limits of the client, which are inherited,", s.Default.Client, shop.For(Key{"shop", ""}).All())
	check.Equal(t, "Trusted", p.For("app").Trusted, true)
	check.Equal(t, "HideHeaders", p.For("app").HideHeaders, true)
	check.Equal(t, "Trusted of a client without a policy", p.For("unknown").Trusted, false)
	check.Equal(t, "what applies without a policy", p.For("another"), p.For("unknown"))
}

func TestMostSpecificMode(t *testing.T) {
	for _, tc := range []struct {
		global, client, instance Mode
		canary                   float64
		want                     Mode
	}{
		{Unset, Unset, Unset, 100, Enforce},
		{DryRun, Unset, Unset, 100, DryRun},
		{Off, Unset, Unset, 100, Off},
		{Enforce, DryRun, Unset, 100, DryRun},
		{Off, Enforce, Unset, 100, Enforce},
		{Enforce, Off, DryRun, 100, DryRun},
		{Enforce, Unset, Unset, 0, DryRun},
		{Off, Unset, Unset, 0, Off},
		{Enforce, Enforce, Unset, 0, Enforce},
		{Enforce, Unset, Enforce, 0, Enforce},
	} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			s := DefaultSettings()
			s.Mode, s.Instance, s.CanaryPercent = tc.global, tc.instance, tc.canary
			s.Clients = map[string]Policy{"c": {Mode: tc.client}}
			p, err := Compile(s)
			check.OK(t, err)
			check.Equal(t, "Mode", p.For("c").Mode, tc.want)
			if tc.client == Unset {
				check.Equal(t, "Mode of a client without a policy", p.For("not configured").Mode, tc.want)
			}
			s.Instance = Unset
			shared, err := Compile(s)
			check.OK(t, err)
			for _, id := range []string{"c", "not configured"} {
				check.Equal(t, "SharedMode of "+id, p.SharedMode(id), shared.For(id).Mode)
			}
		})
	}
}

// TestCanaryShare: the share has about the requested size and the same clients every time, and a
// larger share contains every smaller one.
func TestCanaryShare(t *testing.T) {
	in := map[string]float64{} // the smallest share that has the client
	for _, percent := range []float64{0, 0.5, 5, 50, 100} {
		s := DefaultSettings()
		s.CanaryPercent = percent
		p, err := Compile(s)
		check.OK(t, err)
		n := 0.0
		for i := range 10_000 {
			id := fmt.Sprintf("client-%d", i)
			if p.For(id).Mode == Enforce {
				n++
				if _, seen := in[id]; !seen {
					in[id] = percent
				}
			} else if _, seen := in[id]; seen {
				t.Fatalf("%s is in a smaller share, but not in %v %%", id, percent)
			}
		}
		if math.Abs(n-percent*100) > 150 {
			t.Fatalf("%v of 10,000 clients are in a share of %v %%", n, percent)
		}
	}
	// Never change these: running clusters depend on them.
	check.Equal(t, "shares", [3]float64{in["client-17"], in["client-104"], in["client-146"]}, [3]float64{50, 5, 0.5})
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
		{"weighted", func(l *Limit) { l.Algorithm, l.Frames = Weighted, 1 }, `algorithm: "weighted" can exceed the limit`},
		{"fixed", func(l *Limit) { l.Algorithm, l.Frames = Fixed, 1 }, `algorithm: "fixed" can exceed the limit`},
		{"share", func(l *Limit) { l.OnOutage = Share }, `on_outage: "share" admits requests that other instances do not count`},
		{"memory", func(l *Limit) { l.OnOutage = Memory }, `on_outage: "memory" admits`},
		{"no wait", func(l *Limit) { l.LeaseWait = 0 }, "lease_wait: 0s is not between 1ms and 5s"},
		{"a long wait", func(l *Limit) { l.LeaseWait = 6 * time.Second }, "lease_wait: 6s is not between 1ms and 5s"},
		{"not strict", func(l *Limit) { l.Strict = false }, "lease_wait: is allowed only for a strict limit"},
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
