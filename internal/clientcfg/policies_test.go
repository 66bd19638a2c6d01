package clientcfg_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

func limits(requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
}

// fileSettings is a configuration file with a policy for shop.
func fileSettings() ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Clients = map[string]ratelimit.Policy{"shop": {User: limits(7)}}
	return s
}

func compile(t *testing.T, set clientcfg.PolicySet) *clientcfg.PolicySnapshot {
	t.Helper()
	p, err := clientcfg.NewPolicySnapshot(fileSettings(), set)
	requireError(t, err, "")
	return p
}

func TestPolicySetLiesOnTopOfTheFile(t *testing.T) {
	mode, canary, hide := ratelimit.DryRun, 5.0, true
	tests := []struct {
		name string
		set  clientcfg.PolicySet
		want func(*ratelimit.Settings)
	}{
		{"nothing changed", clientcfg.PolicySet{}, func(*ratelimit.Settings) {}},
		{
			"each setting by itself",
			clientcfg.PolicySet{Settings: clientcfg.SettingsOverride{Mode: &mode, CanaryPercent: &canary, HideHeaders: &hide}},
			func(s *ratelimit.Settings) { s.Mode, s.CanaryPercent, s.Default.HideHeaders = mode, canary, true },
		},
		{
			"one list of the default limits",
			clientcfg.PolicySet{Settings: clientcfg.SettingsOverride{Client: limits(3)}},
			func(s *ratelimit.Settings) { s.Default.Client = limits(3) },
		},
		{
			"a client's policy as a whole",
			clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Trusted: true}}),
			func(s *ratelimit.Settings) { s.Clients["shop"] = ratelimit.Policy{Trusted: true} },
		},
		{
			"another client's policy",
			clientcfg.PolicySet{}.WithPolicy("app", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Mode: ratelimit.Off}}),
			func(s *ratelimit.Settings) { s.Clients["app"] = ratelimit.Policy{Mode: ratelimit.Off} },
		},
		{
			"a policy taken back",
			clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{}).WithPolicy("shop", nil),
			func(*ratelimit.Settings) {},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := fileSettings()
			tt.want(&want)
			if diff := cmp.Diff(want, tt.set.Over(fileSettings())); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicySetNamesWhatWasChanged(t *testing.T) {
	if settings, clients := (&clientcfg.PolicySet{}).Changed(); settings != nil || clients != nil {
		t.Errorf("of nothing: %v, %v", settings, clients)
	}
	canary, hide := 5.0, true
	set := clientcfg.PolicySet{Settings: clientcfg.SettingsOverride{CanaryPercent: &canary, User: limits(1), HideHeaders: &hide}}.
		WithPolicy("b", &clientcfg.ClientPolicy{}).WithPolicy("a", &clientcfg.ClientPolicy{})
	settings, clients := set.Changed()
	if diff := cmp.Diff([]string{"canary_percent", "default.user", "default.hide_headers"}, settings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, clients); diff != "" {
		t.Error(diff)
	}
}

func TestPolicySetCopiesShareNothing(t *testing.T) {
	first := clientcfg.PolicySet{}.WithPolicy("a", &clientcfg.ClientPolicy{}).WithReset(clientcfg.Reset{ClientID: "a"})
	second := first.WithPolicy("b", &clientcfg.ClientPolicy{}).WithPolicy("a", nil).WithReset(clientcfg.Reset{ClientID: "b"})
	if len(first.Clients) != 1 || len(first.Resets) != 1 {
		t.Errorf("the original changed: %+v", first)
	}
	if len(second.Clients) != 1 || len(second.Resets) != 2 {
		t.Errorf("the copy is %+v", second)
	}
}

func TestPolicySetForgetsOldResets(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	set := clientcfg.PolicySet{}
	for i := range 1000 {
		set = set.WithReset(clientcfg.Reset{Version: int64(i), At: at})
	}
	if n := len(set.Resets); n > 300 || set.Resets[n-1].Version != 999 {
		t.Errorf("%d resets are kept, the last is %d", n, set.Resets[n-1].Version)
	}
	if set = set.WithReset(clientcfg.Reset{At: at.Add(2 * time.Hour)}); len(set.Resets) != 1 {
		t.Errorf("%d resets are kept after two hours", len(set.Resets))
	}
}

func TestPolicySetSurvivesJSON(t *testing.T) {
	mode, canary, user := ratelimit.Off, 0.0, ""
	set := clientcfg.PolicySet{
		Version:    7,
		Settings:   clientcfg.SettingsOverride{Mode: &mode, CanaryPercent: &canary, User: onOutage(ratelimit.Memory), Note: "n", Changed: 7},
		Clients:    map[string]clientcfg.ClientPolicy{"a.b$c": {Policy: ratelimit.Policy{Client: limits(2), Trusted: true}, Note: "x", Changed: 3}},
		Candidates: map[string]clientcfg.Candidate{clientcfg.GlobalCandidate: {User: onOutage(ratelimit.Deny), Since: time.Unix(5, 0).UTC(), Changed: 4}},
		Resets:     []clientcfg.Reset{{Version: 6, ClientID: "a", Username: &user, At: time.Unix(6, 0).UTC()}, {Version: 5, ClientID: "b"}},
	}
	b, err := json.Marshal(set)
	requireError(t, err, "")
	var got clientcfg.PolicySet
	requireError(t, json.Unmarshal(b, &got), "")
	if diff := cmp.Diff(set, got); diff != "" {
		t.Errorf("after JSON (-want +got):\n%s", diff)
	}
}

// TestPoliciesOfAnEarlierRelease: limits were stored without on_outage.
func TestPoliciesOfAnEarlierRelease(t *testing.T) {
	const old = `{"name":"per-minute","requests":5,"window":"1m0s","frames":1,"algorithm":"sliding","soft_ratio":0.8}`
	set, err := clientcfg.DecodePolicySet([]byte(`{"version":3,"settings":{"user":[` + old + `]},` +
		`"clients":{"shop":{"client":[` + old + `],"changed":2}},"candidates":{"_default":{"user":[` + old + `],"since":"2026-03-01T12:00:00Z"}}}`))
	requireError(t, err, "")
	p := compile(t, set)
	trial, tried := p.Trial("app")
	for where, got := range map[string][]ratelimit.Limit{
		"settings": p.For("app").User.All(), "policy": p.For("shop").Client.All(), "candidate": trial.Effective.User.All(),
	} {
		if diff := cmp.Diff(limits(5), got); diff != "" || !tried {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
}

func TestStoredOnOutageIsChecked(t *testing.T) {
	set, err := clientcfg.DecodePolicySet([]byte(`{"version":1,"settings":{},"clients":{"shop":{"user":[{"name":"a"},{"name":"b","on_outage":"allow"}]}}}`))
	requireError(t, err, "")
	_, err = clientcfg.NewPolicySnapshot(fileSettings(), set)
	requireError(t, err, `clients.shop.user[1].on_outage: "allow" is none of`)
}

func TestPoliciesRefuseWhatCannotBe(t *testing.T) {
	tests := []struct {
		name, want string
		set        clientcfg.PolicySet
	}{
		{
			"an impossible limit", "clients.app.user[0].requests: 0 is not between 1",
			clientcfg.PolicySet{}.WithPolicy("app", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{User: limits(0)}}),
		},
		{
			"an impossible default", "default.user[0].requests",
			clientcfg.PolicySet{Settings: clientcfg.SettingsOverride{User: limits(-1)}},
		},
		{
			"an impossible candidate", "candidates: clients.app.user[0].requests",
			clientcfg.PolicySet{}.WithCandidate("app", &clientcfg.Candidate{User: limits(0)}),
		},
		{
			"an impossible candidate for all", "candidates: default.client[0].requests",
			clientcfg.PolicySet{}.WithCandidate(clientcfg.GlobalCandidate, &clientcfg.Candidate{Client: limits(0)}),
		},
		{
			"a candidate that tries nothing", "candidates.app: needs limits",
			clientcfg.PolicySet{}.WithCandidate("app", &clientcfg.Candidate{}),
		},
		{
			"more than the store holds", "all policies together take",
			clientcfg.PolicySet{Settings: clientcfg.SettingsOverride{Note: strings.Repeat("x", clientcfg.MaxSetSize)}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := clientcfg.NewPolicySnapshot(fileSettings(), tt.set)
			requireError(t, err, tt.want)
			if fielderr.Of(err) == nil {
				t.Errorf("%T does not tell the fields", err)
			}
		})
	}
}

func TestTrialConcernsThoseItIsFor(t *testing.T) {
	set := clientcfg.PolicySet{}.
		WithPolicy("trusted", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Trusted: true}}).
		WithPolicy("asked", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Trusted: true}}).
		WithCandidate("asked", &clientcfg.Candidate{Client: limits(2)}).
		WithCandidate(clientcfg.GlobalCandidate, &clientcfg.Candidate{User: limits(5)})
	p := compile(t, set)
	tests := []struct {
		client           string
		user, clientsOwn bool
	}{
		{"anybody", true, false},
		{"shop", false, false}, // has limits for its users in the file
		{"trusted", false, false},
		{"asked", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			trial, ok := p.Trial(tt.client)
			if ok != (tt.user || tt.clientsOwn) || trial.User != tt.user || trial.Client != tt.clientsOwn {
				t.Fatalf("trial %+v, %v", trial, ok)
			}
			if ok && (trial.Effective.Mode != ratelimit.DryRun || trial.Effective.Trusted || trial.ClientID == tt.client) {
				t.Errorf("the trial could be felt: %+v", trial)
			}
		})
	}
	if trial, _ := p.Trial("anybody"); trial.Effective.User.All()[0].Requests != 5 {
		t.Errorf("the limits tried are %+v", trial.Effective.User.All())
	}
	if _, ok := compile(t, clientcfg.PolicySet{}).Trial("anybody"); ok {
		t.Error("a trial without a candidate")
	}
}

func operator(change func(*clientcfg.Client)) *clientcfg.Client {
	c := clientcfg.Client{ID: "ops", Grants: []clientcfg.Grant{clientcfg.ClientCredentials}}
	clientcfg.MakeOperator(&c)
	change(&c)
	return &c
}

func TestMakeOperatorIsEnoughAndAddsNothingTwice(t *testing.T) {
	c := operator(func(c *clientcfg.Client) { clientcfg.MakeOperator(c) })
	want := &clientcfg.Client{
		ID: "ops", Grants: []clientcfg.Grant{clientcfg.ClientCredentials},
		Scopes: []string{"ratelimit:read", "ratelimit:write"}, Audience: []string{clientcfg.AdminAudience},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("operator (-want +got):\n%s", diff)
	}
}

func onOutage(o ratelimit.OnOutage) []ratelimit.Limit {
	ls := limits(100)
	ls[0].OnOutage = o
	return ls
}

func TestLocksOut(t *testing.T) {
	slow := []ratelimit.Limit{ratelimit.NewLimit("daily", 1, 24*time.Hour)}
	locked := ratelimit.Policy{Client: slow}
	tests := []struct {
		name   string
		client func(*clientcfg.Client)
		policy ratelimit.Policy
		want   string
	}{
		{"one a day", func(*clientcfg.Client) {}, locked, "at least 1440"},
		{"one a minute", func(*clientcfg.Client) {}, ratelimit.Policy{Client: limits(1)}, ""},
		{"many in a long window", func(*clientcfg.Client) {}, ratelimit.Policy{Client: []ratelimit.Limit{
			ratelimit.NewLimit("huge", ratelimit.MaxRequests, ratelimit.MaxWindow),
		}}, ""},
		{"nothing in an outage", func(*clientcfg.Client) {}, ratelimit.Policy{Client: onOutage(ratelimit.Deny)}, "on_outage: deny"},
		{"shared in an outage", func(*clientcfg.Client) {}, ratelimit.Policy{Client: onOutage(ratelimit.Share)}, ""},
		{"from memory in an outage", func(*clientcfg.Client) {}, ratelimit.Policy{Client: onOutage(ratelimit.Memory)}, ""},
		{"users denied in an outage, and none sign in", func(*clientcfg.Client) {}, ratelimit.Policy{User: onOutage(ratelimit.Deny)}, ""},
		{"a limit that is not its kind", func(*clientcfg.Client) {}, ratelimit.Policy{User: slow}, ""},
		{"an operator who signs in", func(c *clientcfg.Client) {
			c.Grants = []clientcfg.Grant{clientcfg.AuthorizationCode}
		}, ratelimit.Policy{User: slow}, "daily"},
		{"trusted", func(*clientcfg.Client) {}, ratelimit.Policy{Client: slow, Trusted: true}, ""},
		{"dry-run", func(*clientcfg.Client) {}, ratelimit.Policy{Client: slow, Mode: ratelimit.DryRun}, ""},
		{"may only read", func(c *clientcfg.Client) { c.Scopes = []string{clientcfg.ScopeLimitsRead} }, locked, ""},
		{"not for the admin API", func(c *clientcfg.Client) { c.Audience = nil }, locked, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, clientcfg.PolicySet{}.WithPolicy("ops", &clientcfg.ClientPolicy{Policy: tt.policy}))
			requireError(t, p.LocksOut(operator(tt.client)), tt.want)
		})
	}
}

func TestValidateNote(t *testing.T) {
	tests := []struct{ name, note, want string }{
		{"words", "Ticket 4711 – für Bob", ""},
		{"empty", "", ""},
		{"too long", strings.Repeat("x", clientcfg.MaxNoteLength+1), "more than 500"},
		{"a line break", "a\nb", "printable"},
		{"an escape", "\x1b[2J", "printable"},
		{"a mark that turns the text around", "a\u202eb", "printable"},
		{"not UTF-8", "\xff", "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { requireError(t, clientcfg.ValidateNote(tt.note), tt.want) })
	}
}
