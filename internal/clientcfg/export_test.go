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
	d.set(SettingsTarget, "", &set.Settings)
	for kind, values := range set.kinds() {
		for name, v := range values.All() {
			d.set(kind, name, &v)
		}
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
func (s PolicySet) WithPolicy(clientID string, p *Value) PolicySet {
	s.Clients = with(s.Clients, clientID, p)
	return s
}

// WithTier returns a copy with that tier.
func (s PolicySet) WithTier(name string, t *Value) PolicySet {
	s.Tiers = with(s.Tiers, name, t)
	return s
}

// WithOverride returns a copy with that override.
func (s PolicySet) WithOverride(clientID, username string, o *Value) PolicySet {
	s.Overrides = with(s.Overrides, OverrideKey(clientID, username), o)
	return s
}

// WithCandidate returns a copy with that candidate.
func (s PolicySet) WithCandidate(name string, c *Value) PolicySet {
	s.Candidates = with(s.Candidates, name, c)
	return s
}

func with(m ratelimit.Map[Value], key string, v *Value) ratelimit.Map[Value] {
	e := m.Edit()
	if e.Delete(key); v != nil {
		e.Set(key, *v)
	}
	return e.Map()
}
