package clientcfg_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

var dawn = time.Date(2126, 5, 1, 6, 0, 0, 0, time.UTC)

// trailOf makes changes one after the other. A change with an end is temporary.
type trailOf struct {
	t     *testing.T
	store *policyStore
	now   time.Time
	*following
	other *following // follows only when it is looked at
}

func newTrail(t *testing.T) *trailOf {
	t.Helper()
	tr := &trailOf{t: t, store: newPolicyStore(t), now: dawn.Add(-time.Hour)}
	tr.following, tr.other = tr.start(), tr.start()
	return tr
}

// start starts an instance.
func (tr *trailOf) start() *following {
	tr.t.Helper()
	tr.store.now = tr.now
	return follow(tr.t, tr.store, clientcfg.PolicyOptions{Base: fileSettings(), Clock: func() time.Time { return tr.now }})
}

func (tr *trailOf) make(until time.Time, changes ...clientcfg.Change) {
	tr.t.Helper()
	_, err := tr.Change(tr.t.Context(), func(*clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		e.Action, e.Target, e.Changes, e.Until = "update", changes[0].Target, changes, until
		if !until.IsZero() {
			e.Changes, err = clientcfg.Temporarily(changes, until)
		}
		return e, err
	})
	check.OK(tr.t, err)
}

// end ends everything due at now.
func (tr *trailOf) end(now time.Time) {
	tr.t.Helper()
	tr.now = now
	check.OK(tr.t, tr.End(tr.t.Context()))
}

func (tr *trailOf) undo(version int64) (changed int) {
	tr.t.Helper()
	e := &tr.store.trail()[version-1]
	changes, _, err := e.Undo(tr.Snapshot(), tr.now)
	check.OK(tr.t, err)
	if len(changes) > 0 {
		tr.make(time.Time{}, changes...)
	}
	return len(changes)
}

// is fails unless shop has that limit until that time. An instance that has followed several changes
// at once and one that reads everything again must agree.
func (tr *trailOf) is(requests int64, until time.Time) {
	tr.t.Helper()
	check.OK(tr.t, tr.other.Refresh(tr.t.Context()))
	check.OK(tr.t, tr.other.End(tr.t.Context()))
	for _, s := range []*following{tr.following, tr.other, tr.start()} {
		value, temporary := s.Snapshot().Temporary("policies/shop")
		if got := userLimit(s, "shop"); got != requests || temporary == until.IsZero() || temporary && !value.Until.Equal(until) {
			tr.t.Errorf("shop has %d until %v (%v), want %d until %v", got, value.Until, temporary, requests, until)
		}
	}
}

func TestTemporaryChangeEnds(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.is(7, never) // in the file
	tr.make(never, shopHas(10))
	tr.make(dawn, shopHas(20), stored("policies/a", `{"trusted":true}`))
	tr.is(20, dawn)
	tr.end(dawn.Add(-1))
	tr.is(20, dawn)
	late := tr.start()
	tr.end(dawn)
	tr.is(10, never)
	check.OK(t, late.End(t.Context()))
	check.Equal(t, "at an instance that was started meanwhile", userLimit(late, "shop"), 10)
	check.Equal(t, "a is trusted", tr.Snapshot().For("a").Trusted, false)
	own, _ := tr.Snapshot().Policy("shop")
	check.Equal(t, "version of the policy, and of all", []int64{own.Changed, tr.Snapshot().Version()}, []int64{1, 2})
	check.Equal(t, "temporary values", tr.Snapshot().Set().Temporary.Len(), 0)
}

// TestTemporaryChangeEndsWithoutTheStore: nothing is written at the end.
func TestTemporaryChangeEndsWithoutTheStore(t *testing.T) {
	tr := newTrail(t)
	tr.make(dawn, shopHas(20))
	check.OK(t, tr.store.Close())
	tr.end(dawn)
	check.Equal(t, "limit", userLimit(tr.following, "shop"), 7)
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
			tr.end(dawn)
			tr.is(stays, never)
			check.Equal(t, "a is trusted", tr.Snapshot().For("a").Trusted, false)
		})
	}
}

// step is a step of a test: a change of shop, an end, an undo or a check.
type step func(tr *trailOf)

// gets gives shop a limit, until a time after dawn if there is one.
func gets(requests int, until ...time.Duration) step { return shopGets(shopHas(requests), until) }

func removed(until ...time.Duration) step { return shopGets(stored("policies/shop", "null"), until) }

func shopGets(c clientcfg.Change, until []time.Duration) step {
	return func(tr *trailOf) { tr.make(afterDawn(until), c) }
}

func afterDawn(until []time.Duration) time.Time {
	if len(until) == 0 {
		return time.Time{}
	}
	return dawn.Add(until[0])
}

func has(requests int64, until ...time.Duration) step {
	return func(tr *trailOf) { tr.is(requests, afterDawn(until)) }
}

func ends(at time.Duration) step { return func(tr *trailOf) { tr.end(dawn.Add(at)) } }

// undone undoes a change, which changes so many targets.
func undone(version int64, changed int) step {
	return func(tr *trailOf) { check.Equal(tr.t, "changed by the undo", tr.undo(version), changed) }
}

// TestTemporaryChanges: the file gives shop a limit of 7.
func TestTemporaryChanges(t *testing.T) {
	for name, steps := range map[string][]step{
		"a removal is reversed":                                {gets(10), removed(0), has(7, 0), ends(0), has(10)},
		"a removal, and a temporary value at once":             {gets(10), has(10), removed(), gets(20, 0), has(20, 0), ends(0), has(7)},
		"a second one returns to the value before both":        {gets(10), gets(20, 0), gets(30, time.Hour), has(30, time.Hour), ends(0), has(30, time.Hour), ends(time.Hour), has(10)},
		"a second one is undone":                               {gets(10), gets(20, 0), gets(30, time.Hour), undone(3, 1), has(20, 0), undone(4, 1), has(30, time.Hour), ends(time.Hour), has(10)},
		"an undo of the undo":                                  {gets(10), gets(20), undone(2, 1), has(10), undone(3, 1), has(20), undone(4, 1), undone(1, 1), has(7)},
		"an undo removes it":                                   {gets(10), gets(20, 0), undone(2, 1), has(10), undone(3, 1), has(20, 0)},
		"an undo does not bring it back after its end":         {gets(10), gets(20, 0), undone(2, 1), undone(3, 1), undone(4, 1), ends(0), undone(5, 0), has(10)},
		"an undo makes it temporary again":                     {gets(10), gets(20, 0), gets(30), undone(3, 2), has(20, 0)},
		"an undo after its end returns to the value before it": {gets(10), gets(20, 0), gets(30), ends(0), undone(3, 1), has(10)},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrail(t)
			for _, step := range steps {
				step(tr)
			}
		})
	}
}

func TestLasting(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	tr.make(never, shopHas(10))
	tr.make(dawn, shopHas(20))
	tr.make(dawn.Add(time.Hour), stored("settings", `{"mode":"off"}`))
	p := tr.Snapshot().Lasting()
	check.Equal(t, "limit", p.For("shop").User.All()[0].Requests, 10)
	check.Equal(t, "mode", string(p.Settings().Mode), "enforce")
	check.Equal(t, "what lasts is itself", p.Lasting() == p, true)
	tr.is(20, dawn)
}

// TestUnreadableTemporaryValues: the permanent value is in force, and the next change of the target
// removes the record.
func TestUnreadableTemporaryValues(t *testing.T) {
	for target, value := range map[string]string{
		"temporary/policies/shop":           `{"until":"2126-05-01T06:00:00Z","value":null,"new":1}`,
		"temporary/policies/web":            `{"value":null}`,
		"temporary/policies/app":            `{"until":"2126-05-01T06:00:00Z","value":{"user":[{"requests":0}]}}`,
		"temporary/temporary/policies/shop": `{"until":"2126-05-01T06:00:00Z","value":null}`,
		"temporary/clients/shop/counters":   `{"until":"2126-05-01T06:00:00Z","value":null}`,
		"temporary/settings":                fmt.Sprintf(`{"until":"2126-05-01T06:00:00Z","value":%q}`, strings.Repeat("x", 50_000)),
	} {
		tr := newTrail(t)
		tr.store.put(shopHas(10), stored(target, value))
		check.OK(t, tr.Refresh(t.Context()))
		for _, s := range []*following{tr.following, tr.start()} {
			requireError(t, s.Status().Err, target)
			check.Equal(t, "limit", userLimit(s, "shop"), 10)
		}
		of := strings.TrimPrefix(target, "temporary/")
		if c := stored(of, `{}`); c.IsState() && of == c.Of() {
			tr.make(time.Time{}, c)
			check.OK(t, tr.Status().Err)
			check.OK(t, tr.start().Status().Err)
		}
	}
}

// TestReturnToWhatCannotBeUsed: a permanent value that cannot be used is left out at the end of the
// temporary one, and the configuration file's is in force.
func TestReturnToWhatCannotBeUsed(t *testing.T) {
	for _, bad := range []string{`{"user":[{"requests":0}]}`, `{"of_a_later_release":1}`} {
		var log bytes.Buffer
		f := newPolicyStore(t)
		f.now = dawn.Add(-time.Hour)
		value, err := clientcfg.Temporarily([]clientcfg.Change{shopHas(20)}, dawn)
		check.OK(t, err)
		f.put(value[0], stored("policies/shop", bad))
		s := follow(t, f, clientcfg.PolicyOptions{
			Base: fileSettings(), Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: func() time.Time { return dawn },
		})
		check.Equal(t, "limit before", userLimit(s, "shop"), 20)
		check.OK(t, s.End(t.Context()))
		check.Equal(t, "limit", userLimit(s, "shop"), 7)
		check.Equal(t, "left out", s.Snapshot().IsLeftOut("policies/shop"), true)
		check.Equal(t, "logged", strings.Contains(log.String(), "stored limits cannot be used"), true)
	}
}

// TestCheckEnds: temporary values must return to something valid at each end.
func TestCheckEnds(t *testing.T) {
	tr, never := newTrail(t), time.Time{}
	refused := func(until time.Time, field string, changes ...clientcfg.Change) {
		t.Helper()
		before := tr.Snapshot()
		e := entry(before.Version()+1, changes...)
		if !until.IsZero() {
			var err error
			e.Changes, err = clientcfg.Temporarily(changes, until)
			check.OK(t, err)
		}
		before.Complete(e)
		next, err := before.Apply(e)
		check.OK(t, err)
		es := next.CheckEnds(before)
		if field == "" {
			check.Equal(t, "errors", es, nil)
			return
		}
		requireError(t, es.Err(), field)
		requireError(t, es.Err(), ", after the temporary value ends at 2126-05-01T0")
	}
	tr.make(never, stored("tiers/gold", `{}`), stored("policies/shop", `{"tier":"gold"}`))
	tr.make(dawn, stored("policies/shop", `{}`))
	refused(never, `clients.shop.tier: tier "gold" does not exist`, stored("tiers/gold", "null"))
	refused(dawn.Add(time.Hour), `clients.shop.tier: tier "gold" does not exist`, stored("tiers/gold", "null"))
	refused(dawn, "", stored("tiers/gold", "null"))
	tr.make(dawn.Add(time.Hour), stored("tiers/new", `{}`))
	refused(dawn.Add(2*time.Hour), "tiers.new: is the tier of 1 client: app", stored("policies/app", `{"tier":"new"}`))
	refused(dawn.Add(time.Hour), "", stored("policies/app", `{"tier":"new"}`))
}
