package limiter_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
)

// withBans enables the bans of policies.
func withBans(t *testing.T, j *limiter.Limiter) {
	t.Helper()
	var err error
	j.Bans, err = bans.New(t.Context(), bans.Options{Counters: j.Counters, Clock: j.Clock, Began: func(bans.Ban, ratelimit.Mode) {}})
	check.OK(t, err)
}

// TestCandidateOfReservations: denied reservations do not count towards a ban, not even a
// candidate's.
func TestCandidateOfReservations(t *testing.T) {
	ban := ratelimit.DefaultBan()
	ban.Denials = 1
	set := clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{ratelimit.NewLimit("one", 1, time.Minute)}, Ban: &ban},
		Since:  time.Date(2026, 11, 24, 11, 0, 0, 0, time.UTC),
	})
	j, seen := limiterUnder(testworld.Policies(t, ratelimit.DefaultSettings(), set))
	withBans(t, j)
	for range 3 {
		v := j.Reserve(t.Context(), limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "refresh_token"})
		j.Settle(t.Context(), &v, "ada")
	}
	wantSeen(t, seen, "ada allowed, tried allowed", "ada allowed, tried would_deny", "ada allowed, tried would_deny")
}

// TestUnknownUsersAreNotTheClient: a ban of the client itself does not apply to its unknown users.
func TestUnknownUsersAreNotTheClient(t *testing.T) {
	settings, ban := ratelimit.DefaultSettings(), ratelimit.DefaultBan()
	ban.Denials = 1
	settings.Default.Client, settings.Default.Ban = []ratelimit.Limit{ratelimit.NewLimit("one", 1, time.Minute)}, &ban
	j, _ := limiterBy(t, settings)
	withBans(t, j)
	itself := limiter.Request{Key: ratelimit.Key{ClientID: "shop"}, Grant: "client_credentials"}
	j.Admit(t.Context(), itself)
	wantRejected(t, "the client over its limit", j, itself, true)
	_, denied := j.Denied(t.Context(), itself)
	check.Equal(t, "the client would be denied", denied, true)
	_, denied = j.Denied(t.Context(), unknown())
	check.Equal(t, "a user would be denied", denied, false)
	check.Equal(t, "a user is denied", j.AdmitAll(t.Context(), []limiter.Weighted{{Request: unknown(), Hits: 1}})[0].Rejected(), false)
}
