package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// limiterOf admits one request a minute of each user. It records the user and the outcome of each
// decision.
func limiterOf(t *testing.T) (*limiter.Limiter, *[]string) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	return limiterBy(t, settings)
}

func limiterBy(t *testing.T, settings ratelimit.Settings) (*limiter.Limiter, *[]string) {
	t.Helper()
	return limiterUnder(testworld.Policies(t, settings, clientcfg.PolicySet{}))
}

func limiterUnder(policies *clientcfg.PolicySnapshot) (*limiter.Limiter, *[]string) {
	seen := &[]string{}
	return limiter.New(limiter.Options{
		Counters: counting.NewCounters(0),
		Policies: func() limiter.Policies { return policies },
		Clock:    func() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) },
		Observe: func(_ context.Context, d limiter.Decided) {
			said := d.Username + " " + d.Decision.Outcome.String()
			if !d.Tried.Since.IsZero() {
				said += ", tried " + d.Tried.Outcome.String()
			}
			*seen = append(*seen, said)
		},
	}), seen
}

// wantRejected requests a token.
func wantRejected(t *testing.T, what string, j *limiter.Limiter, r limiter.Request, want bool) {
	t.Helper()
	admission := j.Admit(t.Context(), r)
	check.Equal(t, what, admission.Rejected(), want)
}

func wantSeen(t *testing.T, seen *[]string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, *seen, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

// TestGiveBack: a request without a result does not count.
func TestGiveBack(t *testing.T) {
	j, seen := limiterOf(t)
	ada := limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "refresh_token"}
	first := j.Admit(t.Context(), ada)
	j.Admit(t.Context(), ada)
	j.GiveBack(ada.Key, &first)
	j.Admit(t.Context(), ada)
	wantSeen(t, seen, "ada allowed", "ada denied", "ada allowed")
}

// TestUnprovenNames: a name that may be a password in the wrong field is not passed to the
// observer. The name of a user with counts is.
func TestUnprovenNames(t *testing.T) {
	j, seen := limiterOf(t)
	ada := limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "password", Unproven: true}
	_, denied := j.Denied(t.Context(), ada)
	check.Equal(t, "denied", denied, false)
	j.Admit(t.Context(), ada)
	_, denied = j.Denied(t.Context(), ada)
	check.Equal(t, "denied at its limit", denied, true)
	j.StopWaiting()
	wantSeen(t, seen, "ada allowed", "ada denied")
}

// unknown is a request of an unknown user.
func unknown() limiter.Request {
	return limiter.Request{Key: ratelimit.Key{ClientID: "shop"}, Grant: "authorization_code", Unknown: true}
}

// TestSettle: a request counts against the user of its token.
func TestSettle(t *testing.T) {
	ada := limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "refresh_token"}
	t.Run("a user who was not known", func(t *testing.T) {
		j, seen := limiterOf(t)
		v := j.Reserve(t.Context(), unknown())
		_, late := j.Settle(t.Context(), &v, "ada")
		check.Equal(t, "late", late, false)
		wantRejected(t, "rejected", j, ada, true)
		wantSeen(t, seen, "ada allowed", "ada denied")
	})
	t.Run("another one than was expected", func(t *testing.T) {
		j, seen := limiterOf(t)
		v := j.Reserve(t.Context(), ada)
		j.Settle(t.Context(), &v, "bob")
		wantRejected(t, "ada rejected", j, ada, false)
		bob := ada
		bob.Key.Username = "bob"
		wantRejected(t, "bob rejected", j, bob, true)
		wantSeen(t, seen, "bob allowed", "ada allowed", "bob denied")
	})
	t.Run("a user without room", func(t *testing.T) {
		j, seen := limiterOf(t)
		j.Admit(t.Context(), ada)
		v := j.Reserve(t.Context(), unknown())
		d, late := j.Settle(t.Context(), &v, "ada")
		check.Equal(t, "late", late, true)
		check.Equal(t, "rejected", d.Rejected(), false)
		wantSeen(t, seen, "ada allowed", "ada allowed")
	})
}

// TestCancel: a cancelled reservation uses no quota and is not observed.
func TestCancel(t *testing.T) {
	ada := limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "password"}
	j, seen := limiterOf(t)
	for range 10 {
		v := j.Reserve(t.Context(), ada)
		check.Equal(t, "rejected", v.Rejected(), false)
		j.Cancel(&v)
	}
	wantSeen(t, seen)
	v := j.Reserve(t.Context(), ada)
	second := j.Reserve(t.Context(), ada)
	check.Equal(t, "rejected while one is under way", second.Rejected(), true)
	j.Settle(t.Context(), &v, "ada")
	wantSeen(t, seen, "ada denied", "ada allowed")
}

// TestSettleInDryRun: the counts, and so the predictions, equal those under enforcement.
func TestSettleInDryRun(t *testing.T) {
	settings := ratelimit.DefaultSettings()
	settings.Mode = ratelimit.DryRun
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("user", 1, time.Minute)}
	settings.Default.Client = settings.Default.User
	settings.Default.Total = []ratelimit.Limit{ratelimit.NewLimit("total", 2, time.Minute)}
	j, seen := limiterBy(t, settings)
	for range 3 {
		v := j.Reserve(t.Context(), unknown())
		j.Settle(t.Context(), &v, "ada")
	}
	wantSeen(t, seen, "ada allowed", "ada allowed", "ada would_deny")
}

// TestCandidateOfUnknownUsers: candidate limits for the client itself do not count requests of
// users who stay unknown.
func TestCandidateOfUnknownUsers(t *testing.T) {
	one := []ratelimit.Limit{ratelimit.NewLimit("one", 1, time.Minute)}
	for name, tt := range map[string]struct {
		tried clientcfg.Candidate
		want  string
	}{
		"of the client itself": {clientcfg.Candidate{Policy: ratelimit.Policy{Client: one}}, " allowed, tried allowed"},
		"the total":            {clientcfg.Candidate{Policy: ratelimit.Policy{Total: one}}, " allowed, tried would_deny"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.tried.Since = time.Date(2026, 11, 24, 11, 0, 0, 0, time.UTC)
			set := clientcfg.PolicySet{}.WithCandidate("shop", &tt.tried)
			j, seen := limiterUnder(testworld.Policies(t, ratelimit.DefaultSettings(), set))
			for range 2 {
				v := j.Reserve(t.Context(), unknown())
				j.Settle(t.Context(), &v, "")
			}
			check.Equal(t, "the second request", (*seen)[1], tt.want)
		})
	}
}
