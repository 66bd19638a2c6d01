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
		d.putTier(name, &t)
	}
	for key, o := range set.Overrides.All() {
		id, username, _ := OverrideOf(overrideTargets + key)
		d.putOverride(id, username, &o)
	}
	for id, p := range set.Clients.All() {
		d.putPolicy(id, &p)
	}
	for name, c := range set.Candidates.All() {
		d.putCandidate(name, &c)
	}
	for of, e := range set.Ends.All() {
		c, err := newChange(EndTarget(of), &e)
		if err == nil {
			err = d.putEnd(of, c.After)
		}
		if err != nil {
			return nil, err
		}
	}
	d.set.Version = set.Version
	return d.finish()
}

// Shares reports whether both directories share the same copy of the client with that ID.
func (d *Directory) Shares(other *Directory, id string) bool {
	own, _ := d.clients.Get(id)
	theirs, _ := other.clients.Get(id)
	return own == theirs
}

// Stored returns the event as appended to the trail.
func (e *Event) Stored() (store.Entry, []store.Write, error) {
	entry, err := e.entry()
	return entry, writesOf(e.Changes), err
}
