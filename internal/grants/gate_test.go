package grants_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	. "oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// limitedWorld admits 3 tokens a minute per user and 2 per client, and notes
// every decision.
func limitedWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *[]Decided) {
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

func policyWorld(t *testing.T, settings ratelimit.Settings, set clientcfg.PolicySet) (*world, *[]Decided) {
	t.Helper()
	policies, err := clientcfg.NewPolicySnapshot(settings, set)
	require.NoError(t, err)
	var seen []Decided
	return newWorld(t, func(o *Options) {
		o.Counters = ratelimit.NewCounters(1000)
		o.Policies = func() *clientcfg.PolicySnapshot { return policies }
		o.Observe = func(_ context.Context, d Decided) { seen = append(seen, d) }
	}), &seen
}

// policy gives a client of the world one.
func policy(id string, p ratelimit.Policy) func(*ratelimit.Settings) {
	return func(s *ratelimit.Settings) { s.Clients[id] = p }
}

var clientCredentials = TokenRequest{GrantType: "client_credentials"}

// spend uses the quota up and returns the denial of the next request.
func (w *world) spend(id string, next func() TokenRequest) *LimitedError {
	w.tb.Helper()
	for range 100 {
		if limited := w.limited(id, next()); limited != nil {
			return limited
		}
	}
	require.Fail(w.tb, "no limit")
	return nil
}

// limited returns the denial, nil if the request was admitted.
func (w *world) limited(id string, req TokenRequest) *LimitedError {
	w.tb.Helper()
	answer, err := w.token(id, req)
	if err == nil {
		return nil
	}
	var limited *LimitedError
	require.ErrorAs(w.tb, err, &limited)
	require.Zero(w.tb, answer)
	return limited
}

func TestGateAnswers(t *testing.T) {
	w, _ := limitedWorld(t)
	first := w.mustToken("shop", clientCredentials)
	require.Equal(t, RateLimit{Policy: `"per-minute";q=2;w=60`, Limit: `"per-minute";r=1;t=60`}, RateLimit{
		Policy: first.RateLimit.Policy, Limit: first.RateLimit.Limit[:len(`"per-minute";r=1;t=`)] + "60",
	})
	w.mustToken("shop", clientCredentials)

	limited := w.limited("shop", clientCredentials)
	require.NotNil(t, limited)
	require.Equal(t, http.StatusTooManyRequests, limited.Status())
	require.Equal(t, TemporarilyUnavailable, limited.Code())
	seconds := limited.RetryAfterSeconds()
	require.Positive(t, seconds)
	require.Equal(t, fmt.Sprintf("Token rate limit exceeded for this client; retry after %d seconds.", seconds), limited.Description())
	require.Equal(t, first.RateLimit.Policy, limited.RateLimit.Policy)
	require.Equal(t, fmt.Sprintf(`"per-minute";r=0;t=%d`, seconds), limited.RateLimit.Limit)

	ofUser := w.spend("shop", func() TokenRequest { return w.redemption("shop", w.code("shop")) })
	require.Equal(t, fmt.Sprintf("Token rate limit exceeded for this client and user; retry after %d seconds.", ofUser.RetryAfterSeconds()), ofUser.Description())
}

// TestGateBurnsNothing: what was denied is good after Retry-After, and retrying
// early does not extend the wait. The client tries everything twice, in two
// ways, as golang.org/x/oauth2 does before it has learnt the server's.
func TestGateBurnsNothing(t *testing.T) {
	for name, prepare := range map[string]func(w *world) TokenRequest{
		"code":    func(w *world) TokenRequest { return w.redemption("shop", w.code("shop")) },
		"refresh": func(w *world) TokenRequest { return refreshing(w.tokens("shop").RefreshToken) },
		"client_credentials": func(*world) TokenRequest {
			return clientCredentials
		},
		"password": func(*world) TokenRequest {
			return TokenRequest{GrantType: "password", Username: "alice", Password: password}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := limitedWorld(t)
			req := prepare(w)
			first := w.spend("shop", func() TokenRequest {
				if name == "client_credentials" {
					return clientCredentials
				}
				return w.redemption("shop", w.code("shop"))
			})
			admitted := len(*seen) - 1
			for _, method := range []AuthMethod{AuthBasic, AuthPost, AuthBasic, AuthPost} {
				req.Credentials = w.credentials("shop")
				req.Credentials.Method = method
				_, err := w.service.Token(t.Context(), req)
				var limited *LimitedError
				require.ErrorAs(t, err, &limited)
				require.Equal(t, first.RetryAfter, limited.RetryAfter)
			}
			w.clock.advance(first.RetryAfter)
			w.mustToken("shop", req)
			require.Equal(t, admitted+6, len(*seen))
		})
	}
}

// TestGateCountsOnlyTheRightful: none of these spends anything of a quota.
func TestGateCountsOnlyTheRightful(t *testing.T) {
	w, seen := limitedWorld(t)
	tokens := w.tokens("shop")
	claimed := refreshing(tokens.RefreshToken)
	w.mustToken("shop", claimed)
	*seen = nil
	for name, req := range map[string]TokenRequest{
		"wrong secret":     {Credentials: Credentials{Method: AuthBasic, ClientID: "shop", Secret: "x"}, GrantType: "client_credentials"},
		"no secret":        {Credentials: Credentials{Method: AuthNone, ClientID: "shop"}, GrantType: "client_credentials"},
		"unknown client":   {Credentials: Credentials{Method: AuthBasic, ClientID: "x", Secret: "x"}, GrantType: "client_credentials"},
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
				var oauthErr *Error
				require.ErrorAs(t, err, &oauthErr)
			}
			require.Empty(t, *seen)
		})
	}
}

func TestGateKeysAreApart(t *testing.T) {
	w, _ := limitedWorld(t)
	ofUser := func(name string) TokenRequest {
		return TokenRequest{GrantType: "password", Username: name, Password: password}
	}
	require.NotNil(t, w.spend("shop", func() TokenRequest { return ofUser("alice") }))
	require.Nil(t, w.limited("shop", ofUser("bob")), "another user")
	require.Nil(t, w.limited("other", ofUser("alice")), "another client")
	require.Nil(t, w.limited("shop", clientCredentials), "the client itself")
	require.NotNil(t, w.limited("shop", ofUser("alice")))
}

// TestGateSparesPasswords: who is over the quota is told so before anything is
// hashed, and asking with a wrong password spends nothing.
func TestGateSparesPasswords(t *testing.T) {
	w, seen := limitedWorld(t)
	f := &failing{}
	w.reopen(func(o *Options) { f.testStore = w.store; o.Store = f })
	right := TokenRequest{GrantType: "password", Username: "alice", Password: password}
	wrong := TokenRequest{GrantType: "password", Username: "alice", Password: "x"}
	w.mustToken("shop", right)
	_, err := w.token("shop", wrong)
	requireCode(t, InvalidGrant, err)
	limited := w.spend("shop", func() TokenRequest { return right })
	require.Len(t, *seen, 4)

	f.operation, f.err = "User", errDown
	require.Equal(t, limited, w.limited("shop", right))
	require.Equal(t, limited, w.limited("shop", wrong))
	require.Zero(t, f.hits, "nobody was looked up")
	require.Len(t, *seen, 6)
	require.Equal(t, ratelimit.Denied, (*seen)[5].Decision.Outcome)

	f.operation = ""
	w.clock.advance(limited.RetryAfter)
	_, err = w.token("shop", wrong)
	requireCode(t, InvalidGrant, err)
	w.mustToken("shop", right)
}

func TestGateModes(t *testing.T) {
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
		"hidden":                {policy("shop", ratelimit.Policy{HideHeaders: true}), true, ratelimit.Denied, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := limitedWorld(t, tc.edit)
			var last error
			for range 4 {
				var answer TokenResponse
				answer, last = w.token("shop", clientCredentials)
				if last == nil {
					require.Equal(t, tc.headers, answer.RateLimit != RateLimit{})
				}
			}
			var limited *LimitedError
			require.Equal(t, tc.denied, errors.As(last, &limited))
			if tc.denied {
				require.Equal(t, tc.headers, limited.RateLimit != RateLimit{})
				require.Positive(t, limited.RetryAfter, "hidden or not, the wait is told")
			} else {
				require.NoError(t, last)
			}
			require.Len(t, *seen, 4)
			require.Equal(t, tc.last, (*seen)[3].Decision.Outcome)
			require.Equal(t, "shop", (*seen)[3].ClientID)
			require.Equal(t, clientcfg.ClientCredentials, (*seen)[3].Grant)
		})
	}
}

// TestGateTriesCandidates: limits that are tried out deny nobody, and what they
// would have denied is told.
func TestGateTriesCandidates(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	one := []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	set := clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{Client: one})
	w, seen := policyWorld(t, settings, set)
	for i, want := range []bool{false, true, true} {
		w.mustToken("shop", clientCredentials)
		require.Equal(t, want, (*seen)[i].CandidateDenies)
		require.True(t, (*seen)[i].CandidateAsked)
		require.Equal(t, ratelimit.Allowed, (*seen)[i].Decision.Outcome)
	}
	for range 3 {
		w.tokens("shop") // the candidate is for the client alone
		w.mustToken("other", clientCredentials)
	}
	for _, d := range (*seen)[3:] {
		require.False(t, d.CandidateDenies)
		require.False(t, d.CandidateAsked)
	}
}

// TestGateIsExact: of many at once, exactly as many pass as the limit says.
func TestGateIsExact(t *testing.T) {
	w, _ := limitedWorld(t, policy("shop", ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("l", 10, time.Hour)}}))
	var observed atomic.Int64
	w.reopen(func(o *Options) { o.Observe = func(context.Context, Decided) { observed.Add(1) } })
	passed, failures := atOnce(100, func() error { _, err := w.token("shop", clientCredentials); return err })
	require.Equal(t, 10, passed)
	for _, err := range failures {
		var limited *LimitedError
		require.ErrorAs(t, err, &limited)
	}
	require.EqualValues(t, 100, observed.Load())
}

func TestLimitedErrorCountsSeconds(t *testing.T) {
	w, _ := limitedWorld(t)
	limited := w.spend("shop", func() TokenRequest { return clientCredentials })
	w.clock.advance(limited.RetryAfter - time.Second)
	almost := w.limited("shop", clientCredentials)
	require.NotNil(t, almost)
	require.Equal(t, "Token rate limit exceeded for this client; retry after 1 second.", almost.Description())
	require.ErrorContains(t, almost, "retry after 1 second")
}

func TestLimiterOptionsGoTogether(t *testing.T) {
	w := newWorld(t)
	good := Options{Issuer: issuer, Clients: w, Store: w.store, Signer: w.ring}
	counters := good
	counters.Counters = ratelimit.NewCounters(1)
	_, err := New(counters)
	require.ErrorContains(t, err, "together")
	bad := good
	bad.SignInFailures.PerName = ratelimit.NewLimit("x", -1, time.Minute)
	_, err = New(bad)
	require.ErrorContains(t, err, "wrong passwords")
	bad = good
	bad.ClientFailures.PerAddress = ratelimit.NewLimit("x", 1, 0)
	_, err = New(bad)
	require.ErrorContains(t, err, "client authentications")
}
