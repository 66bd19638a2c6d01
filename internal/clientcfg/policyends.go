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

	"oauth-server/internal/fielderr"
	"oauth-server/internal/strict"
)

// End is when a temporary change of a target ends, and with which value. It is a target of its own
// beside the one that it ends: so it lasts longer than the entry that it came with, and is undone with that. A target has one at most.
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

// Alters reports whether the change gives its target another value, or another end to one that is temporary.
func (p *PolicySnapshot) Alters(c *Change) bool {
	_, temporary := p.End(c.Target)
	return temporary || p.GivesOther(c)
}

// GivesOther reports whether the change gives its target another value than the stored one.
func (p *PolicySnapshot) GivesOther(c *Change) bool {
	value, err := p.value(c.Target)
	return err != nil || p.IsLeftOut(c.Target) || !bytes.Equal(value, c.After)
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
		end, err := newChange(EndTarget(target), &End{Until: until, Change: p.next(), Actor: by, Value: before})
		if err != nil {
			return nil, err
		}
		out = append(out, end)
	}
	return out, nil
}

// Complete makes the event the next one, unless it is already. For each target that it changes, it adds the change
// that cancels the end of an earlier temporary change, unless it changes that end itself.
func (p *PolicySnapshot) Complete(e *Event) error {
	if e.Number == p.next() {
		return nil
	}
	e.Number = p.next()
	if p.set.Ends.Len() == 0 {
		return nil
	}
	changed := map[string]bool{}
	for i := range e.Changes {
		changed[e.Changes[i].Target] = true
	}
	changes := slices.Clone(e.Changes)
	for i := range e.Changes {
		target := e.Changes[i].Target
		end, temporary := p.End(target)
		if !temporary || changed[EndTarget(target)] {
			continue
		}
		end.Left = e.Number
		c, err := newChange(EndTarget(target), &end)
		if err != nil {
			return err
		}
		changes = append(changes, c)
	}
	e.Changes = changes
	return nil
}

// Ending is how a temporary change ends.
type Ending struct {
	Change  int64    // its version
	Actor   Actor    // who made it
	Changes []Change // without what is stuck
	// Left are the targets that were changed since and stay as they are, with the version of that change.
	Left map[string]int64
	// Stuck are the targets whose ends would not be valid now, with the reason. They stay as they are.
	Stuck map[string]error
}

// Ending returns how the first temporary change ends of those that have ends which are due; false if none is.
func (p *PolicySnapshot) Ending(due func(target string, e *End) bool) (ending Ending, found bool) {
	var ends map[string]End
	for target, e := range p.set.Ends.All() {
		switch {
		case !due(target, &e):
		case ends == nil, e.Change < ending.Change:
			ends, ending = map[string]End{target: e}, Ending{Change: e.Change, Actor: e.Actor, Left: map[string]int64{}}
		case e.Change == ending.Change:
			ends[target] = e
		}
	}
	for target, e := range ends {
		if e.Left != 0 {
			ending.Left[target] = e.Left
		}
	}
	_, ending.Changes, ending.Stuck = p.ended(ends)
	return ending, ends != nil
}

// overdueAfter is more than instances take to make what is due end.
const overdueAfter = 10 * time.Second

// Overdue returns how many targets are temporary still, although that should have ended.
func (p *PolicySnapshot) Overdue(now time.Time) (n int) {
	for _, e := range p.set.Ends.All() {
		if e.Left == 0 && IsOverdue(e.Until, now) {
			n++
		}
	}
	return n
}

// IsOverdue reports whether what was temporary until then should have ended.
func IsOverdue(until, now time.Time) bool {
	return !until.IsZero() && now.Sub(until) > overdueAfter
}

// Lasting returns the snapshot as it would be if all temporary changes ended, except those ends that are
// stuck. It is worked out once for each snapshot.
func (p *PolicySnapshot) Lasting() *PolicySnapshot { return p.lasting() }

// ended returns the snapshot after as many of these ends, by target, as are valid together, by which changes
// it comes about, and why the others are not. An end that is not valid holds back no other.
func (p *PolicySnapshot) ended(ends map[string]End) (next *PolicySnapshot, changes []Change, stuck map[string]error) {
	next, targets := p, slices.Sorted(maps.Keys(ends))
	for progress := true; progress; { // one may be valid only after another
		var made []Change
		stuck = map[string]error{}
		next, made = next.endMost(ends, targets, stuck)
		changes, progress = append(changes, made...), len(made) > 0 && len(stuck) > 0
		targets = slices.Sorted(maps.Keys(stuck))
	}
	return next, changes, stuck
}

// endMost is end without those ends that are not valid, which it adds to stuck. What usually keeps an end from
// being valid is a tier that would go and that policies name. The error names all of these tiers at once, so
// that few attempts are made: each looks at all policies. For any other reason the targets are divided.
func (p *PolicySnapshot) endMost(ends map[string]End, targets []string, stuck map[string]error) (*PolicySnapshot, []Change) {
	next, changes, err := p.end(ends, targets...)
	if err == nil {
		return next, changes
	}
	named := map[string]error{}
	for _, e := range fielderr.Of(err) {
		named[e.Path] = fielderr.Errors{e}
	}
	rest := slices.DeleteFunc(slices.Clone(targets), func(target string) bool {
		name, is := TierOf(target)
		why := named[fielderr.Join("tiers", name)]
		if is && why != nil {
			stuck[target] = why
		}
		return is && why != nil
	})
	switch {
	case len(rest) == 0:
		return p, nil
	case len(rest) < len(targets):
		return p.endMost(ends, rest, stuck)
	case len(rest) == 1:
		stuck[rest[0]] = err
		return p, nil
	}
	next, changes = p.endMost(ends, rest[:len(rest)/2], stuck)
	next, more := next.endMost(ends, rest[len(rest)/2:], stuck)
	return next, append(changes, more...)
}

// end returns the snapshot after the ends of these targets, and the changes by which it comes about.
func (p *PolicySnapshot) end(ends map[string]End, targets ...string) (*PolicySnapshot, []Change, error) {
	e := Event{Number: p.next()}
	for _, target := range targets {
		if end := ends[target]; end.Left == 0 {
			e.Changes = append(e.Changes, Change{Target: target, Before: jsonNull, After: end.Value})
		}
		e.Changes = append(e.Changes, Change{Target: EndTarget(target), Before: jsonNull, After: jsonNull})
	}
	if len(e.Changes) == 0 {
		return p, nil, nil
	}
	next, err := p.Apply(&e)
	return next, e.Changes, err
}
