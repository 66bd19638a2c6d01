package clientcfg_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

var dawn = time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)

// trailOf makes changes one after the other. A change with an end is temporary.
type trailOf struct {
	t     *testing.T
	store *policyStore
	*following
}

func newTrail(t *testing.T) *trailOf {
	t.Helper()
	store := newPolicyStore(t)
	return &trailOf{t, store, newPolicySource(t, store)}
}

func (tr *trailOf) make(until time.Time, changes ...clientcfg.Change) {
	tr.t.Helper()
	_, err := tr.Change(tr.t.Context(), func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		e.Action, e.Target, e.Changes, e.Until = "update", changes[0].Target, changes, until
		if !until.IsZero() {
			e.Changes, err = p.Temporarily(changes, until, clientcfg.Actor{ClientID: "ops"})
		}
		return e, err
	})
	check.OK(tr.t, err)
}

// end ends everything due at now, and returns the targets that stay unchanged.
func (tr *trailOf) end(now time.Time) (left map[string]int64, ended bool) {
	tr.t.Helper()
	ending, ended := tr.Snapshot().Ending(func(_ string, e *clientcfg.End) bool { return !now.Before(e.Until) })
	if ended {
		tr.make(time.Time{}, ending.Changes...)
	}
	return ending.Left, ended
}

func (tr *trailOf) undo(version int64, now time.Time) (changed int) {
	tr.t.Helper()
	e := &tr.store.trail()[version-1]
	changes, err := e.Undo(tr.Snapshot(), now)
	check.OK(tr.t, err)
	if len(changes) > 0 {
		tr.make(time.Time{}, changes...)
	}
	return len(changes)
}

// is fails unless shop has that limit until that time. An instance that reads everything again must
// agree.
func (tr *trailOf) is(requests int64, until time.Time) {
	tr.t.Helper()
	for _, s := range []*following{tr.following, newPolicySource(tr.t, tr.store)} {
		end, temporary := s.Snapshot().End("policies/shop")
		if got := userLimit(s, "shop"); got != requests || temporary == until.IsZero() || temporary && !end.Until.Equal(until) {
			tr.t.Errorf("shop has %d until %v (%v), want %d until %v", got, end.Until, temporary, requests, until)
		}
	}
}

func TestTemporaryChangeEnds(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.is(7, never) // in the file
	tr.make(never, shopHas(10))
	tr.make(dawn, shopHas(20), stored("policies/a", `{"trusted":true}`))
	tr.is(20, dawn)
	if _, ended := tr.end(dawn.Add(-1)); ended {
		t.Error("it ended early")
	}
	left, ended := tr.end(dawn)
	check.Equal(t, "it ended", ended, true)
	check.Equal(t, "left", left, map[string]int64{})
	tr.is(10, never)
	check.Equal(t, "a is trusted", tr.Snapshot().For("a").Trusted, false)
	if _, ended := tr.end(dawn.Add(time.Hour)); ended || tr.Snapshot().Set().Ends.Len() != 0 {
		t.Error("there is more to end")
	}
}

// TestTemporaryChangeIsMadeToLast: a target that was changed in between stays as it is, even if it
// has its original value. The others return.
func TestTemporaryChangeIsMadeToLast(t *testing.T) {
	for name, change := range map[string]clientcfg.Change{
		"another value": shopHas(30), "the same value": shopHas(20), "removed": stored("policies/shop", "null"),
	} {
		t.Run(name, func(t *testing.T) {
			tr, never := newTrail(t), time.Time{}
			tr.make(never, shopHas(10))
			tr.make(dawn, shopHas(20), stored("policies/a", `{"trusted":true}`))
			tr.make(never, change)
			stays := userLimit(tr.following, "shop")
			tr.is(stays, never)
			left, _ := tr.end(dawn)
			check.Equal(t, "left", left, map[string]int64{"policies/shop": 3})
			tr.is(stays, never)
			check.Equal(t, "a is trusted", tr.Snapshot().For("a").Trusted, false)
		})
	}
}

// TestTemporaryRemoval: a temporary removal is reversed, and a temporary addition removed.
func TestTemporaryRemoval(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.make(never, shopHas(10))
	tr.make(dawn, stored("policies/shop", "null"))
	tr.is(7, dawn)
	tr.end(dawn)
	tr.is(10, never)
}

// TestTemporaryOnTemporary: a temporary change on top of another one returns, at its own end, to
// the value that the first one would have returned to.
func TestTemporaryOnTemporary(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.make(never, shopHas(10))
	tr.make(dawn, shopHas(20))
	tr.make(dawn.Add(time.Hour), shopHas(30))
	tr.is(30, dawn.Add(time.Hour))
	if _, ended := tr.end(dawn); ended {
		t.Error("the first one ended, which is no more")
	}
	check.Equal(t, "changed by the undo", tr.undo(3, dawn.Add(-time.Hour)), 2)
	tr.is(20, dawn)
	tr.undo(4, dawn.Add(-time.Hour))
	tr.is(30, dawn.Add(time.Hour))
	tr.end(dawn.Add(time.Hour))
	tr.is(10, never)
}

func TestUndo(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.make(never, shopHas(10))
	tr.make(never, shopHas(20), stored("candidates/shop", `{"user":[{"requests":1}]}`))
	tr.undo(2, dawn)
	tr.is(10, never)
	check.Equal(t, "candidates", tr.Snapshot().Set().Candidates.Len(), 0)
	tr.undo(3, dawn)
	tr.is(20, never)
	check.Equal(t, "candidates", tr.Snapshot().Set().Candidates.Len(), 1)
	tr.undo(4, dawn)
	tr.undo(1, dawn)
	tr.is(7, never)
}

// TestUndoOfATemporaryChange: undoing a temporary change removes its end. Undoing that restores the
// end, unless it has passed. Then the value is not restored either.
func TestUndoOfATemporaryChange(t *testing.T) {
	tr, never, before := newTrail(t), time.Time{}, dawn.Add(-time.Hour)
	tr.make(never, shopHas(10))
	tr.make(dawn, shopHas(20))
	tr.undo(2, before)
	tr.is(10, never)
	tr.undo(3, before)
	tr.is(20, dawn)
	tr.undo(4, before)
	check.Equal(t, "changed too late", tr.undo(5, dawn), 0)
	tr.is(10, never)
}

// TestUndoOfWhatMadeItLast: undoing the change that made a temporary change permanent makes it
// temporary again. After its end, the undo restores the value that it returns to.
func TestUndoOfWhatMadeItLast(t *testing.T) {
	for _, late := range []bool{false, true} {
		tr, never, now := newTrail(t), time.Time{}, dawn.Add(-time.Hour)
		tr.make(never, shopHas(10))
		tr.make(dawn, shopHas(20))
		tr.make(never, shopHas(30))
		if late {
			now = dawn
			tr.end(now)
		}
		tr.undo(3, now)
		if late {
			tr.is(10, never)
		} else {
			tr.is(20, dawn)
		}
	}
}

// TestUndoOfAnEnd: undoing an end does not restart the change that has ended.
func TestUndoOfAnEnd(t *testing.T) {
	tr := newTrail(t)
	tr.make(dawn, shopHas(20))
	tr.end(dawn)
	check.Equal(t, "changed", tr.undo(2, dawn.Add(time.Minute)), 0)
}

func TestLasting(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.make(never, shopHas(10))
	tr.make(dawn, shopHas(20))
	p := tr.Snapshot().Lasting()
	check.Equal(t, "limit", p.For("shop").User.All()[0].Requests, 10)
	check.Equal(t, "it is worked out once", tr.Snapshot().Lasting() == p, true)
	check.Equal(t, "what lasts is itself", p.Lasting() == p, true)
	tr.is(20, dawn)
}

// TestUnreadableEnds: an unreadable end is handled like any other unreadable target.
func TestUnreadableEnds(t *testing.T) {
	for _, bad := range []clientcfg.Change{
		stored("ends/policies/shop", `{"until":"2026-05-01T06:00:00Z","change":1,"actor":{"client_id":"ops"},"value":null,"new":1}`),
		stored("ends/policies/shop", `{"change":1,"actor":{"client_id":"ops"},"value":null}`),
		stored("ends/ends/policies/shop", `{"until":"2026-05-01T06:00:00Z","value":null}`),
		stored("ends/clients/shop/counters", `{"until":"2026-05-01T06:00:00Z","value":null}`),
		stored("ends/policies/shop", fmt.Sprintf(`{"until":"2026-05-01T06:00:00Z","value":%q}`, strings.Repeat("x", 50_000))),
	} {
		store := newPolicyStore(t)
		s := newPolicySource(t, store)
		store.put(bad)
		check.OK(t, s.Refresh(t.Context()))
		requireError(t, s.Status().Err, bad.Target)
	}
}

// TestTemporaryChangeLeavesRoomForItsEnd: however large a temporary change is, the longer entry
// that ends it fits.
func TestTemporaryChangeLeavesRoomForItsEnd(t *testing.T) {
	tr := newTrail(t)
	note := strings.Repeat("n", clientcfg.MaxNoteLength)
	temporary := func(n int) clientcfg.Edit {
		var changes []clientcfg.Change
		for i := range n {
			changes = append(changes, stored(fmt.Sprintf("policies/%d", i), `{"trusted":true,"note":"`+note+`"}`))
		}
		return func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
			e.Action, e.Target, e.Until = "update", changes[0].Target, dawn
			e.Changes, err = p.Temporarily(changes, dawn, clientcfg.Actor{ClientID: "ops"})
			return e, err
		}
	}
	most := sort.Search(10_000, func(n int) bool {
		_, err := tr.Try(t.Context(), temporary(n+1))
		return err != nil
	})
	_, err := tr.Try(t.Context(), temporary(most+1))
	check.ErrorSays(t, err, "divide it")
	_, err = tr.Change(t.Context(), temporary(most))
	check.OK(t, err)
	ending, _ := tr.Snapshot().Ending(func(string, *clientcfg.End) bool { return true })
	_, err = tr.Change(t.Context(), func(*clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		e.Action, e.Target, e.Reason, e.Changes = "end", "policies/0", strings.Repeat("r", 5000), ending.Changes
		return e, nil
	})
	check.OK(t, err)
	check.Equal(t, "policies left", tr.Snapshot().Set().Clients.Len(), 0)
}

// temporary returns a target and its end, which returns it to a value.
func temporary(target, value, back string) []clientcfg.Change {
	return []clientcfg.Change{stored(target, value), stored(clientcfg.EndTarget(target),
		fmt.Sprintf(`{"until":%q,"change":1,"actor":{"client_id":"ops"},"value":%s}`, dawn.Format(time.RFC3339), back))}
}

// TestStuckEnds: as many ends as possible take effect together, whatever makes the others invalid,
// and few attempts find out which.
func TestStuckEnds(t *testing.T) {
	const tiers = 200
	var free []clientcfg.Change
	for i := range tiers {
		free = append(free, temporary(fmt.Sprintf("tiers/t-%03d", i), `{}`, "null")...)
	}
	all := func(string, *clientcfg.End) bool { return true }
	ends := func(p *clientcfg.PolicySnapshot) float64 { // allocated bytes
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p.Ending(all)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	snapshot := func(changes ...clientcfg.Change) *clientcfg.PolicySnapshot {
		store := newPolicyStore(t)
		store.put(slices.Concat(free, changes)...)
		return newPolicySource(t, store).Snapshot()
	}
	unstuck := ends(snapshot())
	for name, tt := range map[string]struct {
		changes []clientcfg.Change
		stuck   []string
	}{
		"tiers that are named": {
			[]clientcfg.Change{stored("policies/a", `{"tier":"t-007"}`), stored("policies/b", `{"tier":"t-150"}`)},
			[]string{"tiers/t-007", "tiers/t-150"},
		},
		"a tier that a policy returns to": {
			temporary("policies/a", `{}`, `{"tier":"t-007"}`), []string{"tiers/t-007"},
		},
		"a policy whose tier is not there": {
			temporary("policies/a", `{}`, `{"tier":"none"}`), []string{"policies/a"},
		},
		"a policy whose tier comes back, and one that is not valid": {
			slices.Concat(temporary("policies/a", `{}`, `{"tier":"t-back"}`), temporary("policies/b", `{}`, `{"new":1}`),
				temporary("tiers/t-back", "null", `{}`)),
			[]string{"policies/b"},
		},
		"a tier whose policy is not valid": {
			append(temporary("policies/a", `{"tier":"t-007"}`, `{"new":1}`), temporary("settings", `{}`, `{"mode":"off"}`)...),
			[]string{"policies/a", "tiers/t-007"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := snapshot(tt.changes...)
			ending, _ := p.Ending(all)
			check.Equal(t, "stuck", slices.Sorted(maps.Keys(ending.Stuck)), tt.stuck)
			check.Equal(t, "ends left", p.Lasting().Set().Ends.Len(), len(tt.stuck))
			if got := ends(p) / unstuck; got > 5 {
				t.Errorf("it takes %.1f times as much as if none is stuck, want 5 at most", got)
			}
		})
	}
}
