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

// End says when a temporary change of a target ends, and which value the target gets then. It is a
// target of its own, so it outlives the entry that it came with and is undone together with it. A
// target has at most one End.
type End struct {
	Until  time.Time       `json:"until"`  // UTC, whole milliseconds
	Change int64           `json:"change"` // version of the temporary change
	Actor  Actor           `json:"actor"`  // author of the change
	Value  json.RawMessage `json:"value"`  // of the target after the end, as in Change
	// Left is the version of a later change of the target, which cancels the end. 0 means that
	// there was no such change.
	Left int64 `json:"left,omitempty"`
}

const (
	endTargets = "ends/"
	// endRoom is more than an end needs in addition to its value. A temporary change keeps it free
	// for the entry that ends it.
	endRoom = 32 << 10
)

// EndTarget returns the target for the end of a temporary change of target.
func EndTarget(target string) string { return endTargets + target }

// endOf is the inverse of EndTarget.
func endOf(target string) (of string, ok bool) { return strings.CutPrefix(target, endTargets) }

// putEnd is [draft.put] for the end of a target.
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

// decodeEnd is decodeValue for an end, without decoding its own value.
func decodeEnd(of string, stored json.RawMessage) (e End, err error) {
	_, err = strict.ParseJSON(stored) // refuses duplicate names and invalid Unicode
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

// endValue returns the end of a target in the form of [Change].
func (p *PolicySnapshot) endValue(of string) (json.RawMessage, error) {
	e, ok := p.set.Ends.Get(of)
	if !ok {
		return jsonNull, nil
	}
	c, err := newChange(EndTarget(of), &e)
	return c.After, err
}

// End returns the end of the target's current value. The second result is false if the value is not
// temporary.
func (p *PolicySnapshot) End(target string) (End, bool) {
	e, ok := p.set.Ends.Get(target)
	return e, ok && e.Left == 0
}

// Alters reports whether the change gives its target another value, or a temporary target another
// end.
func (p *PolicySnapshot) Alters(c *Change) bool {
	_, temporary := p.End(c.Target)
	return temporary || p.GivesOther(c)
}

// GivesOther reports whether the change gives its target a value other than the stored one.
func (p *PolicySnapshot) GivesOther(c *Change) bool {
	value, err := p.value(c.Target)
	return err != nil || p.IsLeftOut(c.Target) || !bytes.Equal(value, c.After)
}

// Temporarily returns the changes together with the ends that make them temporary. A target that is
// already temporary still returns to its earlier value, but at the new time.
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

// Complete makes the event the next one, unless it already is. For each changed target with an
// earlier temporary change, it adds the change that cancels the end, unless the event changes that
// end itself.
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

// Ending describes the end of a temporary change.
type Ending struct {
	Change  int64    // version of the temporary change
	Actor   Actor    // author of the temporary change
	Changes []Change // without stuck targets
	// Left are the targets that were changed since and stay as they are, with the versions of those
	// changes.
	Left map[string]int64
	// Stuck are the targets that cannot end now because the result would be invalid, with the
	// reasons. They stay as they are.
	Stuck map[string]error
}

// Ending returns the ending of the earliest temporary change with due ends. found is false if there
// are no due ends.
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

// overdueAfter is longer than instances need to end a due change.
const overdueAfter = 10 * time.Second

// Overdue returns how many targets are still temporary although their end has passed.
func (p *PolicySnapshot) Overdue(now time.Time) (n int) {
	for _, e := range p.set.Ends.All() {
		if e.Left == 0 && IsOverdue(e.Until, now) {
			n++
		}
	}
	return n
}

// IsOverdue reports whether a temporary change until then should have ended.
func IsOverdue(until, now time.Time) bool {
	return !until.IsZero() && now.Sub(until) > overdueAfter
}

// Lasting returns the snapshot as it would be after the ends of all temporary changes, except stuck
// ends. It is computed once for each snapshot.
func (p *PolicySnapshot) Lasting() *PolicySnapshot { return p.lasting() }

// ended returns the snapshot after as many of these ends, by target, as are valid together, the
// changes that produce it, and the reasons for the other ends. An invalid end does not hold back
// others.
func (p *PolicySnapshot) ended(ends map[string]End) (next *PolicySnapshot, changes []Change, stuck map[string]error) {
	next, targets := p, slices.Sorted(maps.Keys(ends))
	for progress := true; progress; { // one end may become valid only after another
		var made []Change
		stuck = map[string]error{}
		next, made = next.endMost(ends, targets, stuck)
		changes, progress = append(changes, made...), len(made) > 0 && len(stuck) > 0
		targets = slices.Sorted(maps.Keys(stuck))
	}
	return next, changes, stuck
}

// endMost is like end, but skips invalid ends and adds them to stuck. The usual reason is a tier
// that would be removed while policies still name it. The error lists all such tiers at once, which
// keeps the number of attempts low, because each attempt looks at all policies. For other reasons
// the targets are bisected.
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

// end returns the snapshot after the ends of these targets, and the changes that produce it.
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
