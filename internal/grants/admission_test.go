package grants_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// doorkeeper is a shedder that records the requests it was asked about, and refuses them while it is
// shut.
type doorkeeper struct {
	shut   bool
	asked  []overload.Request
	inside int
}

func (d *doorkeeper) Admit(_ context.Context, r *overload.Request) (overload.Rank, error) {
	d.asked = append(d.asked, *r)
	if d.shut {
		return 0, &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Processor}
	}
	d.inside++
	return 1, nil
}

func (d *doorkeeper) Leave() { d.inside-- }

func (d *doorkeeper) Starved(context.Context) error {
	return &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Processor}
}

func overloadedWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *doorkeeper, *[]limiter.Decided) {
	t.Helper()
	w, seen := limitedWorld(t, edits...)
	gate := &doorkeeper{}
	w.reopen(func(o *grants.Options) { o.Shedder = gate })
	return w, gate, seen
}

// TestOverloadedGrants: a request shed under overload gets a retry time, spends no quota, hashes no
// password, and leaves its code and refresh token valid.
func TestOverloadedGrants(t *testing.T) {
	w, gate, seen := overloadedWorld(t)
	code, tokens := w.code("shop"), w.tokens("shop")
	requests := []grants.TokenRequest{
		refreshing(tokens.RefreshToken), w.redemption("shop", code), clientCredentials,
		{GrantType: "password", Username: "alice", Password: "wrong"},
	}
	decided := len(*seen)
	gate.shut, gate.asked = true, nil
	for range 5 { // more than any limit
		for _, req := range requests {
			_, err := w.token("shop", req)
			refused := check.As[*grants.Error](t, err)
			if refused.Code != oautherr.TemporarilyUnavailable || refused.RetryAfter != 7*time.Second {
				t.Errorf("%s: %v, retry after %v", req.GrantType, err, refused.RetryAfter)
			}
		}
	}
	_, err := w.service.Introspect(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.AccessToken})
	check.Equal(t, "introspection", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	err = w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.RefreshToken})
	check.Equal(t, "revocation", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	_, _, err = w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong"})
	check.Equal(t, "sign-in", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	check.Equal(t, "decisions of the limiter", len(*seen)-decided, 0)
	check.Equal(t, "requests inside", gate.inside, 0)

	gate.shut = false
	w.mustToken("shop", requests[0])
	w.mustToken("shop", requests[1])
	w.mustToken("shop", clientCredentials)
	check.Equal(t, "requests inside in the end", gate.inside, 0)
}

// TestNothingStaysInside: every admitted request leaves the shedder, whatever its outcome.
func TestNothingStaysInside(t *testing.T) {
	w, gate, _ := overloadedWorld(t)
	tokens := w.tokens("shop")
	query := grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.AccessToken}
	for name, send := range map[string]func() error{
		"introspection": func() error { _, err := w.service.Introspect(t.Context(), query); return err },
		"sign-in": func() error {
			_, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
			return err
		},
		"wrong sign-in": func() error {
			if _, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong"}); err == nil {
				return errors.New("a wrong password is accepted")
			}
			return nil
		},
		"client_credentials": func() error { _, err := w.token("shop", clientCredentials); return err },
	} {
		asked := len(gate.asked)
		check.OK(t, send(), name)
		check.Equal(t, name+": asked", len(gate.asked)-asked, 1)
		check.Equal(t, name+": inside", gate.inside, 0)
	}
	check.OK(t, w.service.Revoke(t.Context(), query))
	check.Equal(t, "revocation: inside", gate.inside, 0)
}

// TestGarbageIsNotCritical: a grant that this server has not issued is refused without asking the
// gate, for every client. For a client that proves nothing, the shedder gets the source of the
// request.
func TestGarbageIsNotCritical(t *testing.T) {
	w, gate, _ := overloadedWorld(t)
	code := w.code("app")
	gate.asked, gate.shut = nil, true
	for name, req := range map[string]grants.TokenRequest{
		"a guessed code": {GrantType: "authorization_code", Code: secret.New()},
		"garbage":        refreshing("garbage"), "none": refreshing(""), "another MAC": refreshing(strings.Repeat("A", 59)),
		"no code": {GrantType: "authorization_code"}, "garbage for a code": {GrantType: "authorization_code", Code: "garbage"},
		"no password": {GrantType: "password", Username: "alice"},
	} {
		for _, client := range []string{"shop", "app"} {
			if client == "app" && req.GrantType == "password" {
				continue // the client may not use the grant
			}
			_, err := w.token(client, req)
			if code := check.As[*grants.Error](t, err).Code; code != oautherr.InvalidGrant && code != oautherr.InvalidRequest {
				t.Errorf("%s of %s: %v", name, client, err)
			}
		}
	}
	check.Equal(t, "asked", len(gate.asked), 0)
	remote := netip.MustParseAddr("192.0.2.7")
	_, err := w.token("app", grants.TokenRequest{GrantType: "authorization_code", Code: code, Remote: remote})
	check.Equal(t, "a code", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	check.Equal(t, "asked about", gate.asked, []overload.Request{{ClientID: "app", Class: overload.Code, Source: limiter.SourceOf(remote)}})
}

// TestTooMuchGarbageIsNotCritical: an address with too many invalid grants is refused without
// asking the shedder.
func TestTooMuchGarbageIsNotCritical(t *testing.T) {
	w, gate, _ := overloadedWorld(t)
	w.reopen(func(o *grants.Options) {
		o.InvalidGrants.PerAddress, o.InvalidGrants.PerName = ratelimit.NewLimit("a", 1, time.Minute), ratelimit.NewLimit("b", 1, time.Minute)
	})
	req := refreshing(secret.New())
	req.Remote = netip.MustParseAddr("192.0.2.7")
	for range 2 {
		if _, err := w.token("app", req); err == nil {
			t.Fatal("garbage is accepted")
		}
	}
	gate.shut, gate.asked = true, nil
	_, err := w.token("app", req)
	check.Equal(t, "limit", check.As[*oautherr.LimitedError](t, err).QuotaExceeded, false)
	check.Equal(t, "asked", len(gate.asked), 0)
}

// TestOverloadSpendsNoQueries: a shed introspection does not count against the client's limit.
func TestOverloadSpendsNoQueries(t *testing.T) {
	w, gate, _ := overloadedWorld(t)
	w.reopen(func(o *grants.Options) { o.Introspections = ratelimit.NewLimit("few", 1, time.Minute) })
	query := grants.TokenQuery{Credentials: w.credentials("shop"), Token: "x"}
	gate.shut = true
	for range 3 {
		_, err := w.service.Introspect(t.Context(), query)
		check.Equal(t, "refused", check.As[*grants.Error](t, err).RetryAfter, 7*time.Second)
	}
	gate.shut = false
	_, err := w.service.Introspect(t.Context(), query)
	check.OK(t, err)
}

// TestGateIsAskedAboutProvenClients: the shedder sees only authenticated clients, with the values of
// their policies.
func TestGateIsAskedAboutProvenClients(t *testing.T) {
	w, gate, _ := overloadedWorld(t, policy("shop", ratelimit.Policy{Criticality: ratelimit.Sheddable}), policy("caller", ratelimit.Policy{Trusted: true}))
	w.mustToken("shop", clientCredentials)
	w.mustToken("caller", clientCredentials)
	w.mustToken("other", clientCredentials)
	wrong := clientCredentials
	wrong.Credentials = w.credentials("shop")
	wrong.Credentials.Secret = "wrong"
	if _, err := w.service.Token(t.Context(), wrong); err == nil {
		t.Fatal("a wrong secret is accepted")
	}
	want := []overload.Request{
		{ClientID: "shop", Class: overload.ClientCredentials, Criticality: ratelimit.Sheddable},
		{ClientID: "caller", Class: overload.ClientCredentials, Trusted: true},
		{ClientID: "other", Class: overload.ClientCredentials},
	}
	check.Equal(t, "asked about", gate.asked, want)
}
