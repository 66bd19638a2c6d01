package grants_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// limitedWorld admits 3 tokens a minute per user and 2 per client, and records every decision.
func limitedWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *[]limiter.Decided) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 3, time.Minute)}
	settings.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 2, time.Minute)}
	settings.Clients = map[string]ratelimit.Policy{}
	for _, edit := range edits {
		edit(&settings)
	}
	return policyWorld(t, settings, clientcfg.PolicySet{})
}

func policyWorld(t *testing.T, settings ratelimit.Settings, set clientcfg.PolicySet) (*world, *[]limiter.Decided) {
	t.Helper()
	policies := testworld.Policies(t, settings, set)
	var seen []limiter.Decided
	var mu sync.Mutex
	return newWorld(t, func(o *grants.Options) {
		o.Counters = counting.NewCounters(1000)
		o.Policies = func() *clientcfg.PolicySnapshot { return policies }
		o.Observe = func(_ context.Context, d limiter.Decided) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, d)
		}
	}), &seen
}

// policy sets the policy of one client of the world.
func policy(id string, p ratelimit.Policy) func(*ratelimit.Settings) {
	return func(s *ratelimit.Settings) { s.Clients[id] = p }
}

// spend uses up the quota and returns the denial of the next request.
func (w *world) spend(id string, next func() grants.TokenRequest) *oautherr.LimitedError {
	w.tb.Helper()
	for range 100 {
		if limited := w.limited(id, next()); limited != nil {
			return limited
		}
	}
	w.tb.Fatal("no limit after 100 requests")
	return nil
}

// limited returns the denial, or nil if the request was admitted.
func (w *world) limited(id string, req grants.TokenRequest) *oautherr.LimitedError {
	w.tb.Helper()
	answer, err := w.token(id, req)
	if err == nil {
		return nil
	}
	limited := check.As[*oautherr.LimitedError](w.tb, err)
	check.Equal(w.tb, "answer", answer, grants.TokenResponse{})
	return limited
}

// wantDenied sends a request that must be over a limit.
func (w *world) wantDenied(id string, req grants.TokenRequest) {
	w.tb.Helper()
	if w.limited(id, req) == nil {
		w.tb.Fatal("the request is admitted, want it denied")
	}
}

// TestCountsOnlyTheRightful: none of these requests spends quota.
func TestCountsOnlyTheRightful(t *testing.T) {
	w, seen := limitedWorld(t)
	tokens := w.tokens("shop")
	claimed := refreshing(tokens.RefreshToken)
	w.mustToken("shop", claimed)
	*seen = nil
	for name, req := range map[string]grants.TokenRequest{
		"wrong secret":     {Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "x"}, GrantType: "client_credentials"},
		"no secret":        {Credentials: grants.Credentials{Method: grants.AuthNone, ClientID: "shop"}, GrantType: "client_credentials"},
		"unknown client":   {Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "x", Secret: "x"}, GrantType: "client_credentials"},
		"unknown grant":    {Credentials: w.credentials("shop"), GrantType: "x"},
		"scope too wide":   {Credentials: w.credentials("shop"), GrantType: "client_credentials", Scope: "root"},
		"wrong password":   {Credentials: w.credentials("shop"), GrantType: "password", Username: "alice", Password: "x"},
		"unknown code":     {Credentials: w.credentials("shop"), GrantType: "authorization_code", Code: "x"},
		"another's code":   {Credentials: w.credentials("other"), GrantType: "authorization_code", Code: w.code("shop")},
		"another's token":  {Credentials: w.credentials("other"), GrantType: "refresh_token", RefreshToken: w.tokens("app").RefreshToken},
		"replayed refresh": {Credentials: w.credentials("shop"), GrantType: "refresh_token", RefreshToken: claimed.RefreshToken},
	} {
		t.Run(name, func(t *testing.T) {
			*seen = nil
			for range 10 {
				_, err := w.service.Token(t.Context(), req)
				_ = check.As[*grants.Error](t, err)
			}
			check.Equal(t, "decisions", len(*seen), 0)
		})
	}
}

// TestSparesPasswords: a request over the quota is denied before hashing, and a wrong password
// spends no quota.
func TestSparesPasswords(t *testing.T) {
	w, seen := limitedWorld(t)
	f := w.fail()
	right := byPassword("alice", password)
	wrong := byPassword("alice", "x")
	w.mustToken("shop", right)
	w.wantRefused(oautherr.InvalidGrant, "shop", wrong)
	limited := w.spend("shop", func() grants.TokenRequest { return right })
	check.Equal(t, "decisions", len(*seen), 4)

	f.Operation, f.Err = "Get users", errDown
	check.Equal(t, "denial with the right password", w.limited("shop", right), limited)
	check.Equal(t, "denial with a wrong password", w.limited("shop", wrong), limited)
	check.Equal(t, "look-ups of users", f.Hits, 0)
	check.Equal(t, "decisions", len(*seen), 6)
	check.Equal(t, "Outcome", (*seen)[5].Decision.Outcome, ratelimit.Denied)

	f.Operation = ""
	w.clock.Advance(limited.RetryAfter)
	w.wantRefused(oautherr.InvalidGrant, "shop", wrong)
	w.mustToken("shop", right)
}

func TestModes(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    func(*ratelimit.Settings)
		denied  bool
		last    ratelimit.Outcome
		headers bool
	}{
		"enforce":         {func(*ratelimit.Settings) {}, true, ratelimit.Denied, true},
		"trusted":         {policy("shop", ratelimit.Policy{Trusted: true}), false, ratelimit.Trusted, false},
		"dry-run, all":    {func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun }, false, ratelimit.WouldDeny, false},
		"dry-run, client": {policy("shop", ratelimit.Policy{Mode: ratelimit.DryRun}), false, ratelimit.WouldDeny, false},
		"off, all":        {func(s *ratelimit.Settings) { s.Mode = ratelimit.Off }, false, ratelimit.Passed, false},
		"off, but client": {func(s *ratelimit.Settings) {
			s.Mode = ratelimit.Off
			s.Clients["shop"] = ratelimit.Policy{Mode: ratelimit.Enforce}
		}, true, ratelimit.Denied, true},
		"instance before all": {func(s *ratelimit.Settings) {
			s.Instance = ratelimit.DryRun
			s.Clients["shop"] = ratelimit.Policy{Mode: ratelimit.Enforce}
		}, false, ratelimit.WouldDeny, false},
		"outside of the canary": {func(s *ratelimit.Settings) { s.CanaryPercent = 0 }, false, ratelimit.WouldDeny, false},
		"hidden":                {policy("shop", ratelimit.Policy{HideHeaders: new(true)}), true, ratelimit.Denied, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := limitedWorld(t, tc.edit)
			var last error
			for range 4 {
				var answer grants.TokenResponse
				answer, last = w.token("shop", clientCredentials)
				if last == nil {
					check.Equal(t, "RateLimit fields in an answer", answer.RateLimit != oautherr.RateLimit{}, tc.headers)
				}
			}
			var limited *oautherr.LimitedError
			check.Equal(t, "denied", errors.As(last, &limited), tc.denied)
			if tc.denied {
				check.Equal(t, "RateLimit fields in a denial", limited.RateLimit != oautherr.RateLimit{}, tc.headers)
				if limited.RetryAfter <= 0 {
					t.Fatal("no Retry-After: hidden or not, the wait is named")
				}
			} else {
				check.OK(t, last)
			}
			check.Equal(t, "decisions", len(*seen), 4)
			check.Equal(t, "Outcome", (*seen)[3].Decision.Outcome, tc.last)
			check.Equal(t, "ClientID", (*seen)[3].ClientID, "shop")
			check.Equal(t, "Grant", (*seen)[3].Grant, "client_credentials")
		})
	}
}

// TestTriesCandidates: candidate limits deny nothing, and their would-be denials are reported.
func TestTriesCandidates(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	one := []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	set := testworld.Tried("shop", clientcfg.Value{Policy: ratelimit.Policy{Client: one}})
	w, seen := policyWorld(t, settings, set)
	for i, want := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.WouldDeny, ratelimit.WouldDeny} {
		w.mustToken("shop", clientCredentials)
		check.Equal(t, "tried", (*seen)[i].Tried.Outcome, want)
		check.Equal(t, "Outcome", (*seen)[i].Decision.Outcome, ratelimit.Allowed)
	}
	for range 3 {
		w.tokens("shop") // the candidate is for the client only
		w.mustToken("other", clientCredentials)
	}
	for _, d := range (*seen)[3:] {
		check.Equal(t, "tried", d.Tried, limiter.Tried{})
	}
}

// TestTriesNoCandidateOnOverrides: a user with an override keeps its limits, whatever the
// candidate sets for other users.
func TestTriesNoCandidateOnOverrides(t *testing.T) {
	one := []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	set := testworld.Tried("shop", clientcfg.Value{Policy: ratelimit.Policy{User: one}})
	w, seen := policyWorld(t, ratelimit.DefaultSettings(), set)
	w.tokens("shop")
	check.Equal(t, "tried", (*seen)[0].Tried.Outcome, ratelimit.Allowed)
	user := (*seen)[0].Username
	set.Overrides = mapOf(clientcfg.OverrideKey("shop", user), clientcfg.Value{Policy: ratelimit.Policy{User: []ratelimit.Limit{ratelimit.DefaultLimit()}}})
	w, seen = policyWorld(t, ratelimit.DefaultSettings(), set)
	w.tokens("shop")
	check.Equal(t, "Username", (*seen)[0].Username, user)
	check.Equal(t, "tried on a user with an override", (*seen)[0].Tried, limiter.Tried{})
}

func TestLimitedErrorCountsSeconds(t *testing.T) {
	w, _ := limitedWorld(t)
	limited := w.spend("shop", func() grants.TokenRequest { return clientCredentials })
	w.clock.Advance(limited.RetryAfter - time.Second)
	almost := w.limited("shop", clientCredentials)
	if almost == nil {
		t.Fatal("admitted a second too soon")
	}
	check.Equal(t, "description", almost.Description(), "Token rate limit exceeded for this client; retry after 1 second.")
	ofUser := w.spend("shop", func() grants.TokenRequest { return byPassword("alice", password) })
	check.ErrorSays(t, ofUser, "Token rate limit exceeded for this client and user; retry after ")
}

// TestTriesCandidatesOnEarlyDenials: a candidate also counts requests that the limits in force
// deny before the password check.
func TestTriesCandidatesOnEarlyDenials(t *testing.T) {
	limit := func(requests int64) []ratelimit.Limit {
		return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
	}
	settings := ratelimit.DefaultSettings()
	settings.Default.User = limit(1)
	w, seen := policyWorld(t, settings, testworld.Tried("shop", clientcfg.Value{Policy: ratelimit.Policy{User: limit(2)}}))
	for i, want := range []struct {
		denied bool
		tried  ratelimit.Outcome
	}{{false, ratelimit.Allowed}, {true, ratelimit.Allowed}, {true, ratelimit.WouldDeny}} {
		denial := w.limited("shop", byPassword("alice", password))
		check.Equal(t, "denied", denial != nil, want.denied)
		check.Equal(t, "decisions", len(*seen), i+1)
		check.Equal(t, "tried", (*seen)[i].Tried.Outcome, want.tried)
	}
}

// TestNamesOnlyTheCounted: a username of the password grant may be a password typed into the
// wrong field. If there is no room for its own counters, the request can be denied at once, and
// then the name is not reported.
func TestNamesOnlyTheCounted(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	policies, counters := testworld.Policies(t, settings, clientcfg.PolicySet{}), counting.NewCounters(1000)
	var seen []limiter.Decided
	w := newWorld(t, func(o *grants.Options) {
		o.Counters = counters
		o.Policies = func() *clientcfg.PolicySnapshot { return policies }
		o.Observe = func(_ context.Context, d limiter.Decided) { seen = append(seen, d) }
	})
	ofUser := func(name string) grants.TokenRequest {
		return byPassword(name, password)
	}
	_ = w.limited("shop", ofUser("alice"))
	if w.limited("shop", ofUser("alice")) == nil || seen[len(seen)-1].Username != "alice" {
		t.Errorf("the last decision is %+v, want a denial of alice", seen[len(seen)-1])
	}
	for i := range 5000 {
		counters.Take(w.clock.Now(), ratelimit.Key{ClientID: "shop", Username: fmt.Sprint(i)}, policies.For("shop"), 1)
	}
	if w.limited("shop", ofUser("my-password")) == nil || seen[len(seen)-1].Username != "" {
		t.Errorf("the last decision is %+v, want a denial without a name", seen[len(seen)-1])
	}
}

// TestTellsGrants: a limit for refreshes counts only refreshes, and denies one without
// consuming its token.
func TestTellsGrants(t *testing.T) {
	refreshes := ratelimit.NewLimit("refreshes", 2, time.Minute)
	refreshes.Grants = ratelimit.GrantRefresh
	w, _ := policyWorld(t, ratelimit.DefaultSettings(), clientcfg.PolicySet{Clients: mapOf("shop", clientcfg.Value{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{refreshes}},
	})})
	token := w.tokens("shop").RefreshToken
	for range 2 {
		answer, err := w.token("shop", refreshing(token))
		check.OK(t, err)
		token = answer.RefreshToken
	}
	denial := w.limited("shop", refreshing(token))
	if denial == nil {
		t.Fatal("the third refresh is admitted")
	}
	check.Equal(t, "violated", strings.Join(denial.Violated, ","), "refreshes")
	for range 3 {
		w.tokens("shop")
		_, err := w.token("shop", byPassword("alice", password))
		check.OK(t, err)
	}
	w.clock.Advance(2 * time.Minute)
	_, err := w.token("shop", refreshing(token))
	check.OK(t, err)
}

// TestCountsSources: requests from one address count together, whoever the user is. IPv6
// addresses count by their /64. Only requests of an authenticated client count. The denial names
// the address.
func TestCountsSources(t *testing.T) {
	w, _ := policyWorld(t, ratelimit.DefaultSettings(), clientcfg.PolicySet{Clients: mapOf("shop", clientcfg.Value{
		Policy: ratelimit.Policy{Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 2, time.Minute)}},
	})})
	from := func(address string, req grants.TokenRequest) grants.TokenRequest {
		req.Remote = netip.MustParseAddr(address)
		return req
	}
	wrong := from("2001:db8::1", clientCredentials)
	wrong.Credentials = grants.Credentials{ClientID: "shop", Secret: "wrong"}
	for range 3 {
		if _, err := w.service.Token(t.Context(), wrong); err == nil {
			t.Fatal("a wrong secret gets a token")
		}
	}
	for i, address := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} {
		req := from(address, clientCredentials)
		if i == 1 {
			req = from(address, byPassword("alice", password))
		}
		denial := w.limited("shop", req)
		check.Equal(t, "denied from "+address, denial != nil, i == 2)
		if denial != nil && (denial.Limit != "per-address" || !strings.Contains(denial.Description(), "from this address")) {
			t.Error(denial.Limit, denial.Description())
		}
	}
	wrongPassword := from("2001:db8::4", byPassword("alice", "wrong"))
	w.wantDenied("shop", wrongPassword) // before the password is checked
	check.Equal(t, "another network", w.limited("shop", from("2001:db8:0:1::1", clientCredentials)) == nil, true)
	check.Equal(t, "IPv4", w.limited("shop", from("192.0.2.1", clientCredentials)) == nil, true)
}

// TestKnowsTiersAndOverrides: a user with an override has its limits, also before the password
// check and however the name is typed. Other users of the client have the limits of its tier.
func TestKnowsTiersAndOverrides(t *testing.T) {
	limit := func(requests int64) []ratelimit.Limit {
		return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
	}
	tier := clientcfg.PolicySet{
		Tiers:   mapOf("gold", clientcfg.Value{Policy: ratelimit.Policy{User: limit(3)}}),
		Clients: mapOf("shop", clientcfg.Value{Tier: "gold"}),
	}
	override := func(clientID, username string, requests int64) clientcfg.PolicySet {
		set := tier
		set.Overrides = mapOf(clientcfg.OverrideKey(clientID, username), clientcfg.Value{Policy: ratelimit.Policy{User: limit(requests)}})
		return set
	}
	for _, tt := range []struct {
		name   string
		set    clientcfg.PolicySet
		passes int
	}{
		{"of the tier", tier, 3},
		{"of one user, lower", override("shop", "alice", 1), 1},
		{"of one user, higher", override("shop", "alice", 5), 5},
		{"of another user", override("shop", "alicia", 1), 3},
		{"of a user of another client", override("other", "alice", 1), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := policyWorld(t, ratelimit.DefaultSettings(), tt.set)
			names := []string{"alice", "ALICE"}
			for i := range tt.passes + 2 {
				denial := w.limited("shop", byPassword(names[i%2], password))
				check.Equal(t, "denied", denial != nil, i >= tt.passes)
			}
		})
	}
}

// TestCountsTotals: requests of users and of the client itself count against the client's
// total, and the denial says so, also before the password check.
func TestCountsTotals(t *testing.T) {
	total := clientcfg.PolicySet{Clients: mapOf("shop", clientcfg.Value{Policy: ratelimit.Policy{
		Total: []ratelimit.Limit{ratelimit.NewLimit("all-users", 2, time.Minute)},
	}})}
	w, _ := policyWorld(t, ratelimit.DefaultSettings(), total)
	for i := range 3 {
		denial := w.limited("shop", byPassword("alice", password))
		check.Equal(t, "denied", denial != nil, i >= 2)
	}
	denial := w.limited("shop", byPassword("alice", "wrong"))
	if denial == nil {
		t.Fatal("a wrong password is checked although the total is used up")
	}
	check.Equal(t, "limit", denial.Limit, "all-users")
	check.Equal(t, "violated", strings.Join(denial.Violated, ","), "all-users")
	if !strings.Contains(denial.Description(), "all its users together") {
		t.Error(denial.Description())
	}
}

// TestForPeople: a page shows long waits in minutes or hours.
func TestForPeople(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Second: "1 second", 37 * time.Second: "37 seconds", 119 * time.Second: "119 seconds",
		2 * time.Minute: "about 2 minutes", 121 * time.Second: "about 3 minutes", 2*time.Hour - time.Second: "about 120 minutes",
		2 * time.Hour: "about 2 hours", 47_224 * time.Second: "about 14 hours",
	} {
		check.Equal(t, wait.String(), (&oautherr.LimitedError{RetryAfter: wait}).ForPeople(), "; try again in "+want+".")
	}
}
