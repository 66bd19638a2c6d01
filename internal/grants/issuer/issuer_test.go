package issuer

import (
	"context"
	"strings"
	"testing"

	"github.com/go-oauth2/oauth2/v4"

	"oauth-server/internal/check"
	"oauth-server/internal/keys"
)

// recorder signs and stores, and records the order.
type recorder struct {
	steps             []string
	failSign, failPut error
}

func (r *recorder) Sign(c keys.Claims) (string, error) {
	r.steps = append(r.steps, "sign")
	return "token of " + c.Subject, r.failSign
}

func (r *recorder) store(context.Context) error {
	r.steps = append(r.steps, "store")
	return r.failPut
}

var (
	ofUser   = keys.Claims{ClientID: "shop", Subject: "alice", Family: "f"}
	ofClient = keys.Claims{ClientID: "shop", Subject: "shop"}
)

func TestIssue(t *testing.T) {
	for name, tc := range map[string]struct {
		claims  keys.Claims
		refresh string
	}{
		"user, with a refresh token":    {ofUser, "the next"},
		"user, without a refresh token": {ofUser, ""},
		"client":                        {ofClient, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			access, refresh, err := New(r).Issue(t.Context(), Request{Claims: tc.claims, Refresh: tc.refresh, Store: r.store})
			check.OK(t, err)
			check.Equal(t, "access token", access, "token of "+tc.claims.Subject)
			check.Equal(t, "refresh token", refresh, tc.refresh)
			check.Equal(t, "steps", r.steps, []string{"sign", "store"})
		})
	}
}

// unhashable is an error that cannot be a map key, as some drivers return.
type unhashable []string

func (u unhashable) Error() string { return strings.Join(u, ", ") }

// TestRefreshTokenNeedsAFamily: without a family, nothing is signed or stored.
func TestRefreshTokenNeedsAFamily(t *testing.T) {
	r := &recorder{}
	access, refresh, err := New(r).Issue(t.Context(), Request{Claims: ofClient, Refresh: "the next", Store: r.store})
	if access != "" || refresh != "" || err == nil || len(r.steps) > 0 {
		t.Errorf("Issue() = %q, %q, %v after %v, want an error and no step", access, refresh, err, r.steps)
	}
}

// TestFailuresIssueNothing: the error is returned unchanged, without a token, and a signing failure
// stores nothing.
func TestFailuresIssueNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		recorder recorder
		steps    []string
	}{
		"signing fails": {recorder{failSign: unhashable{"down"}}, []string{"sign"}},
		"storing fails": {recorder{failPut: unhashable{"down"}}, []string{"sign", "store"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.recorder
			access, refresh, err := New(&r).Issue(t.Context(), Request{Claims: ofUser, Refresh: "the next", Store: r.store})
			check.Equal(t, "tokens", access+refresh, "")
			_ = check.As[unhashable](t, err)
			check.Equal(t, "steps", r.steps, tc.steps)
		})
	}
}

// TestNoSecretIsComparedAgain: the library compares the client's secret with !=, unless it is
// empty. The caller has already compared it in constant time.
func TestNoSecretIsComparedAgain(t *testing.T) {
	client, err := (&adapter{}).GetByID(t.Context(), "shop")
	check.OK(t, err)
	if client.GetID() != "shop" || client.GetSecret() != "" {
		t.Errorf("client %q with the secret %q, want \"shop\" without one", client.GetID(), client.GetSecret())
	}
	if _, compares := client.(oauth2.ClientPasswordVerifier); compares {
		t.Error("the client compares a secret")
	}
}
