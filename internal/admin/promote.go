package admin

import (
	"cmp"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
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
	set := p.Set()
	cand, _ := set.Candidates.Get(name)
	promote := func(user, client, total, source *[]ratelimit.Limit, longest **ratelimit.MaxWait, atOnce **int, ban **ratelimit.Ban) {
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
		if cand.MaxWait != nil {
			*longest, *atOnce = cand.MaxWait, cand.MaxWaiting
		}
		if cand.Ban != nil {
			*ban = cand.Ban
		}
	}
	var live clientcfg.Change
	var err error
	if name == clientcfg.GlobalCandidate {
		o := &set.Settings
		promote(&o.User, &o.Client, &o.Total, &o.Source, &o.MaxWait, &o.MaxWaiting, &o.Ban)
		if cand.OverLimit != "" {
			o.OverLimit = &cand.OverLimit
		}
		if cand.Criticality != ratelimit.CriticalityUnset {
			o.Criticality = &cand.Criticality
		}
		live, err = clientcfg.ChangeSettings(*o)
	} else {
		own, _ := p.Policy(name)
		promote(&own.User, &own.Client, &own.Total, &own.Source, &own.MaxWait, &own.MaxWaiting, &own.Ban)
		own.OverLimit, own.Trusted = cmp.Or(cand.OverLimit, own.OverLimit), false
		own.Criticality = cmp.Or(cand.Criticality, own.Criticality)
		live, err = clientcfg.ChangePolicy(name, &own)
	}
	gone, goneErr := clientcfg.ChangeCandidate(name, nil)
	return []clientcfg.Change{live, gone}, errors.Join(err, goneErr)
}
