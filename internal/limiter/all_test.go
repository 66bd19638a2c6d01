package limiter_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

// hits is a request of a user that counts n times.
func hits(user string, n int) limiter.Weighted {
	return limiter.Weighted{Request: limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: user}, Grant: "refresh_token"}, Hits: n}
}

// TestAdmitAll: requests pass together or not at all. If one is rejected, the reservations of the
// others are cancelled.
func TestAdmitAll(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 3, time.Minute)}
	settings.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 3, time.Minute)}
	settings.Default.Total = []ratelimit.Limit{ratelimit.NewLimit("all", 5, time.Minute)}
	j, seen := limiterBy(t, settings)
	for i, step := range []struct {
		asked []limiter.Weighted
		want  []bool // rejected
	}{
		{[]limiter.Weighted{hits("ada", 2), hits("bob", 1)}, []bool{false, false}},
		{[]limiter.Weighted{hits("bob", 1), hits("ada", 2)}, []bool{false, true}}, // ada has room for one
		{[]limiter.Weighted{hits("ada", 0)}, []bool{false}},
		{[]limiter.Weighted{hits("ada", 1), hits("bob", 1)}, []bool{false, false}},
		{[]limiter.Weighted{hits("bob", 0), hits("cy", 1)}, []bool{true, true}}, // five in all
	} {
		for k, d := range j.AdmitAll(t.Context(), step.asked) {
			if d.Rejected() != step.want[k] {
				t.Errorf("step %d, request %d: %v", i+1, k+1, d.Outcome)
			}
		}
	}
	wantSeen(t, seen, "ada allowed", "ada allowed", "bob allowed", "ada denied", "ada allowed", "bob allowed", "bob denied", " denied")
	check.Equal(t, "nothing asked", len(j.AdmitAll(t.Context(), nil)), 0)
}

// TestAskedOverTheLimit: with Hits 0, a request that would wait is not denied, but one without a
// place in the queue is.
func TestAskedOverTheLimit(t *testing.T) {
	settings, longest := ratelimit.DefaultSettings(), ratelimit.Duration(10*time.Second)
	settings.Default.MaxWait = &longest
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("one", 1, time.Second), ratelimit.NewLimit("per-minute", 100, time.Minute)}
	j, seen := limiterBy(t, settings)
	check.Equal(t, "has room", j.AdmitAll(t.Context(), []limiter.Weighted{hits("ada", 1)})[0].Rejected(), false)
	check.Equal(t, "would wait", j.AdmitAll(t.Context(), []limiter.Weighted{hits("ada", 0)})[0].Rejected(), false)
	j.StopWaiting()
	check.Equal(t, "has no place", j.AdmitAll(t.Context(), []limiter.Weighted{hits("ada", 0)})[0].Rejected(), true)
	wantSeen(t, seen, "ada allowed", "ada denied")
}

// TestAskingIsNotTried: a request with Hits 0 is not counted by a candidate either.
func TestAskingIsNotTried(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	set := clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{ratelimit.NewLimit("two", 2, time.Minute)}},
		Since:  time.Date(2026, 11, 24, 11, 0, 0, 0, time.UTC),
	})
	j, seen := limiterUnder(testworld.Policies(t, settings, set))
	for _, n := range []int{1, 0, 0, 1} {
		j.AdmitAll(t.Context(), []limiter.Weighted{hits("ada", n)})
	}
	wantSeen(t, seen, "ada allowed, tried allowed", "ada denied", "ada denied", "ada denied, tried allowed")
}
