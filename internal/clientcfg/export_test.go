package clientcfg

import (
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// NewPolicySnapshot validates the set on top of base. The error is or wraps [fielderr.Errors].
func NewPolicySnapshot(base ratelimit.Settings, set PolicySet) (*PolicySnapshot, error) {
	d, err := newDraft(base)
	if err != nil {
		return nil, err
	}
	d.putSettings(set.Settings)
	for name, t := range set.Tiers.All() {
		d.putTier(name, &t, t.Changed)
	}
	for key, o := range set.Overrides.All() {
		id, username, _ := OverrideOf(overrideTargets + key)
		d.putOverride(id, username, &o, o.Changed)
	}
	for id, p := range set.Clients.All() {
		d.putPolicy(id, &p, p.Changed)
	}
	for name, c := range set.Candidates.All() {
		d.putCandidate(name, &c, c.Changed)
	}
	for target, t := range set.Temporary.All() {
		d.temporary.Set(target, t)
	}
	d.version = set.Version
	return d.finish()
}

// Stored returns the event as appended to the trail.
func (e *Event) Stored() (store.Entry, []store.Write, error) {
	entry, err := e.entry()
	return entry, writesOf(e.Changes), err
}
