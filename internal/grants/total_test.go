package grants_test

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// TestGateCountsTotals: requests of users and of the client itself count against the client's
// total, and the denial says so, also before the password check.
func TestGateCountsTotals(t *testing.T) {
	total := clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{
		Total: []ratelimit.Limit{ratelimit.NewLimit("all-users", 2, time.Minute)},
	}})
	w, _ := policyWorld(t, ratelimit.DefaultSettings(), total)
	for i := range 3 {
		denial := w.limited("shop", grants.TokenRequest{GrantType: "password", Username: "alice", Password: password})
		check.Equal(t, "denied", denial != nil, i >= 2)
	}
	denial := w.limited("shop", grants.TokenRequest{GrantType: "password", Username: "alice", Password: "wrong"})
	if denial == nil {
		t.Fatal("a wrong password is checked although the total is used up")
	}
	check.Equal(t, "limit", denial.Limit, "all-users")
	check.Equal(t, "violated", strings.Join(denial.Violated, ","), "all-users")
	if !strings.Contains(denial.Description(), "all its users together") {
		t.Error(denial.Description())
	}
}
