package clientcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// Temporary is the value of a target until a time. It is a target of its own, stored beside the
// permanent value, which is in force again from then on. So nothing has to be written at the end.
type Temporary struct {
	Until time.Time       `json:"until"` // UTC, whole milliseconds
	Value json.RawMessage `json:"value"` // as in Change

	lasting json.RawMessage // the permanent value
	since   int64           // version of the permanent value
}

const (
	temporaryTargets = "temporary/"
	// temporaryRoom is more than a temporary value needs beside its value.
	temporaryRoom = 1 << 10
	// temporaryKept is how long the store keeps a temporary value after its end. Other clocks may
	// be behind.
	temporaryKept = 24 * time.Hour
)

// TemporaryTarget returns the target for the temporary value of a target.
func TemporaryTarget(target string) string { return temporaryTargets + target }

// temporaryOf is the inverse of TemporaryTarget.
func temporaryOf(target string) (of string, ok bool) {
	return strings.CutPrefix(target, temporaryTargets)
}

// putTemporary gives a target a temporary value, or its permanent value if value is null.
func (d *draft) putTemporary(of string, value json.RawMessage, version int64) error {
	before, is := d.temporary.Get(of)
	if isNull(value) {
		if !is {
			return nil
		}
		d.temporary.Delete(of)
		return d.putValue(of, before.lasting, before.since)
	}
	t, err := decodeTemporary(of, value)
	if err != nil {
		return err
	}
	if t.lasting, t.since, err = d.next.value(of); err != nil {
		return err
	}
	if err := d.putValue(of, t.Value, version); err != nil {
		return err
	}
	if d.problems() == nil {
		d.temporary.Set(of, t)
	}
	return nil
}

// decodeTemporary is decodeValue without decoding the value itself.
func decodeTemporary(of string, stored json.RawMessage) (t Temporary, err error) {
	_, err = strict.ParseJSON(stored) // refuses duplicate names and invalid Unicode
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(stored))
		d.DisallowUnknownFields()
		err = d.Decode(&t)
	}
	c := Change{Target: of}
	switch {
	case err != nil:
	case t.Until.IsZero():
		err = errors.New("it has no time")
	case len(stored) > MaxTargetSize+temporaryRoom:
		err = fmt.Errorf("it takes %d bytes, more than the maximum of %d", len(stored), MaxTargetSize+temporaryRoom)
	case c.Of() != of || !c.IsState():
		err = errors.New("it has no target")
	}
	if err != nil {
		return t, fmt.Errorf("%w: %s: %w", ErrUnreadable, TemporaryTarget(of), err)
	}
	return t, nil
}

// Temporary returns the temporary value of a target. The second result is false if its value is
// permanent.
func (p *PolicySnapshot) Temporary(target string) (Temporary, bool) {
	return p.set.Temporary.Get(target)
}

// Temporarily returns the changes as temporary ones.
func Temporarily(changes []Change, until time.Time) ([]Change, error) {
	out := make([]Change, len(changes))
	for i := range changes {
		var err error
		if out[i], err = newChange(TemporaryTarget(changes[i].Target), &Temporary{Until: until, Value: changes[i].After}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Complete makes the event the next one. A target that the event gives a permanent value loses its
// temporary value. It may be called several times.
func (p *PolicySnapshot) Complete(e *Event) {
	e.Number = p.next()
	changed := map[string]bool{}
	for i := range e.Changes {
		changed[e.Changes[i].Target] = true
	}
	changes := slices.Clone(e.Changes)
	for i := range e.Changes {
		other := TemporaryTarget(e.Changes[i].Target)
		if _, temporary := p.Temporary(e.Changes[i].Target); (temporary || p.IsLeftOut(other)) && !changed[other] {
			changes = append(changes, Change{Target: other, Before: jsonNull, After: jsonNull})
		}
	}
	e.Changes = changes
}

// Alters reports whether the change gives its target a value other than the stored one, or makes a
// temporary value permanent.
func (p *PolicySnapshot) Alters(c *Change) bool {
	value, _, err := p.value(c.Target)
	_, temporary := p.Temporary(c.Target)
	return err != nil || temporary || p.IsLeftOut(c.Target) || !bytes.Equal(value, c.After)
}

// farFuture is after every end.
var farFuture = time.Unix(1<<40, 0)

// Lasting returns the snapshot as it would be after the end of all temporary values.
func (p *PolicySnapshot) Lasting() *PolicySnapshot { return p.At(farFuture) }

// At returns the snapshot without the temporary values that have ended by then. A permanent value
// that cannot be used is left out.
func (p *PolicySnapshot) At(then time.Time) *PolicySnapshot {
	if p.nextEnd.IsZero() || then.Before(p.nextEnd) {
		return p
	}
	d := p.edit()
	d.reading = true
	for target, t := range p.set.Temporary.All() {
		if t.Until.After(then) {
			continue
		}
		d.temporary.Delete(target)
		if err := d.try(target, t.lasting, t.since); err != nil {
			_ = d.try(target, jsonNull, 0) // always valid
			d.leaveOut(target, err)
		}
	}
	next, err := d.finish()
	if err != nil { // never while reading
		return p
	}
	return next
}

// ending is like At, for permanent values that must be valid together. The error is or wraps
// [fielderr.Errors].
func (p *PolicySnapshot) ending(then time.Time) (*PolicySnapshot, error) {
	d := p.edit()
	for target, t := range p.set.Temporary.All() {
		if t.Until.After(then) {
			continue
		}
		if err := d.putTemporary(target, jsonNull, 0); err != nil {
			return nil, err
		}
	}
	return d.finish()
}

// CheckEnds reports, as [fielderr.Errors], whether temporary values of this snapshot return to
// something invalid at their ends, such as a tier that is missing then. It ignores what is wrong in
// the snapshot before, too.
func (p *PolicySnapshot) CheckEnds(before *PolicySnapshot) (es fielderr.Errors) {
	every := func(string) bool { return true }
	for _, then := range Ends(every, p) {
		next, err := p.ending(then)
		if err == nil {
			p = next
			continue
		}
		if _, wrong := before.ending(then); wrong != nil {
			return nil
		}
		for _, e := range fielderr.Of(err) {
			es.Add(e.Path, "%s, after the temporary value ends at %s", e.Message, then.Format(time.RFC3339))
		}
		return es
	}
	return nil
}

// Ends returns, in order, the times when temporary values of certain targets end in the snapshots.
func Ends(concerns func(target string) bool, snapshots ...*PolicySnapshot) []time.Time {
	times := map[int64]time.Time{} // keyed by milliseconds, because equal times can differ as map keys
	for _, p := range snapshots {
		for target, t := range p.set.Temporary.All() {
			if concerns(target) {
				times[t.Until.UnixMilli()] = t.Until.UTC()
			}
		}
	}
	return slices.SortedFunc(maps.Values(times), time.Time.Compare)
}

// Targets returns the targets that the changes affect, each once. A temporary value counts as its
// target.
func Targets(changes []Change) (targets []string) {
	seen := map[string]bool{}
	for i := range changes {
		if target := changes[i].Of(); !seen[target] {
			seen[target], targets = true, append(targets, target)
		}
	}
	return targets
}

// Undo returns the changes that give the targets of the entry their previous values, or no changes
// if they already have them. since are the targets that no longer have the values of the entry.
// Commands cannot be undone and are skipped, and a temporary value that would have ended does not
// return.
func (e *Event) Undo(p *PolicySnapshot, now time.Time) (changes []Change, since []string, err error) {
	given := map[string]bool{}
	for i := range e.Changes {
		given[e.Changes[i].Target] = true
	}
	for i := range e.Changes {
		c := &e.Changes[i]
		if !c.IsState() {
			continue
		}
		before, errBefore := unlessEnded(c.Target, c.Before, now)
		after, errAfter := unlessEnded(c.Target, c.After, now)
		value, _, err := p.value(c.Target)
		if err := errors.Join(errBefore, errAfter, err); err != nil {
			return nil, nil, err
		}
		_, temporary := p.Temporary(c.Target) // set by another entry: this one would have ended it
		if !sameValue(value, after) || temporary && !given[TemporaryTarget(c.Target)] {
			since = append(since, c.Of())
		}
		if !sameValue(value, before) {
			changes = append(changes, Change{Target: c.Target, Before: jsonNull, After: before})
		}
	}
	return changes, since, nil
}

// unlessEnded returns the value, or null if it is a temporary one that has ended.
func unlessEnded(target string, value json.RawMessage, now time.Time) (json.RawMessage, error) {
	if isNull(value) {
		return jsonNull, nil
	}
	if of, is := temporaryOf(target); is {
		if t, err := decodeTemporary(of, value); err != nil || !now.Before(t.Until) {
			return jsonNull, err
		}
	}
	return value, nil
}
