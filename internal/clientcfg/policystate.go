package clientcfg

import (
	"encoding/json"
	"fmt"
)

// PolicyState is a fold of the trail: what all entries up to a version come to, not yet decoded.
type PolicyState struct {
	Version int64  // of the last entry; 0: there never was one
	ID      string // of the last entry; empty if it was swept
	Targets map[string]TargetValue
	// Stopped is why there is nothing of the entries after Version, an ErrUnreadable: the next one cannot
	// be read. Nil: there is none.
	Stopped error
}

// TargetValue is the value of a target and the version of the entry that gave it.
type TargetValue struct {
	Version int64
	Value   json.RawMessage
}

// Fold adds the next entry. ErrPolicyGap if it is not the next. ErrUnreadable if it cannot be read, or
// changes nothing: a release wrote it that knows no fold.
func (s *PolicyState) Fold(e *PolicyEntry) error {
	if e.Err != nil {
		return e.Err
	}
	if e.Version != s.Version+1 {
		return fmt.Errorf("%w: entry %d does not follow version %d", ErrPolicyGap, e.Version, s.Version)
	}
	if len(e.Changes) == 0 {
		return fmt.Errorf("%w: entry %d does not say what it changes", ErrUnreadable, e.Version)
	}
	s.Version, s.ID = e.Version, e.ID
	for i := range e.Changes {
		switch c := &e.Changes[i]; {
		case !c.IsState():
		case c.IsNull():
			delete(s.Targets, c.Target)
		default:
			if s.Targets == nil {
				s.Targets = map[string]TargetValue{}
			}
			s.Targets[c.Target] = TargetValue{e.Version, c.After}
		}
	}
	return nil
}
