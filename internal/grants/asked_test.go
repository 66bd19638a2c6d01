package grants_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// TestGateTellsGrants: a limit for refreshes counts only refreshes, and denies one without
// consuming its token.
func TestGateTellsGrants(t *testing.T) {
	refreshes := ratelimit.NewLimit("refreshes", 2, time.Minute)
	refreshes.Grants = ratelimit.GrantRefresh
	w, _ := policyWorld(t, ratelimit.DefaultSettings(), clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{refreshes}},
	}))
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
		_, err := w.token("shop", ofAlice())
		check.OK(t, err)
	}
	w.clock.Advance(2 * time.Minute)
	_, err := w.token("shop", refreshing(token))
	check.OK(t, err)
}

// TestGateCountsSources: requests from one address count together, whoever the user is. IPv6
// addresses count by their /64. Only requests of an authenticated client count. The denial names
// the address.
func TestGateCountsSources(t *testing.T) {
	w, _ := policyWorld(t, ratelimit.DefaultSettings(), clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{
		Policy: ratelimit.Policy{Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 2, time.Minute)}},
	}))
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
			req = from(address, ofAlice())
		}
		denial := w.limited("shop", req)
		check.Equal(t, "denied from "+address, denial != nil, i == 2)
		if denial != nil && (denial.Limit != "per-address" || !strings.Contains(denial.Description(), "from this address")) {
			t.Error(denial.Limit, denial.Description())
		}
	}
	wrongPassword := from("2001:db8::4", grants.TokenRequest{GrantType: "password", Username: "alice", Password: "wrong"})
	if w.limited("shop", wrongPassword) == nil {
		t.Error("a wrong password is checked although the source is over its limit")
	}
	check.Equal(t, "another network", w.limited("shop", from("2001:db8:0:1::1", clientCredentials)) == nil, true)
	check.Equal(t, "IPv4", w.limited("shop", from("192.0.2.1", clientCredentials)) == nil, true)
}
