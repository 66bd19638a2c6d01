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
	"oauth-server/internal/secret"
)

func testPolicies(t *testing.T, target Target) {
	t.Helper()
	t.Run("empty", func(t *testing.T) { noPolicies(t, target.fresh(t)) })
	t.Run("every field, and names of any kind", func(t *testing.T) { policyFields(t, target.fresh(t)) })
	t.Run("only the next version is stored", func(t *testing.T) { policyConflict(t, target.fresh(t)) })
	t.Run("of 100 writers of a version one wins", func(t *testing.T) { policyRace(t, target.fresh(t)) })
	t.Run("no change is lost among 20 workers", func(t *testing.T) { policyWorkers(t, target.fresh(t)) })
	t.Run("a cancelled call does nothing", func(t *testing.T) { policiesCancelled(t, target.fresh(t)) })
	t.Run("everything is there after a reopen", func(t *testing.T) { policiesReopened(t, target) })
	t.Run("the state is what the entries come to", func(t *testing.T) { policiesFold(t, target.fresh(t)) })
	t.Run("a reader that was away for many versions", func(t *testing.T) { policyReader(t, target.fresh(t)) })
	t.Run("a reader beside changers and sweepers", func(t *testing.T) { policyReaders(t, target.fresh(t)) })
	t.Run("another trail of the same version", func(t *testing.T) { policiesOfAnotherTrail(t, target) })
	t.Run("an entry that cannot be read", func(t *testing.T) { unreadableEntry(t, target) })
	t.Run("a policy that cannot be read", func(t *testing.T) { unreadablePolicy(t, target) })
	t.Run("many policies", func(t *testing.T) { policiesMany(t, target.fresh(t), target.Policies) })
}

// entryFor changes the policy of one of three clients; each third entry removes it.
func entryFor(version int64) clientcfg.PolicyEntry {
	name := clientcfg.PolicyTarget("client-" + strconv.FormatInt(version%3, 10))
	after := json.RawMessage(`{"trusted":true,"note":"` + strconv.FormatInt(version, 10) + `"}`)
	if version%7 > 4 {
		after = json.RawMessage("null")
	}
	return clientcfg.PolicyEntry{
		AuditEntry: clientcfg.AuditEntry{
			Version: version, ID: "id-" + strconv.FormatInt(version, 10), At: Epoch.Add(time.Duration(version) * time.Hour),
			Actor: clientcfg.Actor{ClientID: "ops", Username: "ada", Address: "192.0.2.1"}, Action: "update",
			Target: name, Reason: "Grüße", Instance: "i-1",
			Before: json.RawMessage(`null`), After: json.RawMessage(`{"user":[{"requests":1}],"$a.b":"é"}`),
		},
		Changes: []clientcfg.Change{{Target: name, Before: json.RawMessage("null"), After: after}},
	}
}

// shownOf are the entries as the audit trail has them.
func shownOf(entries ...clientcfg.PolicyEntry) (shown []clientcfg.AuditEntry) {
	for i := range entries {
		shown = append(shown, entries[i].AuditEntry)
	}
	return shown
}

// another returns the entry as that of a different change.
func another(e clientcfg.PolicyEntry) clientcfg.PolicyEntry {
	e.ID = secret.ID()
	return e
}

func appendEntry(t *testing.T, b Backend, e clientcfg.PolicyEntry) {
	t.Helper()
	succeed(t, fmt.Sprintf("append entry %d", e.Version), b.AppendPolicyEntry(t.Context(), e))
}

// write appends the entries up to a version.
func write(t *testing.T, b Backend, n int64) {
	t.Helper()
	for version := range n {
		appendEntry(t, b, entryFor(version+1))
	}
}

// folded is what the entries come to.
func folded(t *testing.T, entries ...clientcfg.PolicyEntry) (s clientcfg.PolicyState) {
	t.Helper()
	for i := range entries {
		succeed(t, "fold", s.Fold(&entries[i]))
	}
	return s
}

// foldedTo is what write comes to.
func foldedTo(t *testing.T, n int64) (s clientcfg.PolicyState) {
	t.Helper()
	for version := range n {
		e := entryFor(version + 1)
		succeed(t, "fold", s.Fold(&e))
	}
	return s
}

func policies(t *testing.T, b Backend) clientcfg.PolicyState {
	t.Helper()
	state, err := b.PolicyState(t.Context())
	succeed(t, "policies", err)
	version, err := b.PolicyVersion(t.Context())
	succeed(t, "version", err)
	if want := (clientcfg.PolicyVersion{Number: state.Version, ID: state.ID}); version != want && state.Stopped == nil {
		t.Errorf("the state has version %+v, the store says %+v", want, version)
	}
	return state
}

// entriesFrom reads all entries from a version on, as a reader does.
func entriesFrom(t *testing.T, b Backend, from int64) (all []clientcfg.PolicyEntry) {
	t.Helper()
	for {
		entries, err := b.PolicyEntries(t.Context(), from)
		succeed(t, "entries", err)
		if len(entries) == 0 {
			return all
		}
		if len(entries) > 1000 {
			t.Fatalf("%d entries at once", len(entries))
		}
		all, from = append(all, entries...), entries[len(entries)-1].Version+1
	}
}

func audit(t *testing.T, b Backend, q clientcfg.AuditQuery) []clientcfg.AuditEntry {
	t.Helper()
	entries, err := b.Audit(t.Context(), q)
	succeed(t, "audit", err)
	return entries
}

func noPolicies(t *testing.T, b Backend) {
	t.Helper()
	equal(t, "policies", clientcfg.PolicyState{}, policies(t, b))
	equal(t, "entries", []clientcfg.PolicyEntry{}, entriesFrom(t, b, 0))
	equal(t, "audit", []clientcfg.AuditEntry{}, audit(t, b, clientcfg.AuditQuery{}))
}

// policyFields stores entries of many targets at once, whose names have a meaning of their own in a
// database.
func policyFields(t *testing.T, b Backend) {
	t.Helper()
	names := []string{"shop", "a.b", "$set", "{}", "_id", "0", "a/b", "current"}
	first, second := entryFor(1), entryFor(2)
	first.Changes = []clientcfg.Change{{Target: clientcfg.SettingsTarget, Before: json.RawMessage("{}"), After: json.RawMessage(`{"mode":"dry_run","note":"näht"}`)}}
	second.Changes = nil
	for i, id := range names {
		value := json.RawMessage(`{"note":"` + strconv.Itoa(i) + `"}`)
		for _, target := range []string{
			clientcfg.PolicyTarget(id), clientcfg.CandidateTarget(id), clientcfg.TierTarget(id), clientcfg.OverrideTarget(id, "$a b.c"),
			clientcfg.CountersTarget(id),
		} {
			first.Changes = append(first.Changes, clientcfg.Change{Target: target, Before: json.RawMessage("null"), After: value})
			second.Changes = append(second.Changes, clientcfg.Change{Target: target, Before: value, After: json.RawMessage("null")})
		}
		first.More = append(first.More, clientcfg.Change{Target: clientcfg.CandidateTarget(id), Before: json.RawMessage("null"), After: value})
	}
	appendEntry(t, b, first)
	state := policies(t, b)
	equal(t, "policies", folded(t, first), state)
	if got, want := len(state.Targets), 1+4*len(names); got != want {
		t.Errorf("%d targets, want %d: a reset is none", got, want)
	}
	equal(t, "entries", []clientcfg.PolicyEntry{first}, entriesFrom(t, b, 1))
	equal(t, "audit", shownOf(first), audit(t, b, clientcfg.AuditQuery{}))
	for _, name := range []string{first.Target, clientcfg.CandidateTarget("$set")} {
		equal(t, "audit of "+name, shownOf(first), audit(t, b, clientcfg.AuditQuery{Target: name}))
	}
	equal(t, "audit of what it does not show", []clientcfg.AuditEntry{}, audit(t, b, clientcfg.AuditQuery{Target: clientcfg.PolicyTarget("$set")}))
	appendEntry(t, b, second)
	equal(t, "policies", folded(t, first, second), policies(t, b))
	equal(t, "entries", []clientcfg.PolicyEntry{first, second}, entriesFrom(t, b, 0))
	equal(t, "newer entries", []clientcfg.PolicyEntry{second}, entriesFrom(t, b, 2))
	equal(t, "audit", shownOf(second, first), audit(t, b, clientcfg.AuditQuery{}))
}

func policyConflict(t *testing.T, b Backend) {
	t.Helper()
	appendEntry(t, b, entryFor(1))
	for _, version := range []int64{0, 1, 3, -1} {
		failWith(t, fmt.Sprintf("version %d", version), clientcfg.ErrPolicyConflict, b.AppendPolicyEntry(t.Context(), another(entryFor(version))))
	}
	equal(t, "policies", foldedTo(t, 1), policies(t, b))
	equal(t, "audit", shownOf(entryFor(1)), audit(t, b, clientcfg.AuditQuery{}))
}

func policyRace(t *testing.T, b Backend) {
	t.Helper()
	errs := make([]error, 100)
	together(len(errs), func(i int) {
		entry := entryFor(1)
		entry.ID = strconv.Itoa(i)
		errs[i] = b.AppendPolicyEntry(t.Context(), entry)
	})
	winner := onlyWinner(t, errs, clientcfg.ErrPolicyConflict)
	entries := audit(t, b, clientcfg.AuditQuery{})
	if state := policies(t, b); state.ID != strconv.Itoa(winner) || len(entries) != 1 || entries[0].ID != state.ID {
		t.Errorf("%d won, but the state is that of %s and the trail says %+v", winner, state.ID, entries)
	}
}

// policyWorkers change a target of their own each, trying again on every conflict: each version is there
// once, and so is each change.
func policyWorkers(t *testing.T, b Backend) {
	t.Helper()
	const workers, each = 20, 5
	all(t, workers, func(i int) error {
		for range each {
			err := clientcfg.ErrPolicyConflict
			for errors.Is(err, clientcfg.ErrPolicyConflict) {
				newest, failed := b.PolicyVersion(t.Context())
				if failed != nil {
					return failed
				}
				e := another(entryFor(newest.Number + 1))
				e.Changes[0].Target, e.Changes[0].After = clientcfg.PolicyTarget(strconv.Itoa(i)), json.RawMessage("{}")
				err = b.AppendPolicyEntry(t.Context(), e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	entries := entriesFrom(t, b, 1)
	equal(t, "policies", folded(t, entries...), policies(t, b))
	changes := map[string]int{}
	for i := range entries {
		changes[entries[i].Changes[0].Target]++
	}
	for i := range workers {
		if n := changes[clientcfg.PolicyTarget(strconv.Itoa(i))]; n != each {
			t.Errorf("%d changes of worker %d are there, want %d", n, i, each)
		}
	}
}

func policiesCancelled(t *testing.T, b Backend) {
	t.Helper()
	write(t, b, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.PolicyState(ctx)
	failWith(t, "PolicyState", context.Canceled, err)
	_, err = b.PolicyVersion(ctx)
	failWith(t, "PolicyVersion", context.Canceled, err)
	_, err = b.PolicyEntries(ctx, 1)
	failWith(t, "PolicyEntries", context.Canceled, err)
	_, err = b.Audit(ctx, clientcfg.AuditQuery{})
	failWith(t, "Audit", context.Canceled, err)
	_, err = b.SweepAudit(ctx, Epoch.AddDate(10, 0, 0), Epoch.AddDate(10, 0, 0))
	failWith(t, "SweepAudit", context.Canceled, err)
	failWith(t, "AppendPolicyEntry", context.Canceled, b.AppendPolicyEntry(ctx, entryFor(2)))
	equal(t, "policies", foldedTo(t, 1), policies(t, b))
	equal(t, "audit", shownOf(entryFor(1)), audit(t, b, clientcfg.AuditQuery{}))
}

func policiesReopened(t *testing.T, target Target) {
	t.Helper()
	location := target.Location(t)
	b, err := target.Open(t.Context(), location)
	succeed(t, "open", err)
	write(t, b, 40)
	succeed(t, "close", b.Close())
	b = target.open(t, location)
	equal(t, "policies", foldedTo(t, 40), policies(t, b))
	appendEntry(t, b, entryFor(41))
	equal(t, "policies", foldedTo(t, 41), policies(t, b))
	if n := len(entriesFrom(t, b, 1)); n != 41 {
		t.Errorf("%d entries are there, want 41", n)
	}
}
