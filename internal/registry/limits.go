package registry

import (
	"context"
	"fmt"
	"slices"

	"oauth-server/internal/clientcfg"
)

// Limits is what operators have set about the limits of one client. It is not deleted with the client.
type Limits struct {
	Policy, Candidate bool
	// Overrides is how many users have limits of their own, and Users the first of them, ordered.
	Overrides int
	Users     []string
}

// NamedOverrides is how many of the users with limits of their own are named.
const NamedOverrides = 5

// LimitsOf returns what operators have set about the limits of a client. It reads all policies.
func (r *Registry) LimitsOf(ctx context.Context, id string) (l Limits, err error) {
	state, err := r.o.Store.PolicyState(ctx)
	if err != nil {
		return l, fmt.Errorf("client %q: %w", id, err)
	}
	for target, v := range state.Targets {
		if string(v.Value) == "null" {
			continue
		}
		l.Policy = l.Policy || target == clientcfg.PolicyTarget(id)
		l.Candidate = l.Candidate || target == clientcfg.CandidateTarget(id)
		if of, username, is := clientcfg.OverrideOf(target); is && of == id {
			l.Users = append(l.Users, username)
		}
	}
	l.Overrides = len(l.Users)
	slices.Sort(l.Users)
	l.Users = l.Users[:min(NamedOverrides, l.Overrides)]
	return l, nil
}
