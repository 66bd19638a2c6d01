package clientcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"oauth-server/internal/strict"
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

// SplitPolicySet divides the one document that earlier releases kept all policies in into a state. The
// values stay as they are. ErrUnreadable if it is no such document.
func SplitPolicySet(stored []byte) (PolicyState, error) {
	var doc struct {
		Version    int64                      `json:"version"`
		Settings   json.RawMessage            `json:"settings"`
		Clients    map[string]json.RawMessage `json:"clients"`
		Candidates map[string]json.RawMessage `json:"candidates"`
		Resets     json.RawMessage            `json:"resets"` // carried out by those that had counts
	}
	_, err := strict.ParseJSON(stored) // no name twice, only Unicode
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(stored))
		d.DisallowUnknownFields()
		err = d.Decode(&doc)
	}
	if err != nil {
		return PolicyState{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	state := PolicyState{Version: doc.Version, Targets: map[string]TargetValue{}}
	if len(doc.Settings) > 0 {
		err = state.split(SettingsTarget, doc.Settings)
	}
	for id, value := range doc.Clients {
		err = errors.Join(err, state.split(PolicyTarget(id), value))
	}
	for name, value := range doc.Candidates {
		err = errors.Join(err, state.split(CandidateTarget(name), value))
	}
	if err != nil {
		return PolicyState{}, err
	}
	return state, nil
}

// split adds a part of the one document. What is null there is empty.
func (s *PolicyState) split(target string, value json.RawMessage) error {
	if isNull(value) {
		value = json.RawMessage("{}")
	}
	var last struct {
		Changed int64 `json:"changed"`
	}
	if err := json.Unmarshal(value, &last); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, target, err)
	}
	s.Targets[target] = TargetValue{last.Changed, value}
	return nil
}
