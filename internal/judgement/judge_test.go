package judgement_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/judgement"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/testworld"
)

// judge admits one request a minute of each user. It notes the user and the outcome of each decision.
func judge(t *testing.T) (*judgement.Judge, *[]string) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	seen := &[]string{}
	return judgement.New(judgement.Options{
		Counters: ratelimit.NewCounters(0),
		Policies: func() *clientcfg.PolicySnapshot { return policies },
		Clock:    func() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) },
		Observe: func(_ context.Context, d judgement.Decided) {
			*seen = append(*seen, d.Username+" "+d.Decision.Outcome.String())
		},
	}), seen
}

// TestGiveBack: a request that got nothing does not count.
func TestGiveBack(t *testing.T) {
	j, seen := judge(t)
	ada := judgement.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: clientcfg.RefreshToken}
	first := j.Admit(t.Context(), ada)
	j.Admit(t.Context(), ada)
	j.GiveBack(ada.Key, &first)
	j.Admit(t.Context(), ada)
	if diff := cmp.Diff([]string{"ada allowed", "ada denied", "ada allowed"}, *seen); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

// TestUnprovenNames: what may be a password in the field for the name is passed to nobody, but the name of a user who
// has counts is.
func TestUnprovenNames(t *testing.T) {
	j, seen := judge(t)
	ada := judgement.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: clientcfg.Password, Unproven: true}
	_, denied := j.Denied(t.Context(), ada)
	check.Equal(t, "denied", denied, false)
	j.Admit(t.Context(), ada)
	_, denied = j.Denied(t.Context(), ada)
	check.Equal(t, "denied at its limit", denied, true)
	j.StopWaiting()
	if diff := cmp.Diff([]string{"ada allowed", "ada denied"}, *seen); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}
