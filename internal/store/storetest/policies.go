package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

func testPolicies(t *testing.T, target Target) {
	t.Helper()
	t.Run("empty", func(t *testing.T) { noPolicies(t, target.fresh(t)) })
	t.Run("replace and read every field", func(t *testing.T) { replacePolicies(t, target.fresh(t)) })
	t.Run("another version is refused whole", func(t *testing.T) { policyConflict(t, target.fresh(t)) })
	t.Run("of 100 writers of a version one wins", func(t *testing.T) { policyRace(t, target.fresh(t)) })
	t.Run("no change is lost among 20 workers", func(t *testing.T) { policyWorkers(t, target.fresh(t)) })
	t.Run("a cancelled call does nothing", func(t *testing.T) { policiesCancelled(t, target.fresh(t)) })
	t.Run("everything is there after a reopen", func(t *testing.T) { policiesReopened(t, target) })
}

// fullSet uses every field, and names that have a meaning of their own in a database.
func fullSet(version int64) clientcfg.PolicySet {
	mode, canary, hide, noUser := ratelimit.DryRun, 12.5, false, ""
	limits := func(requests int64) []ratelimit.Limit {
		l := ratelimit.NewLimit("per-second", requests, 250*time.Millisecond)
		l.Frames, l.SoftRatio, l.OnOutage = 5, 0.5, ratelimit.Deny
		return []ratelimit.Limit{l, ratelimit.NewLimit("per-day", ratelimit.MaxRequests, 24*time.Hour)}
	}
	set := clientcfg.PolicySet{
		Version: version,
		Settings: clientcfg.SettingsOverride{
			Mode: &mode, CanaryPercent: &canary, User: limits(1), Client: limits(2), HideHeaders: &hide, Note: "näht", Changed: 3,
		},
		Clients:    map[string]clientcfg.ClientPolicy{},
		Candidates: map[string]clientcfg.Candidate{clientcfg.GlobalCandidate: {Client: limits(3), Note: "n", Since: Epoch, Changed: 4}},
		Resets:     []clientcfg.Reset{{Version: 1, ClientID: "shop", At: Epoch}, {Version: 2, ClientID: "$a.b", Username: &noUser, At: Epoch}},
	}
	for i, id := range []string{"shop", "a.b", "$set", "{}", "_id", "0"} {
		set.Clients[id] = clientcfg.ClientPolicy{
			Policy: ratelimit.Policy{User: limits(5), Trusted: i%2 == 0, Mode: ratelimit.Off, HideHeaders: true}, Note: id, Changed: int64(i),
		}
		set.Candidates[id] = clientcfg.Candidate{User: limits(6), Since: Epoch.Add(time.Duration(i) * time.Millisecond)}
	}
	return set
}

func entryFor(version int64) clientcfg.AuditEntry {
	return clientcfg.AuditEntry{
		Version: version, ID: "id-" + strconv.FormatInt(version, 10), At: Epoch.Add(time.Duration(version) * time.Hour),
		Actor: clientcfg.Actor{ClientID: "ops", Username: "ada", Address: "192.0.2.1"}, Action: "update",
		Target: "policies/client-" + strconv.FormatInt(version%3, 10), Reason: "Grüße", Instance: "i-1",
		Before: json.RawMessage(`null`), After: json.RawMessage(`{"user":[{"requests":1}],"$a.b":"é"}`),
	}
}

// another returns the entry as that of a different change.
func another(e clientcfg.AuditEntry) clientcfg.AuditEntry {
	e.ID = secret.ID()
	return e
}

func replace(t *testing.T, b Backend, set clientcfg.PolicySet) {
	t.Helper()
	succeed(t, "replace", b.ReplacePolicySet(t.Context(), set, entryFor(set.Version)))
}

func policies(t *testing.T, b Backend) clientcfg.PolicySet {
	t.Helper()
	set, err := b.PolicySet(t.Context())
	succeed(t, "policies", err)
	version, err := b.PolicyVersion(t.Context())
	succeed(t, "version", err)
	if version != set.Version {
		t.Errorf("the set has version %d, the store says %d", set.Version, version)
	}
	return set
}

func audit(t *testing.T, b Backend, q clientcfg.AuditQuery) []clientcfg.AuditEntry {
	t.Helper()
	entries, err := b.Audit(t.Context(), q)
	succeed(t, "audit", err)
	return entries
}

func noPolicies(t *testing.T, b Backend) {
	t.Helper()
	equal(t, "policies", clientcfg.PolicySet{}, policies(t, b))
	equal(t, "audit", []clientcfg.AuditEntry{}, audit(t, b, clientcfg.AuditQuery{}))
}

func replacePolicies(t *testing.T, b Backend) {
	t.Helper()
	replace(t, b, fullSet(1))
	equal(t, "policies", fullSet(1), policies(t, b))
	equal(t, "audit", []clientcfg.AuditEntry{entryFor(1)}, audit(t, b, clientcfg.AuditQuery{}))
	replace(t, b, clientcfg.PolicySet{Version: 2})
	equal(t, "policies", clientcfg.PolicySet{Version: 2}, policies(t, b))
	equal(t, "audit", []clientcfg.AuditEntry{entryFor(2), entryFor(1)}, audit(t, b, clientcfg.AuditQuery{}))
}

func policyConflict(t *testing.T, b Backend) {
	t.Helper()
	replace(t, b, fullSet(1))
	for _, version := range []int64{0, 1, 3, -1} {
		err := b.ReplacePolicySet(t.Context(), clientcfg.PolicySet{Version: version}, another(entryFor(version)))
		failWith(t, fmt.Sprintf("version %d", version), clientcfg.ErrPolicyConflict, err)
	}
	equal(t, "policies", fullSet(1), policies(t, b))
	equal(t, "audit", []clientcfg.AuditEntry{entryFor(1)}, audit(t, b, clientcfg.AuditQuery{}))
}

func policyRace(t *testing.T, b Backend) {
	t.Helper()
	errs := make([]error, 100)
	together(len(errs), func(i int) {
		entry := entryFor(1)
		entry.ID = strconv.Itoa(i)
		errs[i] = b.ReplacePolicySet(t.Context(), clientcfg.PolicySet{Version: 1, Settings: clientcfg.SettingsOverride{Changed: int64(i)}}, entry)
	})
	winner := onlyWinner(t, errs, clientcfg.ErrPolicyConflict)
	entries := audit(t, b, clientcfg.AuditQuery{})
	if set := policies(t, b); set.Settings.Changed != int64(winner) || len(entries) != 1 || entries[0].ID != strconv.Itoa(winner) {
		t.Errorf("%d won, but the set is that of %d and the trail says %+v", winner, set.Settings.Changed, entries)
	}
}

// policyWorkers count in the settings, trying again on every conflict.
func policyWorkers(t *testing.T, b Backend) {
	t.Helper()
	const workers = 20
	all(t, workers, func(int) error {
		for {
			set, err := b.PolicySet(t.Context())
			if err != nil {
				return err
			}
			set.Version++
			set.Settings.Changed++
			err = b.ReplacePolicySet(t.Context(), set, another(entryFor(set.Version)))
			if !errors.Is(err, clientcfg.ErrPolicyConflict) {
				return err
			}
		}
	})
	if set := policies(t, b); set.Version != workers || set.Settings.Changed != workers {
		t.Errorf("after %d changes: version %d, count %d", workers, set.Version, set.Settings.Changed)
	}
	for i, e := range audit(t, b, clientcfg.AuditQuery{}) {
		if want := int64(workers - i); e.Version != want {
			t.Fatalf("entry %d has version %d, want %d", i, e.Version, want)
		}
	}
}

func policiesCancelled(t *testing.T, b Backend) {
	t.Helper()
	replace(t, b, fullSet(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.PolicySet(ctx)
	failWith(t, "PolicySet", context.Canceled, err)
	_, err = b.PolicyVersion(ctx)
	failWith(t, "PolicyVersion", context.Canceled, err)
	_, err = b.Audit(ctx, clientcfg.AuditQuery{})
	failWith(t, "Audit", context.Canceled, err)
	_, err = b.SweepAudit(ctx, Epoch.AddDate(10, 0, 0))
	failWith(t, "SweepAudit", context.Canceled, err)
	failWith(t, "ReplacePolicySet", context.Canceled, b.ReplacePolicySet(ctx, clientcfg.PolicySet{Version: 2}, entryFor(2)))
	equal(t, "policies", fullSet(1), policies(t, b))
	equal(t, "audit", []clientcfg.AuditEntry{entryFor(1)}, audit(t, b, clientcfg.AuditQuery{}))
}

func policiesReopened(t *testing.T, target Target) {
	t.Helper()
	location := target.Location(t)
	b, err := target.Open(t.Context(), location)
	succeed(t, "open", err)
	replace(t, b, fullSet(1))
	succeed(t, "close", b.Close())
	b = target.open(t, location)
	equal(t, "policies", fullSet(1), policies(t, b))
	equal(t, "audit", []clientcfg.AuditEntry{entryFor(1)}, audit(t, b, clientcfg.AuditQuery{}))
	replace(t, b, clientcfg.PolicySet{Version: 2})
}
