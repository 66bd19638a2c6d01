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

// WithPolicy returns a copy in which the client has the policy p. A nil p means the policy of the
// configuration file.
func (s PolicySet) WithPolicy(clientID string, p *ClientPolicy) PolicySet {
	s.Clients = with(s.Clients, clientID, p)
	return s
}

// WithTier returns a copy with that tier, or without it if t is nil.
func (s PolicySet) WithTier(name string, t *Tier) PolicySet {
	s.Tiers = with(s.Tiers, name, t)
	return s
}

// WithOverride returns a copy with that override, or without it if o is nil.
func (s PolicySet) WithOverride(clientID, username string, o *Override) PolicySet {
	s.Overrides = with(s.Overrides, OverrideKey(clientID, username), o)
	return s
}

func with[V any](m ratelimit.Map[V], key string, v *V) ratelimit.Map[V] {
	e := m.Edit()
	give(e, key, v)
	return e.Map()
}
