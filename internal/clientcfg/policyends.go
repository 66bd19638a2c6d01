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
)

// End is when a temporary change of a target ends, and with which value. It is a target of its own
// beside the one that it ends: so it is folded like any other, lasts longer than the entry that it came
// with, and is undone with that. A target has one at most.
type End struct {
	Until  time.Time       `json:"until"`  // UTC, whole milliseconds
	Change int64           `json:"change"` // version of the temporary change
	Actor  Actor           `json:"actor"`  // who made it
	Value  json.RawMessage `json:"value"`  // of the target from then on, as Change has it
	// Left is the version of a later change of the target, which therefore stays as it is; 0: there is
	// none.
	Left int64 `json:"left,omitempty"`
}

const (
	endTargets = "ends/"
	// endRoom is more than an end takes beside the value that it has, and is kept free in a temporary
	// change for the entry that ends it.
	endRoom = 32 << 10
)

// EndTarget is the end of a temporary change of a target as a target.
func EndTarget(target string) string { return endTargets + target }

// endOf is the inverse of EndTarget.
func endOf(target string) (of string, ok bool) { return strings.CutPrefix(target, endTargets) }

// putEnd is [draft.put] of the end of a target.
func (d *draft) putEnd(of string, value json.RawMessage) error {
	_, nested := endOf(of)
	if c := (Change{Target: of}); nested || !c.IsState() {
		return fmt.Errorf("%w: %s is no target", ErrUnreadable, EndTarget(of))
	}
	var e *End
	if !isNull(value) {
		read, err := decodeEnd(of, value)
		if err != nil {
			return err
		}
		e = &read
	}
	if d.ends == nil {
		d.ends = d.set.Ends.Edit()
	}
	put(d.ends, of, e)
	return nil
}

// decodeEnd is decodeValue for an end, whose own value is not decoded.
func decodeEnd(of string, stored json.RawMessage) (e End, err error) {
	_, err = strict.ParseJSON(stored) // no name twice, only Unicode
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(stored))
		d.DisallowUnknownFields()
		err = d.Decode(&e)
	}
	switch {
	case err != nil:
	case e.Until.IsZero():
		err = errors.New("it has no time")
	case len(stored) > MaxTargetSize+endRoom:
		err = fmt.Errorf("it takes %d bytes, more than %d", len(stored), MaxTargetSize+endRoom)
	}
	if err != nil {
		return e, fmt.Errorf("%w: %s: %w", ErrUnreadable, EndTarget(of), err)
	}
	return e, nil
}

// endValue is the end of a target as [Change] has it.
func (p *PolicySnapshot) endValue(of string) (json.RawMessage, error) {
	e, ok := p.set.Ends.Get(of)
	if !ok {
		return jsonNull, nil
	}
	c, err := newChange(EndTarget(of), &e)
	return c.After, err
}

// End returns the end of what the target is now; false if that has none.
func (p *PolicySnapshot) End(target string) (End, bool) {
	e, ok := p.set.Ends.Get(target)
	return e, ok && e.Left == 0
}

// Alters reports whether the change gives its target another value, or makes one last that is temporary.
func (p *PolicySnapshot) Alters(c *Change) bool {
	value, err := p.value(c.Target)
	_, temporary := p.End(c.Target)
	return err != nil || temporary || !bytes.Equal(value, c.After)
}

// Temporarily returns the changes with the ends that make them temporary. A target that is temporary
// already returns to the same value as before, only at the new time.
func (p *PolicySnapshot) Temporarily(changes []Change, until time.Time, by Actor) ([]Change, error) {
	out := slices.Clone(changes)
	for i := range changes {
		target := changes[i].Target
		before, err := p.value(target)
		if err != nil {
			return nil, err
		}
		if e, temporary := p.End(target); temporary {
			before = e.Value
		}
		end, err := newChange(EndTarget(target), &End{Until: until, Change: p.Version() + 1, Actor: by, Value: before})
		if err != nil {
			return nil, err
		}
		out = append(out, end)
	}
	return out, nil
}

// overtaken returns the changes by which ends have no effect any more: those of targets that an entry of
// that version changes, unless it changes the end itself.
func (p *PolicySnapshot) overtaken(version int64, changes []Change) (ends []Change, err error) {
	if p.set.Ends.Len() == 0 {
		return nil, nil
	}
	changed := map[string]bool{}
	for i := range changes {
		changed[changes[i].Target] = true
	}
	for i := range changes {
		target := changes[i].Target
		e, temporary := p.End(target)
		if !temporary || changed[EndTarget(target)] {
			continue
		}
		e.Left = version
		end, err := newChange(EndTarget(target), &e)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// Ending is how a temporary change ends.
type Ending struct {
	Change  int64 // its version
	Actor   Actor // who made it
	Changes []Change
	// Left are the targets that were changed since and stay as they are, with the version of that change.
	Left map[string]int64
}

// Ending returns how the first temporary change ends of those that are due; false if none is.
func (p *PolicySnapshot) Ending(due func(*End) bool) (ending Ending, found bool) {
	var ends map[string]End
	for target, e := range p.set.Ends.All() {
		switch {
		case !due(&e):
		case ends == nil, e.Change < ending.Change:
			ends, ending = map[string]End{target: e}, Ending{Change: e.Change, Actor: e.Actor, Left: map[string]int64{}}
		case e.Change == ending.Change:
			ends[target] = e
		}
	}
	for _, target := range slices.Sorted(maps.Keys(ends)) {
		e := ends[target]
		if e.Left != 0 {
			ending.Left[target] = e.Left
		} else {
			ending.Changes = append(ending.Changes, Change{Target: target, Before: jsonNull, After: e.Value})
		}
		ending.Changes = append(ending.Changes, Change{Target: EndTarget(target), Before: jsonNull, After: jsonNull})
	}
	return ending, ends != nil
}

// Lasting returns the snapshot as it would be if all temporary changes ended. Those of which that would not
// be valid stay, as they do when they are due.
func (p *PolicySnapshot) Lasting() *PolicySnapshot {
	if next, err := p.ended(func(*End) bool { return true }); err == nil {
		return next
	}
	changes := map[int64]bool{}
	for _, e := range p.set.Ends.All() {
		changes[e.Change] = true
	}
	for _, change := range slices.Sorted(maps.Keys(changes)) { // as they end
		if next, err := p.ended(func(e *End) bool { return e.Change == change }); err == nil {
			p = next
		}
	}
	return p
}

// ended returns the snapshot as it would be if the temporary changes of these ends ended.
func (p *PolicySnapshot) ended(chosen func(*End) bool) (*PolicySnapshot, error) {
	e := PolicyEntry{AuditEntry: AuditEntry{Version: p.Version() + 1}}
	for target, end := range p.set.Ends.All() {
		if !chosen(&end) {
			continue
		}
		e.Changes = append(e.Changes, Change{Target: EndTarget(target), After: jsonNull})
		if end.Left == 0 {
			e.Changes = append(e.Changes, Change{Target: target, After: end.Value})
		}
	}
	if len(e.Changes) == 0 {
		return p, nil
	}
	return p.Apply(&e)
}
