package admin

import (
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
)

// promote makes a candidate live: its limits become the client's limits, or the default limits. A
// trusted client is no longer trusted afterwards, because the candidate was tried as limits.
func (s *Server) promote(c *call, r resource) error {
	candidate := r.(candidateResource) //nolint:forcetypeassert // the route is that of candidates
	return s.perform(c, &change{
		resource: r, changes: candidate.live(), action: actionPromote,
		derive: func(p *clientcfg.PolicySnapshot, _ time.Time) ([]clientcfg.Change, error) {
			return promoted(p, candidate.name)
		},
	})
}

// live returns the resource that the candidate becomes.
func (r candidateResource) live() resource {
	if r.name == clientcfg.GlobalCandidate {
		return settingsResource{}
	}
	return policyResource{r.name}
}

// promoted returns the changes that make the candidate live and remove it as a candidate.
func promoted(p *clientcfg.PolicySnapshot, name string) ([]clientcfg.Change, error) {
	cand, _ := p.Set().Candidates.Get(name)
	var live clientcfg.Change
	var err error
	if name == clientcfg.GlobalCandidate {
		o := p.Set().Settings
		o.Policy = cand.Promoted(o.Policy)
		live, err = clientcfg.ChangeSettings(o)
	} else {
		own, _ := p.Policy(name)
		own.Policy = cand.Promoted(own.Policy)
		live, err = clientcfg.ChangePolicy(name, &own)
	}
	gone, goneErr := clientcfg.ChangeCandidate(name, nil)
	return []clientcfg.Change{live, gone}, errors.Join(err, goneErr)
}
