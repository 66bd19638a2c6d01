package clientcfg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"oauth-server/internal/cowmap"
)

// begin reads the whole state for an instance that has none yet, and adopts what of it can be used: a
// server that starts with some older limits is better than none. refused is why that is not all, nil if
// it is. The instance is then as one that runs and has refused a change: it keeps what it has until all
// can be used, and makes no changes.
func (s *PolicySource) begin(ctx context.Context) (refused, err error) {
	state, err := s.store.PolicyState(ctx)
	if err != nil {
		return nil, fmt.Errorf("clientcfg: read the policies: %w", err)
	}
	d, err := newDraft(s.base)
	if err != nil {
		return nil, err
	}
	unused := d.fill(&state)
	if err := s.fillBefore(ctx, d, &state, unused); err != nil {
		return nil, err
	}
	d.trim(unused)
	next, err := d.finish()
	if err != nil {
		return nil, fmt.Errorf("clientcfg: refused version %d of the policies: %w", state.Version, err)
	}
	if len(unused) > 0 { // it is of no entry, so that it is replaced as soon as the whole state can be used
		next.id, next.leftOut = noEntry, len(unused)
		refused = fmt.Errorf("clientcfg: refused a part of version %d of the policies: %w", state.Version, joined(unused))
		s.judge(PolicyVersion{state.Version, state.ID}, refused, false)
	}
	if state.Stopped != nil {
		refused = errors.Join(refused, notBeyond(&state))
	}
	s.current.Store(next)
	return refused, nil
}

// noEntry is the ID of no entry.
const noEntry = "(none)"

// notBeyond is the error of a state that is not the newest.
func notBeyond(state *PolicyState) error {
	return fmt.Errorf("clientcfg: read the policies after version %d: %w", state.Version, state.Stopped)
}

// fillBefore gives the targets that were left out the values of before, if the trail still has them and
// they can be used. The others are as in the configuration file. It reads no entry twice.
func (s *PolicySource) fillBefore(ctx context.Context, d *draft, state *PolicyState, unused map[string]error) error {
	wanted := search{}
	for target := range unused {
		wanted.add(target, state)
	}
	for at, more := wanted.next(0); more; at, more = wanted.next(at) {
		entries, err := s.store.PolicyEntries(ctx, at)
		if err != nil {
			return fmt.Errorf("clientcfg: read the trail of the policies: %w", err)
		}
		if len(entries) == 0 {
			return nil
		}
		for i := range entries {
			for target, before := range wanted.found(&entries[i]) {
				if !isNull(before.Value) {
					_ = d.try(target, before) // if it cannot be used either, it is left out
				}
			}
			at = entries[i].Version + 1
		}
	}
	return nil
}

// search is for the values of targets before certain versions: for each, between which versions the entry
// is that has it.
type search map[string]struct{ first, last int64 }

// add wants the value before the one that a state has. If that was changed after the version of the state,
// perhaps several times, it is the value before the first of these changes.
func (s search) add(target string, state *PolicyState) {
	version := state.Targets[target].Version
	s[target] = struct{ first, last int64 }{min(version, state.Version+1), version}
}

// next returns the first version from that one on whose entry is wanted, and whether there is one.
func (s search) next(from int64) (version int64, more bool) {
	version = math.MaxInt64
	for target, v := range s {
		if v.last < from {
			delete(s, target)
			continue
		}
		version, more = min(version, max(v.first, from)), true
	}
	return version, more
}

// found returns the values that an entry replaced of those that are wanted, which are not any more.
func (s search) found(e *PolicyEntry) map[string]TargetValue {
	values := map[string]TargetValue{}
	for i := range e.Changes {
		c := &e.Changes[i]
		if v, is := s[c.Target]; is && v.first <= e.Version && e.Version <= v.last {
			values[c.Target] = TargetValue{v.first - 1, c.Before}
			delete(s, c.Target)
		}
	}
	return values
}

// trim leaves out what does not fit beside the rest: of too many policies, candidates, tiers or overrides,
// as a release with other bounds may have stored, those that were changed last.
func (d *draft) trim(unused map[string]error) {
	set := d.set
	if d.clients != nil {
		set.Clients = d.clients.Map()
	}
	if d.candidates != nil {
		set.Candidates = d.candidates.Map()
	}
	why := set.checkCounts().Err()
	for _, id := range newest(set.Clients, MaxPolicies, func(p ClientPolicy) int64 { return p.Changed }) {
		d.putPolicy(id, nil)
		unused[PolicyTarget(id)] = fmt.Errorf("%s: %w", PolicyTarget(id), why)
	}
	for _, name := range newest(set.Candidates, MaxCandidates, func(c Candidate) int64 { return c.Changed }) {
		d.putCandidate(name, nil)
		unused[CandidateTarget(name)] = fmt.Errorf("%s: %w", CandidateTarget(name), why)
	}
	d.trimTiers(unused)
}

// newest returns those of a map that are too many: the last ones in the order of their changes.
func newest[V any](m cowmap.Map[V], most int, changed func(V) int64) []string {
	if m.Len() <= most {
		return nil
	}
	names := slices.SortedFunc(m.Keys(), func(a, b string) int {
		x, _ := m.Get(a)
		y, _ := m.Get(b)
		return cmp.Or(cmp.Compare(changed(x), changed(y)), cmp.Compare(a, b))
	})
	return names[most:]
}

// joined is one error of those of targets: the first of them, and how many there are.
func joined(unused map[string]error) error {
	const most = 5
	var shown []error
	for _, target := range slices.Sorted(maps.Keys(unused)) {
		if len(shown) == most {
			shown = append(shown, fmt.Errorf("and %d more targets", len(unused)-most))
			break
		}
		shown = append(shown, unused[target])
	}
	return errors.Join(shown...)
}
