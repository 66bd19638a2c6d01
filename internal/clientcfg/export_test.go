package clientcfg

import "oauth-server/internal/ratelimit"

// NewPolicySnapshot validates the set on top of base. The error is or wraps [fielderr.Errors].
func NewPolicySnapshot(base ratelimit.Settings, set PolicySet) (*PolicySnapshot, error) {
	d, err := newDraft(base)
	if err != nil {
		return nil, err
	}
	d.putSettings(set.Settings)
	for id, p := range set.Clients.All() {
		d.putPolicy(id, &p)
	}
	for name, c := range set.Candidates.All() {
		d.putCandidate(name, &c)
	}
	d.set.Version = set.Version
	return d.finish()
}

// Shares reports whether a directory has the client of that ID from the other one, and no copy of it.
func (d *Directory) Shares(other *Directory, id string) bool {
	own, _ := d.clients.Get(id)
	theirs, _ := other.clients.Get(id)
	return own == theirs
}
