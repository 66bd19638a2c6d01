package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// begin reads the whole state for an instance that has none yet, and adopts what of it can be used:
// limits of one change ago are better than no server. refused is why that is not all, nil if it is. The
// instance is then as one that runs and has refused a change: it keeps what it has until all can be
// used, and makes no changes.
func (s *PolicySource) begin(ctx context.Context) (refused, err error) {
	state, err := s.store.PolicyState(ctx)
	if err != nil {
		return nil, fmt.Errorf("clientcfg: read the policies: %w", err)
	}
	next, err := snapshotOf(s.base, &state)
	if err != nil {
		refused = fmt.Errorf("clientcfg: refused a part of version %d of the policies: %w", state.Version, err)
		if next, err = s.usable(ctx, &state); err != nil {
			return nil, err
		}
		s.refuse(PolicyVersion{state.Version, state.ID}, refused)
	}
	if state.Stopped != nil {
		refused = errors.Join(refused, notBeyond(&state))
	}
	s.current.Store(next)
	return refused, nil
}

// notBeyond is the error of a state that is not the newest.
func notBeyond(state *PolicyState) error {
	return fmt.Errorf("clientcfg: read the policies after version %d: %w", state.Version, state.Stopped)
}

// usable returns a snapshot of what can be used of a state. A target whose value cannot be has the value
// of before, if the trail still has that one and it can be used, and else is as in the configuration file.
// It is of no entry, so that it is replaced as soon as the whole state can be used.
func (s *PolicySource) usable(ctx context.Context, state *PolicyState) (*PolicySnapshot, error) {
	judge, err := newJudge(s.base)
	if err != nil {
		return nil, err
	}
	for target, v := range state.Targets {
		if judge.usable(target, v) {
			continue
		}
		if v, err = s.before(ctx, target, v); err != nil {
			return nil, err
		}
		if state.Targets[target] = v; isNull(v.Value) || !judge.usable(target, v) {
			delete(state.Targets, target)
		}
	}
	p, err := snapshotOf(s.base, state)
	if err != nil {
		return nil, fmt.Errorf("clientcfg: refused version %d of the policies: %w", state.Version, err)
	}
	p.id = noEntry
	return p, nil
}

// noEntry is the ID of no entry.
const noEntry = "(none)"

// before returns what a value replaced, as the entry says that brought it; null if there is none, or no
// such entry any more.
func (s *PolicySource) before(ctx context.Context, target string, v TargetValue) (TargetValue, error) {
	entries, err := s.store.PolicyEntries(ctx, v.Version)
	if err != nil && !errors.Is(err, ErrUnreadable) {
		return v, fmt.Errorf("clientcfg: read the trail of the policies: %w", err)
	}
	v.Value = jsonNull
	if len(entries) > 0 && entries[0].Version == v.Version {
		changes := entries[0].Changes
		if i := slices.IndexFunc(changes, func(c Change) bool { return c.Target == target }); i >= 0 {
			v.Value = changes[i].Before
		}
	}
	return v, nil
}

// judge finds out which values can be used, each by itself.
type judge struct{ empty *PolicySnapshot }

func newJudge(base ratelimit.Settings) (judge, error) {
	p, err := snapshotOf(base, &PolicyState{})
	return judge{p}, err
}

func (j judge) usable(target string, v TargetValue) bool {
	d := j.empty.edit()
	err := d.put(target, v.Value, v.Version, time.Time{})
	if err == nil {
		_, err = d.finish()
	}
	return err == nil
}
