package clientcfg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/lockout"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

func limits(requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
}

func perAddress(requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit("per-address", requests, time.Minute)}
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
	check.OK(t, err)
	return p
}

func TestPolicySetLiesOnTopOfTheFile(t *testing.T) {
	mode, canary, hide, over, critical := ratelimit.DryRun, 5.0, true, ratelimit.OverLimitReuse, ratelimit.Critical
	wait, waiting := ratelimit.Duration(time.Second), 5
	tests := []struct {
		name string
		set  clientcfg.PolicySet
		want func(*ratelimit.Settings)
	}{
		{"nothing changed", clientcfg.PolicySet{}, func(*ratelimit.Settings) {}},
		{
			"each setting by itself",
			clientcfg.PolicySet{Settings: clientcfg.Value{Policy: ratelimit.Policy{Mode: mode, OverLimit: over, Criticality: critical, HideHeaders: &hide}, CanaryPercent: &canary}},
			func(s *ratelimit.Settings) {
				s.Mode, s.CanaryPercent, s.Default.HideHeaders, s.Default.OverLimit = mode, canary, &hide, over
				s.Default.Criticality = critical
			},
		},
		{
			"how requests wait",
			clientcfg.PolicySet{Settings: clientcfg.Value{Policy: ratelimit.Policy{MaxWait: &wait, MaxWaiting: &waiting}}},
			func(s *ratelimit.Settings) { s.Default.MaxWait, s.Default.MaxWaiting = &wait, &waiting },
		},
		{
			"one list of the default limits",
			clientcfg.PolicySet{Settings: clientcfg.Value{Policy: ratelimit.Policy{Client: limits(3)}}},
			func(s *ratelimit.Settings) { s.Default.Client = limits(3) },
		},
		{
			"a client's policy as a whole",
			clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.Value{Policy: ratelimit.Policy{Trusted: true}}),
			func(s *ratelimit.Settings) { s.Clients["shop"] = ratelimit.Policy{Trusted: true} },
		},
		{
			"another client's policy",
			clientcfg.PolicySet{}.WithPolicy("app", &clientcfg.Value{Policy: ratelimit.Policy{Mode: ratelimit.Off}}),
			func(s *ratelimit.Settings) { s.Clients["app"] = ratelimit.Policy{Mode: ratelimit.Off} },
		},
		{
			"a policy taken back",
			clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.Value{}).WithPolicy("shop", nil),
			func(*ratelimit.Settings) {},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := fileSettings()
			tt.want(&want)
			p := compile(t, tt.set)
			got := p.Settings()
			got.Clients = map[string]ratelimit.Policy{}
			for _, id := range p.Clients(len(want.Clients)) {
				own, _ := p.Policy(id)
				got.Clients[id] = own.Policy
			}
			check.Equal(t, "settings", got, want)
			check.Equal(t, "clients of too many policies", p.Clients(len(want.Clients)-1), nil)
		})
	}
}

// TestClientsOfManyPolicies: if too many clients have a policy, only the trusted ones are listed.
// The metrics need them, to show that none of them is denied.
func TestClientsOfManyPolicies(t *testing.T) {
	set := clientcfg.PolicySet{}
	for _, id := range []string{"w", "x", "y", "z"} {
		set = set.WithPolicy(id, &clientcfg.Value{Policy: ratelimit.Policy{Trusted: id > "x"}})
	}
	base := ratelimit.DefaultSettings()
	base.Clients = map[string]ratelimit.Policy{"file": {Trusted: true}, "w": {Trusted: true}}
	p, err := clientcfg.NewPolicySnapshot(base, set)
	check.OK(t, err)
	for most, want := range map[int][]string{
		5: {"file", "w", "x", "y", "z"}, 4: {"file", "y", "z"}, 3: {"file", "y", "z"}, 2: nil, 0: nil,
	} {
		check.Equal(t, fmt.Sprint("clients if at most ", most), p.Clients(most), want)
	}
}

func TestSettingsNameWhatWasChanged(t *testing.T) {
	if names := (&clientcfg.Value{}).Names(); names != nil {
		t.Errorf("of nothing: %v", names)
	}
	canary, hide, over, critical := 5.0, true, ratelimit.OverLimitDeny, ratelimit.Sheddable
	wait, waiting := ratelimit.Duration(0), 5
	o := clientcfg.Value{Policy: ratelimit.Policy{User: limits(1), OverLimit: over, MaxWait: &wait, MaxWaiting: &waiting, Criticality: critical, HideHeaders: &hide}, CanaryPercent: &canary}
	want := []string{"canary_percent", "default.user", "default.over_limit", "default.max_wait", "default.max_waiting", "default.criticality", "default.hide_headers"}
	check.Equal(t, "names", o.Names(), want)
}

func TestPoliciesRefuseWhatCannotBe(t *testing.T) {
	tests := []struct {
		name, want string
		set        clientcfg.PolicySet
	}{
		{
			"an impossible limit", "clients.app.user[0].requests: 0 is not between 1",
			clientcfg.PolicySet{}.WithPolicy("app", &clientcfg.Value{Policy: ratelimit.Policy{User: limits(0)}}),
		},
		{
			"an impossible default", "default.user[0].requests",
			clientcfg.PolicySet{Settings: clientcfg.Value{Policy: ratelimit.Policy{User: limits(-1)}}},
		},
		{
			"an impossible candidate", "candidates: clients.app.user[0].requests",
			clientcfg.PolicySet{}.WithCandidate("app", &clientcfg.Value{Policy: ratelimit.Policy{User: limits(0)}}),
		},
		{
			"an impossible candidate for all", "candidates: default.client[0].requests",
			clientcfg.PolicySet{}.WithCandidate(clientcfg.GlobalCandidate, &clientcfg.Value{Policy: ratelimit.Policy{Client: limits(0)}}),
		},
		{
			"a candidate that tries nothing", "candidates.app: needs limits",
			clientcfg.PolicySet{}.WithCandidate("app", &clientcfg.Value{}),
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
		WithPolicy("trusted", &clientcfg.Value{Policy: ratelimit.Policy{Trusted: true}}).
		WithPolicy("asked", &clientcfg.Value{Policy: ratelimit.Policy{Trusted: true}}).
		WithTier("gold", &clientcfg.Value{Policy: ratelimit.Policy{User: limits(9)}}).
		WithPolicy("tier", &clientcfg.Value{Tier: "gold"}).
		WithCandidate("asked", &clientcfg.Value{Policy: ratelimit.Policy{Client: limits(2)}}).
		WithCandidate(clientcfg.GlobalCandidate, &clientcfg.Value{Policy: ratelimit.Policy{User: limits(5), Client: limits(5)}})
	p := compile(t, set)
	tests := []struct {
		client           string
		user, clientsOwn bool
	}{
		{"anybody", true, true},
		{"shop", false, true}, // has limits for its users in the file
		{"tier", false, true}, // its tier has limits for its users
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

// TestTrialOfShared: the limits that a request is tried under if the candidate has lists that the
// client shares with its users.
func TestTrialOfShared(t *testing.T) {
	p := compile(t, clientcfg.PolicySet{}.
		WithPolicy("own", &clientcfg.Value{Policy: ratelimit.Policy{Source: perAddress(9)}}).
		WithPolicy("trusted", &clientcfg.Value{Policy: ratelimit.Policy{Trusted: true}}).
		WithCandidate("both", &clientcfg.Value{Policy: ratelimit.Policy{User: limits(2), Source: perAddress(3)}}).
		WithCandidate("total", &clientcfg.Value{Policy: ratelimit.Policy{Total: perAddress(3)}}).
		WithCandidate(clientcfg.GlobalCandidate, &clientcfg.Value{Policy: ratelimit.Policy{Source: perAddress(5)}}))
	for _, tt := range []struct {
		client, user       string
		overridden         bool
		own, total, source bool
	}{
		{"any", "ada", false, false, false, true},
		{"any", "", false, false, false, true},
		{"any", "ada", true, false, false, true},
		{"both", "ada", false, true, false, true},
		{"both", "ada", true, false, false, true},
		{"both", "", false, false, false, true},
		{"total", "ada", false, false, true, false},
		{"own", "ada", false, false, false, false},
		{"trusted", "ada", false, false, false, false},
	} {
		trial, _ := p.Trial(tt.client)
		k, e, concerned := trial.Of(tt.user, tt.overridden)
		about := tt.client + " " + tt.user
		check.Equal(t, about+" is concerned", concerned, tt.own || tt.total || tt.source)
		if concerned {
			check.Equal(t, about+": key", k, ratelimit.Key{ClientID: ratelimit.CandidateID(tt.client), Username: tt.user})
			check.Equal(t, about+": lists", []bool{e.User != nil, e.Total != nil, e.Source != nil}, []bool{tt.own, tt.total, tt.source})
		}
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
		Scopes: []string{"ratelimit:read", "ratelimit:write", "registrations:read", "registrations:write"}, Audience: []string{clientcfg.AdminAudience},
	}
	check.Equal(t, "operator", c, want)
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
		{"a total", func(*clientcfg.Client) {}, ratelimit.Policy{Total: slow}, "daily"},
		{"a source", func(*clientcfg.Client) {}, ratelimit.Policy{Source: slow}, "daily"},
		{"trusted", func(*clientcfg.Client) {}, ratelimit.Policy{Client: slow, Trusted: true}, ""},
		{"dry-run", func(*clientcfg.Client) {}, ratelimit.Policy{Client: slow, Mode: ratelimit.DryRun}, ""},
		{"may only read", func(c *clientcfg.Client) { c.Scopes = []string{clientcfg.ScopeLimitsRead} }, locked, ""},
		{"not for the admin API", func(c *clientcfg.Client) { c.Audience = nil }, locked, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, clientcfg.PolicySet{}.WithPolicy("ops", &clientcfg.Value{Policy: tt.policy}))
			requireError(t, lockout.By(p, operator(tt.client)), tt.want)
		})
	}
}

func TestValidateNote(t *testing.T) {
	tests := []struct{ name, note, want string }{
		{"words", "Ticket 4711 – für Bob", ""},
		{"empty", "", ""},
		{"too long", strings.Repeat("x", clientcfg.MaxNoteLength+1), "maximum of 500"},
		{"a line break", "a\nb", "printable"},
		{"an escape", "\x1b[2J", "printable"},
		{"a mark that turns the text around", "a\u202eb", "printable"},
		{"not UTF-8", "\xff", "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { requireError(t, clientcfg.ValidateNote(tt.note), tt.want) })
	}
}
