package ratelimit

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// TestBanVectors checks the lengths of successive bans against the documentation of other systems.
func TestBanVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/bans.json")
	check.OK(t, err)
	var vectors []struct {
		About   string
		Ban     Ban
		Seconds []int64
	}
	check.OK(t, json.Unmarshal(text, &vectors))
	for _, v := range vectors {
		check.OK(t, v.Ban.Validate())
		for before, want := range v.Seconds {
			if got := v.Ban.Length(before); got.Round(time.Second) != time.Duration(want)*time.Second {
				t.Errorf("%s\nafter %d bans: %v, want %d seconds", v.About, before, got, want)
			}
		}
	}
}

// TestBanLengthIsBounded: for any number of bans and every valid factor.
func TestBanLengthIsBounded(t *testing.T) {
	b := DefaultBan()
	for _, b.Factor = range []float64{1, 1.000001, 2, MaxBanFactor} {
		for _, before := range []int{0, 1, 63, 64, 10_000, math.MaxInt32} {
			if d := b.Length(before); d < b.For || d > b.Max {
				t.Errorf("factor %v, after %d bans: %v", b.Factor, before, d)
			}
		}
	}
}

// TestThroughLimit: true only for denials by counted requests.
func TestThroughLimit(t *testing.T) {
	two := NewLimits([]Limit{DefaultLimit(), NewLimit("second", 1, time.Second)})
	over := func(o Outcome) Decision {
		return Decision{Outcome: o, limits: two, total: NewLimits([]Limit{NewLimit("all", 1, time.Second)}), exceeded: 1 << 1}
	}
	outage, ofTotal, both := over(Denied), over(Denied), over(Denied)
	outage.Outage = true
	ofTotal.exceeded, both.exceeded = 1<<2, 1<<2|1
	for name, tt := range map[string]struct {
		d    Decision
		want bool
	}{
		"denied": {over(Denied), true}, "in dry-run": {over(WouldDeny), true}, "on outage": {outage, false},
		"over the total": {ofTotal, false}, "over both": {both, true},
		"no room": {Decision{Outcome: Denied}, false}, "the last token": {over(Reused), false}, "banned": {ByBan(time.Second, Enforce), false},
	} {
		check.Equal(t, name, tt.d.ThroughLimit(), tt.want)
	}
}

func TestBanProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Ban)
		want   string // the paths of the problems
	}{
		"the default":         {func(*Ban) {}, ""},
		"no ban":              {func(b *Ban) { *b = Ban{Off: true} }, ""},
		"no denials":          {func(b *Ban) { b.Denials = 0 }, "denials"},
		"too many denials":    {func(b *Ban) { b.Denials = MaxDenials + 1 }, "denials"},
		"no within":           {func(b *Ban) { b.Within = 0 }, "within"},
		"within too long":     {func(b *Ban) { b.Within = MaxWindow + time.Second }, "within"},
		"microseconds":        {func(b *Ban) { b.Within = 1500 * time.Microsecond }, "within"},
		"for nothing":         {func(b *Ban) { b.For = 0 }, "for"},
		"for too long":        {func(b *Ban) { b.For, b.Max = MaxBan+time.Second, MaxBan }, "for,max"},
		"factor below 1":      {func(b *Ban) { b.Factor = 0.5 }, "factor"},
		"factor not a number": {func(b *Ban) { b.Factor = math.NaN() }, "factor"},
		"infinite factor":     {func(b *Ban) { b.Factor = math.Inf(1) }, "factor"},
		"max too long":        {func(b *Ban) { b.Max = MaxBan + time.Second }, "max"},
		"max below for":       {func(b *Ban) { b.Max = b.For - time.Second }, "max"},
		"forget negative":     {func(b *Ban) { b.Forget = -1 }, "forget"},
		"forget too long":     {func(b *Ban) { b.Forget = MaxForget + time.Second }, "forget"},
		"all at once":         {func(b *Ban) { *b = Ban{Forget: -1} }, "denials,within,for,factor,max,forget"},
	} {
		b := DefaultBan()
		tc.change(&b)
		var paths []string
		for _, e := range fielderr.Of(b.Validate()) {
			paths = append(paths, e.Path)
		}
		check.Equal(t, name, strings.Join(paths, ","), tc.want)
	}
}

// TestBanOfTrustedIsRefused: the error has the path of the field, next to all other problems.
func TestBanOfTrustedIsRefused(t *testing.T) {
	wrong := DefaultBan()
	wrong.Denials = 0
	s := DefaultSettings()
	s.Clients = map[string]Policy{"shop": {Trusted: true, Ban: &wrong, Mode: "loud"}, "off": {Trusted: true, Mode: Off, Ban: &Ban{Off: true}}, "still": {Mode: Off, Ban: new(DefaultBan())}}
	s.Default.Ban = &wrong
	var paths []string
	for _, e := range fielderr.Of(s.Validate()) {
		paths = append(paths, e.Path)
	}
	check.Equal(t, "paths", strings.Join(paths, " "), "default.ban.denials clients.shop.mode clients.shop.ban clients.shop.ban.denials clients.still.ban")
}

// TestBanIsRead: from JSON and YAML, with defaults for absent fields, or as the word off.
func TestBanIsRead(t *testing.T) {
	short := DefaultBan()
	short.Denials, short.Max = 3, 2*time.Hour
	for text, want := range map[string]Ban{
		`{"ban":{}}`:                       DefaultBan(),
		`{"ban":{"denials":3,"max":"2h"}}`: short,
		`{"ban":"off"}`:                    {Off: true},
		"ban: off":                         {Off: true},
		"ban: { denials: 3, max: 2h }":     short,
	} {
		var p Policy
		v, wrong := strict.ParseYAML("file", []byte(text))
		check.OK(t, wrong.Err())
		check.OK(t, v.Decode(&p, nil).Err())
		check.Equal(t, text, *p.Ban, want)
		again, err := json.Marshal(p)
		check.OK(t, err)
		var read Policy
		check.OK(t, json.Unmarshal(again, &read))
		check.Equal(t, "written and read again", *read.Ban, want)
	}
	for text, want := range map[string]string{
		`{"ban":"on"}`:          `ban: "on" is neither "off" nor the fields of a ban`,
		`{"ban":5}`:             "ban: must be text, not 5",
		`{"ban":{"denial":5}}`:  "ban.denial: unknown field; did you mean denials?",
		`{"ban":{"within":60}}`: "ban.within: must be a duration with a unit, such as 60s, not 60",
	} {
		var p Policy
		v, err := strict.ParseJSON([]byte(text))
		check.OK(t, err)
		if err := v.Decode(&p, nil).Err(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{`5`, `"on"`, `{"within":"long"}`, `{"within":5}`} {
		if err := json.Unmarshal([]byte(text), &Ban{}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// TestBanIsInherited: from the client, its tier, or all clients. off ends the search.
func TestBanIsInherited(t *testing.T) {
	of := func(denials int64) *Ban {
		b := DefaultBan()
		b.Denials = denials
		return &b
	}
	s := DefaultSettings()
	s.Default.Ban = of(1)
	s.Clients = map[string]Policy{"own": {Ban: of(3)}, "off": {Ban: &Ban{Off: true}}, "trusted": {Trusted: true}, "modeless": {Mode: Off}}
	p, err := Compile(s)
	check.OK(t, err)
	e := p.Edit()
	check.OK(t, e.SetTier("gold", &Policy{Ban: of(2)}))
	check.OK(t, e.SetTier("calm", &Policy{Ban: &Ban{Off: true}}))
	check.OK(t, e.SetPolicy("bare", &Policy{}, "gold"))
	check.OK(t, e.SetPolicy("calm", &Policy{}, "calm"))
	check.OK(t, e.SetPolicy("both", &Policy{Ban: of(3)}, "gold"))
	p = e.Compiled()
	for id, want := range map[string]int64{
		"other": 1, "own": 3, "off": 0, "trusted": 0, "modeless": 0, "bare": 2, "calm": 0, "both": 3,
	} {
		var got int64
		if r := p.For(id).Bans(); r != nil {
			got = r.Denials
		}
		check.Equal(t, id, got, want)
	}
	e = p.Edit()
	s.Clients, s.Default.Ban = nil, nil
	check.OK(t, e.SetCommon(s))
	if e.Compiled().For("other").Bans() != nil || e.Compiled().For("both").Bans() == nil {
		t.Error("a change of the settings is not followed")
	}
}
