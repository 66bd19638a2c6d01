package grants_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admission"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// doorkeeper is a gate that notes whom it was asked about, and refuses them while it is shut.
type doorkeeper struct {
	shut   bool
	asked  []admission.Request
	inside int
}

func (d *doorkeeper) Admit(_ context.Context, r *admission.Request) (admission.Rank, error) {
	d.asked = append(d.asked, *r)
	if d.shut {
		return 0, &admission.ShedError{RetryAfter: 7 * time.Second, Short: admission.Processor}
	}
	d.inside++
	return 1, nil
}

func (d *doorkeeper) Leave() { d.inside-- }

func overloadedWorld(t *testing.T, edits ...func(*ratelimit.Settings)) (*world, *doorkeeper, *[]grants.Decided) {
	t.Helper()
	w, seen := limitedWorld(t, edits...)
	gate := &doorkeeper{}
	w.reopen(func(o *grants.Options) { o.Gate = gate })
	return w, gate, seen
}

// TestOverloadedGrants: what is refused because the server is overloaded is answered with the time to try again,
// spends no quota, costs no password, and leaves code and refresh token valid.
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
			refused := as[*grants.Error](t, err)
			if refused.Code != grants.TemporarilyUnavailable || refused.RetryAfter != 7*time.Second {
				t.Errorf("%s: %v, retry after %v", req.GrantType, err, refused.RetryAfter)
			}
		}
	}
	_, err := w.service.Introspect(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.AccessToken})
	check.Equal(t, "introspection", as[*grants.Error](t, err).RetryAfter, 7*time.Second)
	err = w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.RefreshToken})
	check.Equal(t, "revocation", as[*grants.Error](t, err).RetryAfter, 7*time.Second)
	_, _, err = w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: "wrong"})
	check.Equal(t, "sign-in", as[*grants.Error](t, err).RetryAfter, 7*time.Second)
	check.Equal(t, "decisions of the limiter", len(*seen)-decided, 0)
	check.Equal(t, "requests inside", gate.inside, 0)

	gate.shut = false
	w.mustToken("shop", requests[0])
	w.mustToken("shop", requests[1])
	w.mustToken("shop", clientCredentials)
	check.Equal(t, "requests inside in the end", gate.inside, 0)
}

// TestGateIsAskedAboutProvenClients, with what their policy says, and about no others.
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
	want := []admission.Request{
		{ClientID: "shop", Class: admission.ClientCredentials, Criticality: ratelimit.Sheddable},
		{ClientID: "caller", Class: admission.ClientCredentials, Trusted: true},
		{ClientID: "other", Class: admission.ClientCredentials},
	}
	if diff := cmp.Diff(want, gate.asked); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
}
