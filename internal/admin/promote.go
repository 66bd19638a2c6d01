package admin

import (
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// promote makes a candidate live: its limits become those of the client, or the default
// limits. A trusted client becomes limited, since that is what was tried.
func (s *Server) promote(c *call, r resource) error {
	candidate := r.(candidateResource) //nolint:forcetypeassert // the route is that of candidates
	return s.perform(c, &change{
		resource: r, changes: candidate.live(), action: actionPromote,
		derive: func(p *clientcfg.PolicySnapshot, _ time.Time) ([]clientcfg.Change, error) {
			return promoted(p, candidate.name)
		},
	})
}

// live is what the candidate becomes.
func (r candidateResource) live() resource {
	if r.name == clientcfg.GlobalCandidate {
		return settingsResource{}
	}
	return policyResource{r.name}
}

// promoted returns the changes that make the candidate live, and a candidate no more.
func promoted(p *clientcfg.PolicySnapshot, name string) ([]clientcfg.Change, error) {
	set := p.Set()
	cand, _ := set.Candidates.Get(name)
	promote := func(user, client, total, source *[]ratelimit.Limit) {
		if cand.User != nil {
			*user = cand.User
		}
		if cand.Client != nil {
			*client = cand.Client
		}
		if cand.Total != nil {
			*total = cand.Total
		}
		if cand.Source != nil {
			*source = cand.Source
		}
	}
	var live clientcfg.Change
	var err error
	if name == clientcfg.GlobalCandidate {
		promote(&set.Settings.User, &set.Settings.Client, &set.Settings.Total, &set.Settings.Source)
		live, err = clientcfg.ChangeSettings(set.Settings)
	} else {
		own, _ := p.Policy(name)
		promote(&own.User, &own.Client, &own.Total, &own.Source)
		own.Trusted = false
		live, err = clientcfg.ChangePolicy(name, &own)
	}
	gone, goneErr := clientcfg.ChangeCandidate(name, nil)
	return []clientcfg.Change{live, gone}, errors.Join(err, goneErr)
}
