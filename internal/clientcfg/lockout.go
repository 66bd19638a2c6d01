package clientcfg

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// LockedOut returns an error if the second snapshot locks out an operator's client that the first does not,
// now or from an end of something temporary on: that of the first time, and of the first client by ID. It is or
// wraps a *[LockOutError].
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

// endsOf returns the times, in order, at which something temporary ends that may be of one of the operators'
// clients: its policy, the overrides of its users, the settings, and the tiers.
func endsOf(operators map[string]*Client, snapshots ...*PolicySnapshot) []time.Time {
	times := map[int64]time.Time{} // as two of the same time may differ otherwise
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

// endedAt returns the snapshot as it would be at that time if nothing changed but what ends by itself.
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
