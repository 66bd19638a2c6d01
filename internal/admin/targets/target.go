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
func (t Target) State(p *clientcfg.PolicySnapshot) (st State) {
	set := p.Set()
	switch t.kind {
	case settings:
		return State{showSettings(p), adminapi.SetByOperators(set.Settings), true, set.Settings.Changed}
	case tiers:
		own, ok := set.Tiers.Get(t.id)
		st = State{Doc: showTier(t.id, own), Exists: ok, Changed: own.Changed}
	case policies:
		own, ok := p.Policy(t.id)
		st = State{Doc: showPolicy(t.id, own), Exists: ok, Changed: own.Changed}
	case overrides:
		own, ok := set.Overrides.Get(clientcfg.OverrideKey(t.id, t.user))
		st = State{Doc: showOverride(t.id, t.user, own), Exists: ok, Changed: own.Changed}
	case candidates:
		own, ok := set.Candidates.Get(t.id)
		st = State{Doc: showCandidate(t.id, own), Exists: ok, Changed: own.Changed}
	}
	st.Base = st.Doc
	return st
}

// IsSet reports whether operators have set the target.
func (t Target) IsSet(p *clientcfg.PolicySnapshot) bool {
	if t.kind == settings {
		o := p.Set().Settings
		return len(o.Names()) > 0 || o.Note != ""
	}
	return t.State(p).Exists
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
	switch t.kind {
	case settings:
		if v == nil {
			return clientcfg.ChangeSettings(clientcfg.SettingsOverride{})
		}
		return with(v, adminapi.ReadSettings, func(o *clientcfg.SettingsOverride) (clientcfg.Change, error) { return clientcfg.ChangeSettings(*o) })
	case tiers:
		read := func(v *strict.Value) (clientcfg.Tier, error) { return adminapi.ReadTier(t.id, v) }
		return with(v, read, func(own *clientcfg.Tier) (clientcfg.Change, error) { return clientcfg.ChangeTier(t.id, own) })
	case policies:
		read := func(v *strict.Value) (clientcfg.ClientPolicy, error) { return adminapi.ReadPolicy(t.id, v) }
		return with(v, read, func(own *clientcfg.ClientPolicy) (clientcfg.Change, error) { return clientcfg.ChangePolicy(t.id, own) })
	case overrides:
		read := func(v *strict.Value) (clientcfg.Override, error) { return adminapi.ReadOverride(t.id, t.user, v) }
		return with(v, read, func(own *clientcfg.Override) (clientcfg.Change, error) {
			return clientcfg.ChangeOverride(t.id, t.user, own)
		})
	}
	read := func(v *strict.Value) (clientcfg.Candidate, error) { return adminapi.ReadCandidate(t.id, v) }
	return with(v, read, func(own *clientcfg.Candidate) (clientcfg.Change, error) {
		if own != nil {
			own.Since = now
			if before, ok := p.Set().Candidates.Get(t.id); ok && reflect.DeepEqual(before.Tried(), own.Tried()) {
				own.Since = before.Since
			}
		}
		return clientcfg.ChangeCandidate(t.id, own)
	})
}

// with returns the change to the value that was read, or to nil if there is none.
func with[V any](v *strict.Value, read func(*strict.Value) (V, error), to func(*V) (clientcfg.Change, error)) (clientcfg.Change, error) {
	if v == nil {
		return to(nil)
	}
	own, err := read(v)
	if err != nil {
		return clientcfg.Change{}, err
	}
	return to(&own)
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
	tried, _ := p.Set().Candidates.Get(t.id)
	gone, err := clientcfg.ChangeCandidate(t.id, nil)
	if err != nil {
		return nil, err
	}
	var live clientcfg.Change
	if t.id == clientcfg.GlobalCandidate {
		o := p.Set().Settings
		o.Policy = tried.Promoted(o.Policy)
		live, err = clientcfg.ChangeSettings(o)
	} else {
		own, _ := p.Policy(t.id)
		own.Policy = tried.Promoted(own.Policy)
		live, err = clientcfg.ChangePolicy(t.id, &own)
	}
	return []clientcfg.Change{live, gone}, err
}
