package admin

import (
	"time"

	"oauth-server/internal/clientcfg"
)

// promote makes a candidate live: its limits become those of the client, or the default
// limits. A trusted client becomes limited, since that is what was tried.
func (s *Server) promote(c *call, r resource) error {
	name := r.(candidateResource).name //nolint:forcetypeassert // the route is that of candidates
	var live resource = policyResource{name}
	if name == clientcfg.GlobalCandidate {
		live = settingsResource{}
	}
	return s.perform(c, &change{
		resource: r, changes: live, action: actionPromote,
		derive: func(p *clientcfg.PolicySnapshot, _ time.Time) (clientcfg.PolicySet, error) {
			return promoted(p, name), nil
		},
	})
}

// promoted returns the set in which the candidate is live, and a candidate no more.
func promoted(p *clientcfg.PolicySnapshot, name string) clientcfg.PolicySet {
	set := p.Set()
	cand := set.Candidates[name]
	if name == clientcfg.GlobalCandidate {
		if cand.User != nil {
			set.Settings.User = cand.User
		}
		if cand.Client != nil {
			set.Settings.Client = cand.Client
		}
		set.Settings.Changed = p.Version() + 1
		return set.WithCandidate(name, nil)
	}
	own, _ := p.Policy(name)
	if cand.User != nil {
		own.User = cand.User
	}
	if cand.Client != nil {
		own.Client = cand.Client
	}
	own.Trusted, own.Changed = false, p.Version()+1
	return set.WithPolicy(name, &own).WithCandidate(name, nil)
}
