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
	for _, then := range endsOf(before, after) {
		if err != nil {
			break
		}
		before, after = before.at(then), after.at(then)
		if err = lockedOut(operators, before, after); err != nil {
			err = fmt.Errorf("when what is temporary until %s has ended: %w", then.Format(time.RFC3339), err)
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
