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
	"oauth-server/internal/limiter/bans"
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

// banning is a ban of every key.
type banning struct{ limiter.Bans }

func (banning) Decide(time.Time, ratelimit.Key, *ratelimit.Effective) (ratelimit.Decision, bool) {
	return ratelimit.ByBan(time.Minute, ratelimit.Enforce), true
}

// TestUnprovenNames: a name that may be a password in the wrong field is not passed to the
// observer. The name of a user with counts or a ban is.
func TestUnprovenNames(t *testing.T) {
	j, seen := limiterOf(t)
	ada := limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "password", Unproven: true}
	_, denied := j.Denied(t.Context(), ada)
	check.Equal(t, "denied", denied, false)
	j.Admit(t.Context(), ada)
	_, denied = j.Denied(t.Context(), ada)
	check.Equal(t, "denied at its limit", denied, true)
	j.StopWaiting()
	j.Bans = banning{}
	bob := ada
	bob.Key.Username = "bob"
	_, denied = j.Denied(t.Context(), bob)
	check.Equal(t, "denied by a ban", denied, true)
	wantSeen(t, seen, "ada allowed", "ada denied", "bob banned")
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
		tried clientcfg.Value
		want  string
	}{
		"of the client itself": {clientcfg.Value{Policy: ratelimit.Policy{Client: one}}, " allowed, tried allowed"},
		"the total":            {clientcfg.Value{Policy: ratelimit.Policy{Total: one}}, " allowed, tried would_deny"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.tried.Since = time.Date(2026, 11, 24, 11, 0, 0, 0, time.UTC)
			set := testworld.Tried("shop", tt.tried)
			j, seen := limiterUnder(testworld.Policies(t, ratelimit.DefaultSettings(), set))
			for range 2 {
				v := j.Reserve(t.Context(), unknown())
				j.Settle(t.Context(), &v, "")
			}
			check.Equal(t, "the second request", (*seen)[1], tt.want)
		})
	}
}

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
	set := testworld.Tried("shop", clientcfg.Value{
		Policy: ratelimit.Policy{User: []ratelimit.Limit{ratelimit.NewLimit("two", 2, time.Minute)}},
		Since:  time.Date(2026, 11, 24, 11, 0, 0, 0, time.UTC),
	})
	j, seen := limiterUnder(testworld.Policies(t, settings, set))
	for _, n := range []int{1, 0, 0, 1} {
		j.AdmitAll(t.Context(), []limiter.Weighted{hits("ada", n)})
	}
	wantSeen(t, seen, "ada allowed, tried allowed", "ada denied", "ada denied", "ada denied, tried allowed")
}

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
	set := testworld.Tried("shop", clientcfg.Value{
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
