package storetest

import (
	"encoding/json"
	"testing"

	"oauth-server/internal/clientcfg"
)

// restored is a store of policies that is restored from a backup while an instance uses it.
type restored struct{ clientcfg.PolicyStore }

// policiesOfAnotherTrail: a backup was restored, and then exactly as many changes were made. An instance
// that has followed the former trail follows the new one, and reads all of it once.
func policiesOfAnotherTrail(t *testing.T, target Target) {
	t.Helper()
	former, now := target.fresh(t), target.fresh(t)
	for version := int64(1); version <= 3; version++ {
		e := entryFor(version)
		appendEntry(t, former, e)
		if version > 1 {
			e = another(e)
			e.Changes[0].After = json.RawMessage(`{"note":"of the new trail"}`)
		}
		appendEntry(t, now, e)
	}
	store := &restored{former}
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{})
	succeed(t, "start", err)
	noteOf := func() string {
		t.Helper()
		succeed(t, "refresh", s.Refresh(t.Context()))
		own, _ := s.Snapshot().Policy("client-0")
		return own.Note
	}
	equal(t, "note", "3", noteOf())
	store.PolicyStore = now
	equal(t, "note after the restore", "of the new trail", noteOf())
	adopted := s.Snapshot()
	noteOf()
	if s.Snapshot() != adopted {
		t.Error("the same policies are read again and again")
	}
	_, err = now.SweepAudit(t.Context(), entryFor(9).At, entryFor(9).At)
	succeed(t, "sweep", err)
	equal(t, "note after the sweep", "of the new trail", noteOf())
	appendEntry(t, now, entryFor(4))
	appendEntry(t, now, entryFor(5))
	equal(t, "version", int64(5), refreshed(t, s).Version())
}

func refreshed(t *testing.T, s *clientcfg.PolicySource) *clientcfg.PolicySnapshot {
	t.Helper()
	succeed(t, "refresh", s.Refresh(t.Context()))
	return s.Snapshot()
}

// unreadableEntry spoils one of the last entries. The trail shows the others. An instance that runs, and
// has applied it, is not concerned; one that starts has the policies of all entries if they are folded,
// and else those of before, says so, and changes nothing.
func unreadableEntry(t *testing.T, target Target) {
	t.Helper()
	for i := range 2 * len(target.SpoilEntry) {
		bad, spoil := int64(4+i%2), target.SpoilEntry[i/2]
		b := target.fresh(t)
		write(t, b, 5)
		runs, err := clientcfg.NewPolicySource(t.Context(), b, clientcfg.PolicyOptions{})
		succeed(t, "start", err)
		spoil(t, b, bad)

		entries := audit(t, b, clientcfg.AuditQuery{})
		equal(t, "versions", []int64{5, 4, 3, 2, 1}, versions(entries))
		for i := range entries {
			if version := entries[i].Version; version == bad {
				failWith(t, "that entry", clientcfg.ErrUnreadable, entries[i].Err)
				equal(t, "that entry", clientcfg.AuditEntry{Version: bad}, clientcfg.AuditEntry{Version: version, ID: entries[i].ID})
			} else {
				equal(t, "an entry", entryFor(version).AuditEntry, entries[i])
			}
		}
		equal(t, "version of one that runs", int64(5), refreshed(t, runs).Version())

		state := policies(t, b)
		if state.Stopped == nil {
			equal(t, "targets", foldedTo(t, 5).Targets, state.Targets)
		} else {
			failWith(t, "why it stopped", clientcfg.ErrUnreadable, state.Stopped)
			state.Stopped, err = nil, state.Stopped
			equal(t, "state", foldedTo(t, bad-1), state)
		}
		starts, failed := clientcfg.NewPolicySource(t.Context(), b, clientcfg.PolicyOptions{})
		succeed(t, "start", failed)
		equal(t, "version of one that starts", state.Version, starts.Snapshot().Version())
		equal(t, "refused", err != nil, starts.Status().Refused())
		if err == nil {
			appendEntry(t, b, entryFor(6))
			equal(t, "version after a change", int64(6), refreshed(t, starts).Version())
			equal(t, "version of one that runs after a change", int64(6), refreshed(t, runs).Version())
			continue
		}
		failWith(t, "refresh", clientcfg.ErrUnreadable, starts.Refresh(t.Context()))
		_, err = starts.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
			return another(entryFor(6)), nil
		})
		failWith(t, "change", clientcfg.ErrUnreadable, err)
		appendEntry(t, b, entryFor(6))
		equal(t, "version of one that runs after a change", int64(6), refreshed(t, runs).Version())
		_, err = runs.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) { return another(entryFor(7)), nil })
		succeed(t, "a change of one that runs", err)
	}
}

// unreadablePolicy stores a policy as a newer release may. An instance that starts has the one of before,
// and all others, until another change replaces it.
func unreadablePolicy(t *testing.T, target Target) {
	t.Helper()
	for _, value := range []string{`{"burst":5}`, `{"user":[{"requests":0}]}`} {
		b := target.fresh(t)
		put := func(version int64, client, before, after string) {
			t.Helper()
			e := entryFor(version)
			e.Changes = []clientcfg.Change{{Target: clientcfg.PolicyTarget(client), Before: json.RawMessage(before), After: json.RawMessage(after)}}
			appendEntry(t, b, e)
		}
		put(1, "shop", "null", `{"note":"before"}`)
		put(2, "shop", `{"note":"before"}`, value)
		put(3, "new", "null", value)
		put(4, "other", "null", `{"trusted":true}`)
		s, err := clientcfg.NewPolicySource(t.Context(), b, clientcfg.PolicyOptions{})
		succeed(t, "start", err)
		shop, _ := s.Snapshot().Policy("shop")
		_, set := s.Snapshot().Policy("new")
		equal(t, "note", "before", shop.Note)
		equal(t, "there is a policy that never could be read", false, set)
		equal(t, "the other is trusted", true, s.Snapshot().For("other").Trusted)
		for range 2 {
			equal(t, "refused", true, s.Status().Refused())
			if err := s.Refresh(t.Context()); err == nil {
				t.Error("refreshed, without an error")
			}
		}
		put(5, "shop", value, `{"note":"now"}`)
		if err := s.Refresh(t.Context()); err == nil {
			t.Error("refreshed, with one of two policies")
		}
		put(6, "new", value, "null")
		shop, _ = refreshed(t, s).Policy("shop")
		equal(t, "note", "now", shop.Note)
		equal(t, "refused", false, s.Status().Refused())
	}
}
