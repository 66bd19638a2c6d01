package clientcfg

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// LockedOut returns an error if the snapshot after locks out an operator's client that before does
// not, now or from the end of a temporary change on. It reports the earliest time, and the first
// client by ID. The error is or wraps a *[LockOutError].
func (d *Directory) LockedOut(before, after *PolicySnapshot) error {
	operators := slices.SortedFunc(d.Operators(), func(a, b *Client) int { return cmp.Compare(a.ID, b.ID) })
	concerns := func(target string) bool { // the policy of an operator's client, overrides of its users, the settings, and tiers
		id, all := (&Change{Target: target}).Concerns()
		_, tier := TierOf(target)
		return all || tier || slices.ContainsFunc(operators, func(c *Client) bool { return c.ID == id })
	}
	err := lockedOut(operators, before, after)
	for _, then := range endsOf(concerns, before, after) {
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

func lockedOut(operators []*Client, before, after *PolicySnapshot) error {
	for _, c := range operators {
		for _, mode := range modesJudged {
			err := after.locksOut(c, mode)
			if err != nil && before.locksOut(c, mode) == nil {
				return err
			}
		}
	}
	return nil
}
