package clientcfg_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// TestPolicySourceStartsWithWhatCanBeUsed: what cannot be has the value of before, as the trail has it, or
// that of the configuration file. Until all can be used, the source says so, and changes nothing.
func TestPolicySourceStartsWithWhatCanBeUsed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings string
		spoil    func(f *policyStore)
		shop     int64
		mode     ratelimit.Mode
	}{
		{"invalid", `{"canary_percent":101}`, func(*policyStore) {}, 5, ratelimit.DryRun},
		{"of a newer release", `{"mode":"off","until":"tomorrow"}`, func(*policyStore) {}, 5, ratelimit.DryRun},
		{"swept", `{"mode":"off","until":"tomorrow"}`, func(f *policyStore) { f.trail = nil }, 7, ratelimit.Enforce},
		{"the entry cannot be read either", `{"mode":"?"}`, func(f *policyStore) { f.trail, f.spoiled = nil, clientcfg.ErrUnreadable }, 7, ratelimit.Enforce},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			store := &policyStore{}
			settings := stored("settings", tt.settings)
			settings.Before = []byte(`{"mode":"dry_run"}`)
			shop := broken()
			shop.Before = shopHas(5).After
			store.put(settings, shop, stored("policies/web", `{"user":[{"requests":6}]}`), stored("users/ada", "{}"))
			tt.spoil(store)
			s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{
				Base: fileSettings(), Now: func() time.Time { return now },
			})
			requireError(t, err, "")
			check.Equal(t, "limit of shop", userLimit(s, "shop"), tt.shop)
			check.Equal(t, "limit of web", userLimit(s, "web"), 6)
			check.Equal(t, "mode", s.Snapshot().For("web").Mode, tt.mode)
			check.Equal(t, "since when they are not the newest", s.Status().CheckedAt, now)
			for range 3 {
				check.Equal(t, "refused", s.Status().Refused(), true)
				now = now.Add(20 * time.Second)
				if s.Refresh(t.Context()) == nil {
					t.Error("refreshed")
				}
			}
			_, err = s.Change(t.Context(), limitShop(9))
			if err == nil {
				t.Error("changed")
			}
			store.spoiled = nil
			store.put(stored("settings", `{"mode":"off"}`), shopHas(4), stored("users/ada", "null"))
			requireError(t, s.Refresh(t.Context()), "")
			check.Equal(t, "limit of shop", userLimit(s, "shop"), 4)
			check.Equal(t, "refused", s.Status().Refused(), false)
		})
	}
}
