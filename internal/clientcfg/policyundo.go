package clientcfg

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// EachEntry calls each with the entries of the trail from that version on, the oldest first, until it
// returns an error. At an entry that cannot be read it ends with [ErrUnreadable].
func (s *PolicySource) EachEntry(ctx context.Context, from int64, each func(*PolicyEntry) error) error {
	for {
		entries, err := s.store.PolicyEntries(ctx, from)
		for i := range entries {
			if err := each(&entries[i]); err != nil {
				return err
			}
			from = entries[i].Version + 1
		}
		if err != nil {
			return fmt.Errorf("clientcfg: read the trail of the policies: %w", err)
		}
		if len(entries) == 0 {
			return nil
		}
	}
}

// Undo returns the changes that give the targets of the entry the values of before, if these were not
// changed since; none if they have them. A value that was temporary then, and would have ended by now, is
// the one that it would have returned to. What is no state cannot be undone, and is left out.
func (e *PolicyEntry) Undo(p *PolicySnapshot, now time.Time) (changes []Change, err error) {
	ends := map[string]json.RawMessage{} // before, by the target that they end
	for i := range e.Changes {
		if of, is := endOf(e.Changes[i].Target); is {
			ends[of] = e.Changes[i].Before
		}
	}
	for i := range e.Changes {
		c := &e.Changes[i]
		if _, is := endOf(c.Target); is || !c.IsState() {
			continue
		}
		value, end := c.Before, ends[c.Target]
		if !isNull(end) {
			then, err := decodeEnd(c.Target, end)
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
		undone, err := p.restore(c.Target, value, end)
		if err != nil {
			return nil, err
		}
		changes = append(changes, undone...)
	}
	return changes, nil
}

// restore returns the changes after which a target has that value, and that end or none.
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
