package ratelimit

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

func maxWait(d time.Duration) *Duration { return new(Duration(d)) }

// TestWaitProblems: each problem has the path of its field.
func TestWaitProblems(t *testing.T) {
	second := []Limit{NewLimit("per-second", 5, time.Second)}
	minute := []Limit{NewLimit("per-minute", 5, time.Minute)}
	for _, tc := range []struct {
		name   string
		policy Policy
		want   string // path of the only problem; empty for none
	}{
		{"neither", Policy{}, ""},
		{"both", Policy{MaxWait: maxWait(2 * time.Second), MaxWaiting: new(5)}, ""},
		{"none, said", Policy{MaxWait: maxWait(0)}, ""},
		{"none, said of a trusted client", Policy{MaxWait: maxWait(0), Trusted: true}, ""},
		{"negative", Policy{MaxWait: maxWait(-time.Millisecond)}, "max_wait"},
		{"microseconds", Policy{MaxWait: maxWait(1500 * time.Microsecond)}, "max_wait"},
		{"longest", Policy{MaxWait: maxWait(LongestWait)}, ""},
		{"too long", Policy{MaxWait: maxWait(LongestWait + time.Millisecond)}, "max_wait"},
		{"a window", Policy{User: second, MaxWait: maxWait(time.Second)}, ""},
		{"longer than the window", Policy{User: second, MaxWait: maxWait(2 * time.Second)}, "max_wait"},
		{"longer than the window of one list", Policy{User: second, Client: minute, MaxWait: maxWait(2 * time.Second)}, "max_wait"},
		{"longer than that of the other one", Policy{User: minute, Client: second, MaxWait: maxWait(2 * time.Second)}, "max_wait"},
		{"not longer than the longest of each list", Policy{User: slices.Concat(second, minute), Client: minute, MaxWait: maxWait(2 * time.Second)}, ""},
		{"of a trusted client", Policy{Trusted: true, MaxWait: maxWait(time.Second)}, "max_wait"},
		{"with the last token", Policy{OverLimit: OverLimitReuse, MaxWait: maxWait(time.Second)}, "max_wait"},
		{"a number without a wait", Policy{MaxWaiting: new(5)}, "max_waiting"},
		{"a number with a wait of none", Policy{MaxWait: maxWait(0), MaxWaiting: new(5)}, "max_waiting"},
		{"nobody may wait", Policy{MaxWait: maxWait(time.Second), MaxWaiting: new(0)}, "max_waiting"},
		{"too many", Policy{MaxWait: maxWait(time.Second), MaxWaiting: new(MaxWaiting + 1)}, "max_waiting"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := fielderr.Of(tc.policy.Validate())
			if tc.want == "" && len(all) > 0 || tc.want != "" && (len(all) != 1 || all[0].Path != tc.want) {
				t.Fatalf("problems %v, want one of %q", all, tc.want)
			}
		})
	}
}

// TestAllWaitProblems: all problems are reported together.
func TestAllWaitProblems(t *testing.T) {
	second := []Limit{NewLimit("per-second", 5, time.Second)}
	p := Policy{User: second, Client: second, MaxWait: maxWait(time.Minute + 1), Trusted: true, OverLimit: OverLimitReuse}
	check.Equal(t, "problems of max_wait", len(p.validateMaxWait()), 6)
}

// TestWaitOfTheMostSpecific: max_wait and max_waiting come from the same policy, and 0 is a value.
func TestWaitOfTheMostSpecific(t *testing.T) {
	two, five, none := Policy{MaxWait: maxWait(2 * time.Second), MaxWaiting: new(3)}, Policy{MaxWait: maxWait(5 * time.Second)}, Policy{MaxWait: maxWait(0)}
	for _, tc := range []struct {
		policy, tier, all Policy
		want              Wait
	}{
		{Policy{}, Policy{}, Policy{}, Wait{}},
		{Policy{}, Policy{}, two, Wait{2 * time.Second, 3}},
		{Policy{}, five, two, Wait{5 * time.Second, 10}},
		{two, five, Policy{}, Wait{2 * time.Second, 3}},
		{none, five, two, Wait{0, 10}},
	} {
		p := edited(t, defaults(t), func(e *CompiledEdit) error {
			s := DefaultSettings()
			s.Default.MaxWait, s.Default.MaxWaiting = tc.all.MaxWait, tc.all.MaxWaiting
			return cmp.Or(e.SetCommon(s), e.SetTier("gold", &tc.tier), e.SetPolicy("shop", &tc.policy, "gold"))
		})
		check.Equal(t, "what applies", p.For("shop").Wait, tc.want)
	}
}

// TestWaits: clients that get their last token again, trusted clients and uncounted clients never
// wait.
func TestWaits(t *testing.T) {
	e := Effective{Wait: Wait{Longest: time.Second, AtOnce: 1}, Mode: DryRun}
	user, client := Key{"shop", "ada"}, Key{ClientID: "shop"}
	check.Equal(t, "a user", e.Waits(user), true)
	check.Equal(t, "the client", e.Waits(client), true)
	reuses := e
	reuses.OverLimit = OverLimitReuse
	check.Equal(t, "a user, with reuse", reuses.Waits(user), true)
	check.Equal(t, "the client, with reuse", reuses.Waits(client), false)
	trusted := e
	trusted.Trusted = true
	check.Equal(t, "trusted", trusted.Waits(user), false)
	check.Equal(t, "off", e.with(Off).Waits(user), false)
}

// TestMaxWaitAsJSON: it is written as a string and read back.
func TestMaxWaitAsJSON(t *testing.T) {
	want := Policy{MaxWait: maxWait(1500 * time.Millisecond), MaxWaiting: new(3)}
	b, err := json.Marshal(want)
	check.OK(t, err)
	check.Equal(t, "JSON", string(b), `{"max_wait":"1.5s","max_waiting":3}`)
	var got Policy
	check.OK(t, json.Unmarshal(b, &got))
	check.Equal(t, "max_wait", got.MaxWait.String(), want.MaxWait.String())
	if err := json.Unmarshal([]byte(`{"max_wait":"soon"}`), &got); err == nil {
		t.Fatal("read a max_wait that is no duration")
	}
}
