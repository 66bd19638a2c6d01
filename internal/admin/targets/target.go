package targets

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
)

// The kinds of targets, as their names in the audit trail start: see [adminapi.Sections].
const (
	settings   = "settings"
	tiers      = "tiers"
	policies   = "policies"
	overrides  = "overrides"
	candidates = "candidates"
)

// Target is something that operators set.
type Target struct {
	kind string
	id   string // of the client, or name of the tier; empty for settings
	user string // of an override, as in the keys of the counters
}

// Settings returns the settings for all clients.
func Settings() Target { return Target{kind: settings} }

// Tier returns the tier of that name.
func Tier(name string) Target { return Target{kind: tiers, id: name} }

// Policy returns the policy of a client.
func Policy(clientID string) Target { return Target{kind: policies, id: clientID} }

// Override returns the limits of one user of a client, with the username in any spelling. Errors:
// [fielderr.Errors].
func Override(clientID, typed string) (Target, error) {
	name := username.Stored(typed)
	if err := username.Check(name); err != nil {
		return Target{}, err
	}
	return Target{overrides, clientID, name}, nil
}

// Candidate returns the candidate for a client, or for the default limits:
// [clientcfg.GlobalCandidate].
func Candidate(name string) Target { return Target{kind: candidates, id: name} }

// Parse returns the target with a name of the audit trail. It returns false if there is no such
// kind, or no valid name after it. It does not check whether the client is registered.
func Parse(name string) (Target, bool) {
	if name == clientcfg.SettingsTarget {
		return Settings(), true
	}
	kind, id, _ := strings.Cut(name, "/")
	switch kind {
	case tiers:
		return Tier(id), clientcfg.ValidateTierName(id) == nil
	case policies, candidates:
		return Target{kind: kind, id: id}, id != "" && len(id) <= clientcfg.MaxIDLength
	case overrides:
		id, user, is := clientcfg.OverrideOf(name)
		return Target{kind, id, user}, is && len(id) <= clientcfg.MaxIDLength
	}
	return Target{}, false
}

// ParseTyped is like [Parse], with the username of an override in any spelling. Errors:
// [fielderr.Errors].
func ParseTyped(name string) (t Target, known bool, err error) {
	if t, known = Parse(name); known && t.kind == overrides {
		t, err = Override(t.id, t.user)
	}
	return t, known, err
}

// Name returns the name in the audit trail; "" for everything that operators have set.
func (t Target) Name() string {
	switch t.kind {
	case "":
		return ""
	case settings:
		return clientcfg.SettingsTarget
	case overrides:
		return clientcfg.OverrideTarget(t.id, t.user)
	}
	return t.kind + "/" + t.id
}

// Client returns the client that the target is for, or "" if it is for all.
func (t Target) Client() string {
	if t.kind == tiers || t.kind == candidates && t.id == clientcfg.GlobalCandidate {
		return ""
	}
	return t.id
}

// State is a target in a snapshot.
type State struct {
	Doc     any   // the editable document as shown
	Base    any   // the document that a merge patch applies to
	Exists  bool  // operators have set it; always true for the settings
	Changed int64 // version of its last change
}

// State returns the state of the target in a snapshot.
func (t Target) State(p *clientcfg.PolicySnapshot) State {
	own, ok := t.value(p)
	st := State{Exists: ok, Changed: own.Changed}
	switch t.kind {
	case settings:
		st.Doc, st.Base = showSettings(p), adminapi.SetByOperators(&own)
		return st
	case tiers:
		st.Doc = showTier(t.id, &own)
	case policies:
		st.Doc = showPolicy(t.id, &own)
	case overrides:
		st.Doc = showOverride(t.id, t.user, &own)
	case candidates:
		st.Doc = showCandidate(t.id, &own)
	}
	st.Base = st.Doc
	return st
}

// value returns what operators have set. For a policy that they have not set, it is the one of the
// configuration file.
func (t Target) value(p *clientcfg.PolicySnapshot) (own clientcfg.Value, ok bool) {
	if t.kind == policies {
		return p.Policy(t.id)
	}
	return p.Value(t.Name())
}

// IsSet reports whether operators have set the target.
func (t Target) IsSet(p *clientcfg.PolicySnapshot) bool {
	own, ok := t.value(p)
	return ok && (t.kind != settings || len(own.Names()) > 0 || own.Note != "")
}

// Absent says that the target does not exist. It is empty for settings and policies, which always
// have values to read.
func (t Target) Absent() string {
	switch t.kind {
	case tiers:
		return fmt.Sprintf("tier %q does not exist; to create it, PUT it with If-None-Match: *", t.id)
	case overrides:
		return fmt.Sprintf("user %q has no own limits at client %q", t.user, t.id)
	case candidates:
		return "the candidate does not exist; to create it, PUT it with If-None-Match: *"
	}
	return ""
}

// With returns the change that sets the target to v, or removes it if v is nil. A candidate keeps
// the time since when it is tried if the tried limits stay the same. Errors: [fielderr.Errors].
func (t Target) With(p *clientcfg.PolicySnapshot, v *strict.Value, now time.Time) (clientcfg.Change, error) {
	if v == nil {
		return clientcfg.SetTarget(t.Name(), nil)
	}
	own, err := t.read(v)
	if err != nil {
		return clientcfg.Change{}, err
	}
	if t.kind == candidates {
		own.Since = now
		if before, ok := t.value(p); ok && reflect.DeepEqual(before.Tried(), own.Tried()) {
			own.Since = before.Since
		}
	}
	return clientcfg.SetTarget(t.Name(), &own)
}

func (t Target) read(v *strict.Value) (clientcfg.Value, error) {
	switch t.kind {
	case settings:
		return adminapi.ReadSettings(v)
	case tiers:
		return adminapi.ReadTier(t.id, v)
	case policies:
		return adminapi.ReadPolicy(t.id, v)
	case overrides:
		return adminapi.ReadOverride(t.id, t.user, v)
	}
	return adminapi.ReadCandidate(t.id, v)
}

// Live returns the target that a candidate is tried for.
func (t Target) Live() Target {
	if t.id == clientcfg.GlobalCandidate {
		return Settings()
	}
	return Policy(t.id)
}

// Promoted returns the changes that make a candidate live and remove it as a candidate.
func (t Target) Promoted(p *clientcfg.PolicySnapshot) ([]clientcfg.Change, error) {
	tried, _ := t.value(p)
	gone, err := clientcfg.SetTarget(t.Name(), nil)
	if err != nil {
		return nil, err
	}
	own, _ := t.Live().value(p)
	own.Policy = tried.Promoted(own.Policy)
	live, err := clientcfg.SetTarget(t.Live().Name(), &own)
	return []clientcfg.Change{live, gone}, err
}
