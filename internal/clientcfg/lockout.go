package clientcfg

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// LockedOut returns an error if the snapshot after locks out an operator's client that before does
// not, now or from the end of a temporary change on. It reports the earliest time, and the first
// client by ID. The error is or wraps a *[LockOutError].
func (d *Directory) LockedOut(before, after *PolicySnapshot) error {
	operators := map[string]*Client{}
	for c := range d.Operators() {
		operators[c.ID] = c
	}
	err := lockedOut(operators, before, after)
	for _, at := range endsOf(operators, before, after) {
		if err != nil {
			break
		}
		before, after = before.endedAt(at), after.endedAt(at)
		if err = lockedOut(operators, before, after); err != nil {
			err = fmt.Errorf("when what is temporary until %s has ended: %w", at.UTC().Format(time.RFC3339), err)
		}
	}
	return err
}

func lockedOut(operators map[string]*Client, before, after *PolicySnapshot) error {
	for _, id := range slices.Sorted(maps.Keys(operators)) {
		for _, mode := range modesJudged {
			err := after.locksOut(operators[id], mode)
			if err != nil && before.locksOut(operators[id], mode) == nil {
				return err
			}
		}
	}
	return nil
}

// endsOf returns, in order, the times when something temporary ends that may affect one of the
// operators' clients: its policy, overrides of its users, the settings, and tiers.
func endsOf(operators map[string]*Client, snapshots ...*PolicySnapshot) []time.Time {
	times := map[int64]time.Time{} // keyed by milliseconds, because equal times can differ as map keys
	for _, p := range snapshots {
		for target, e := range p.set.Ends.All() {
			id, all := (&Change{Target: target}).Concerns()
			_, tier := TierOf(target)
			if e.Left == 0 && (all || tier || operators[id] != nil) {
				times[e.Until.UnixMilli()] = e.Until
			}
		}
	}
	return slices.SortedFunc(maps.Values(times), time.Time.Compare)
}

// endedAt returns the snapshot after all ends up to that time, with no other changes.
func (p *PolicySnapshot) endedAt(at time.Time) *PolicySnapshot {
	due := map[string]End{}
	for target, e := range p.set.Ends.All() {
		if !e.Until.After(at) {
			due[target] = e
		}
	}
	next, _, _ := p.ended(due)
	return next
}
