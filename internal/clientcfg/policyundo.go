package clientcfg

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Changed returns the targets that the event changes, each once. Targets with only their end
// changed come last.
func (e *Event) Changed() (targets []string) {
	seen := map[string]bool{}
	for _, ends := range []bool{false, true} {
		for i := range e.Changes {
			target, is := strings.CutPrefix(e.Changes[i].Target, endTargets)
			if is == ends && !seen[target] {
				seen[target], targets = true, append(targets, target)
			}
		}
	}
	return targets
}

// Undo returns the changes that give the targets of the entry their previous values, or no changes
// if they already have them. The caller checks that the targets were not changed since. If a
// previous value was temporary and would already have ended, the value after its end is restored.
// Commands cannot be undone, and are skipped.
func (e *Event) Undo(p *PolicySnapshot, now time.Time) (changes []Change, err error) {
	ends, values := map[string]json.RawMessage{}, map[string]json.RawMessage{} // previous ends and values, by target
	for i := range e.Changes {
		c := &e.Changes[i]
		if of, is := endOf(c.Target); is {
			ends[of] = c.Before
		} else if c.IsState() {
			values[c.Target] = c.Before
		}
	}
	for _, target := range e.Changed() {
		value, given := values[target]
		end, ended := ends[target]
		switch {
		case !given && !ended: // a command, not state
			continue
		case !given:
			if value, err = p.value(target); err != nil {
				return nil, err
			}
		}
		if !isNull(end) {
			then, err := decodeEnd(target, end)
			switch {
			case err != nil:
				return nil, err
			case now.Before(then.Until):
			case then.Left == 0:
				value, end = then.Value, nil
			default:
				end = nil
			}
		}
		undone, err := p.restore(target, value, end)
		if err != nil {
			return nil, err
		}
		changes = append(changes, undone...)
	}
	return changes, nil
}

// restore returns the changes that give a target that value and that end, which may be null.
func (p *PolicySnapshot) restore(target string, value, end json.RawMessage) (changes []Change, err error) {
	if isNull(value) {
		value = jsonNull
	}
	if isNull(end) {
		end = jsonNull
	}
	for _, c := range []Change{{Target: target, After: value}, {Target: EndTarget(target), After: end}} {
		now, err := p.value(c.Target)
		if err != nil {
			return nil, err
		}
		if c.Before = jsonNull; !bytes.Equal(now, c.After) {
			changes = append(changes, c)
		}
	}
	return changes, nil
}
