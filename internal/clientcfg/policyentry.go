package clientcfg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"oauth-server/internal/strict"
)

// Change gives a target a value. It is JSON as PolicySet has it, null for none.
type Change struct {
	Target string          `json:"target"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// The targets of changes. They are also the targets in the audit trail.
const (
	SettingsTarget   = "settings"
	policyTargets    = "policies/"
	candidateTargets = "candidates/"
)

// PolicyTarget is the policy of a client as a target.
func PolicyTarget(clientID string) string { return policyTargets + clientID }

// CandidateTarget is a candidate as a target.
func CandidateTarget(name string) string { return candidateTargets + name }

// CountersTarget is the counters of a client as a target: its value is a reset, which is an order and
// no state.
func CountersTarget(clientID string) string { return "clients/" + clientID + "/counters" }

// countersOf is the inverse of CountersTarget.
func countersOf(target string) (clientID string, ok bool) {
	rest, ok := strings.CutPrefix(target, "clients/")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "/counters")
}

// IsState reports whether the value of the target is state, which is stored, and no order.
func (c *Change) IsState() bool {
	_, order := countersOf(c.Target)
	return !order
}

// Concerns returns the client whose limits in force the change may change; all: those of every client. Of a
// tier these are the clients that have it: see [PolicySnapshot.Concerned].
func (c *Change) Concerns() (clientID string, all bool) {
	if id, _, is := OverrideOf(c.Target); is {
		return id, false
	}
	clientID, _ = strings.CutPrefix(c.Target, policyTargets)
	if clientID == c.Target {
		clientID = ""
	}
	return clientID, c.Target == SettingsTarget
}

// ChangeSettings gives all clients these settings.
func ChangeSettings(o SettingsOverride) (Change, error) {
	o.Changed = 0
	return newChange(SettingsTarget, &o)
}

// ChangePolicy gives a client a policy; nil: that of the configuration file.
func ChangePolicy(clientID string, p *ClientPolicy) (Change, error) {
	if p == nil {
		return newChange(PolicyTarget(clientID), p)
	}
	stored := *p
	stored.Changed = 0
	return newChange(PolicyTarget(clientID), &stored)
}

// ChangeCandidate makes a candidate; nil: removes it.
func ChangeCandidate(name string, c *Candidate) (Change, error) {
	if c == nil {
		return newChange(CandidateTarget(name), c)
	}
	stored := *c
	stored.Changed = 0
	return newChange(CandidateTarget(name), &stored)
}

// resetValue is the value of a target of counters.
type resetValue struct {
	Username *string `json:"username"` // nil: all keys of the client
}

// ResetCounters forgets the counts of a client, or those of one of its users if username is not nil.
func ResetCounters(clientID string, username *string) (Change, error) {
	return newChange(CountersTarget(clientID), &resetValue{username})
}

func newChange[V any](target string, v *V) (Change, error) {
	after, err := json.Marshal(v)
	if err != nil {
		return Change{}, fmt.Errorf("clientcfg: encode %s: %w", target, err)
	}
	return Change{Target: target, Before: jsonNull, After: after}, nil
}

var jsonNull = json.RawMessage("null")

// IsNull reports whether the change removes its target.
func (c *Change) IsNull() bool { return isNull(c.After) }

func isNull(value json.RawMessage) bool { return len(value) == 0 || bytes.Equal(value, jsonNull) }

// decodeValue reads the value of a target as strictly as any other document: an unknown field, which a
// newer release may have written, a name given twice, null in a list or text that is not Unicode is an
// error that wraps [ErrUnreadable].
func decodeValue[V any](target string, stored json.RawMessage) (v V, err error) {
	// What this release has written comes back the same: then there is nothing to be strict about.
	// That is ten times as fast, which counts when 100,000 are read.
	if json.Unmarshal(stored, &v) == nil {
		if again, err := json.Marshal(&v); err == nil && bytes.Equal(again, stored) {
			return v, nil
		}
	}
	var read V
	parsed, err := strict.ParseJSON(stored)
	if err == nil {
		err = parsed.Decode(&read, nil).Err()
	}
	if err != nil {
		return read, fmt.Errorf("%w: %s: %w", ErrUnreadable, target, err)
	}
	return read, nil
}
