package clientcfg_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/strict/fielderr"
)

// otherFile is fileSettings after an edit: another default, one client less and one more.
func otherFile() ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Mode, s.Default.User = ratelimit.DryRun, limits(70)
	s.Clients = map[string]ratelimit.Policy{"new": {User: limits(71)}, "app": {Trusted: true}}
	return s
}

// TestRebaseIsAsAStartWithThatFile: the result of changes on top of another file is the same,
// whether the file was there at the start or came later. Later changes work as usual.
func TestRebaseIsAsAStartWithThatFile(t *testing.T) {
	store := newPolicyStore(t)
	store.put(shopHas(5), stored("settings", `{"client":[{"requests":9}],"note":"x"}`))
	store.put(stored("candidates/_default", `{"user":[{"requests":2}],"since":"2026-01-01T00:00:00Z"}`))
	store.put(stored("candidates/new", `{"user":[{"requests":3}],"since":"2026-01-01T00:00:00Z"}`))
	store.put(stored("clients/shop/counters", `{"username":null}`))
	resets, file := 0, fileSettings()
	file.Clients["mobile-app"] = ratelimit.Policy{Trusted: true} // missing in the other file
	s := follow(t, store, clientcfg.PolicyOptions{
		Base: file, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }, // of the entries
		Reset: func(clientcfg.Reset) { resets++ },
	})
	store.put(stored("clients/app/counters", `{"username":null}`))
	check.OK(t, s.Refresh(t.Context()))
	check.OK(t, s.Rebase(t.Context(), otherFile(), nil))
	check.Equal(t, "resets carried out", resets, 1)

	same := func(when string) {
		t.Helper()
		started := follow(t, store, clientcfg.PolicyOptions{Base: otherFile()})
		got, want := s.Snapshot(), started.Snapshot()
		check.Equal(t, when+", version", got.Version(), want.Version())
		check.Equal(t, when+", digest", got.BaseDigest(), want.BaseDigest())
		check.Equal(t, when+", clients", got.Clients(100), want.Clients(100))
		check.Equal(t, when+", settings", got.Settings(), want.Settings())
		for _, id := range []string{"shop", "app", "new", "mobile-app", "anyone"} {
			check.Equal(t, when+", "+id, shown(got, id), shown(want, id))
		}
	}
	same("at once")
	check.OK(t, s.Refresh(t.Context()))
	check.Equal(t, "reads of all policies", store.loads, 2) // of both starts
	store.put(shopHas(6))
	check.OK(t, s.Refresh(t.Context()))
	same("after a change")
	_, err := s.Change(t.Context(), limitShop(7))
	check.OK(t, err)
	same("after a change by this one")
}

// shown returns a client's limits in force and on trial.
func shown(p *clientcfg.PolicySnapshot, id string) map[string]any {
	own, changed := p.Policy(id)
	e, out := p.For(id), map[string]any{"own": own, "changed": changed}
	out["user"], out["client"], out["mode"], out["trusted"] = e.User.All(), e.Client.All(), e.Mode, e.Trusted
	if trial, ok := p.Trial(id); ok {
		out["tried user"], out["tried client"], out["since"] = trial.Effective.User.All(), trial.Effective.Client.All(), trial.Since
	}
	return out
}

// TestRebaseKeepsAllIfTheFileIsInvalid: no part of an invalid file takes effect.
func TestRebaseKeepsAllIfTheFileIsInvalid(t *testing.T) {
	s := newPolicySource(t, newPolicyStore(t))
	before := s.Snapshot()
	bad := otherFile()
	bad.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 0, time.Minute)}
	if err := s.Rebase(t.Context(), bad, nil); fielderr.Of(err) == nil {
		t.Errorf("got %v", err)
	}
	if s.Snapshot() != before {
		t.Error("the policies are others")
	}
}

// TestRebaseForgetsNoCount: a key keeps its count under every limit that the file can set for it.
func TestRebaseForgetsNoCount(t *testing.T) {
	s := newPolicySource(t, newPolicyStore(t))
	counters, now := counting.NewCounters(0), time.Unix(1e9, 0)
	passed := func(n int) (passed int) {
		for range n {
			p := s.Snapshot()
			d := counters.Take(now, ratelimit.Key{ClientID: "anyone", Username: "ada"}, p.For("anyone"), 1)
			if !d.Rejected() {
				passed++
			}
		}
		return passed
	}
	file := func(requests int64, window time.Duration) {
		base := ratelimit.DefaultSettings()
		base.Default.User = []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, window)}
		check.OK(t, s.Rebase(t.Context(), base, nil))
	}
	file(10, time.Minute)
	check.Equal(t, "passed of a limit of 10", passed(7), 7)
	file(8, time.Minute)
	check.Equal(t, "passed after it was lowered to 8", passed(5), 1)
	file(12, time.Hour)
	check.Equal(t, "passed after it became 12 an hour", passed(9), 4)
}
