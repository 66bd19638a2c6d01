package registry

import (
	"context"
	"fmt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/bans"
)

// Limits describes the limits that operators have set for one client, and its bans. They are not
// deleted with the client.
type Limits struct {
	Policy    bool     `json:"policy"`          // a policy of its own
	Candidate bool     `json:"candidate"`       // a candidate of its own
	Overrides int      `json:"overrides"`       // users with their own limits
	Users     []string `json:"users,omitempty"` // the first of them
	// The first users with a current or remembered ban, sorted. Empty: the client itself.
	Banned     []string `json:"banned,omitempty"`
	MoreBanned bool     `json:"more_banned,omitempty"` // there are more than in banned
}

// namedOverrides is the maximum length of Users and of Banned.
const namedOverrides = 5

// LimitsOf returns the limits that operators have set for a client, and its bans. It does not read
// policies of other clients.
func (r *Service) LimitsOf(ctx context.Context, id string) (l Limits, err error) {
	targets, err := clientcfg.TargetsOf(ctx, r.o.Store, id)
	if err != nil {
		return l, fmt.Errorf("client %q: %w", id, err)
	}
	for _, target := range targets {
		l.Policy = l.Policy || target == clientcfg.PolicyTarget(id)
		l.Candidate = l.Candidate || target == clientcfg.CandidateTarget(id)
		if _, username, is := clientcfg.OverrideOf(target); is {
			l.Users = append(l.Users, username)
		}
	}
	l.Overrides = len(l.Users)
	l.Users = l.Users[:min(namedOverrides, l.Overrides)]
	err = r.addBans(ctx, id, &l)
	return l, err
}

// addBans adds the client's current and remembered bans.
func (r *Service) addBans(ctx context.Context, id string, l *Limits) error {
	all, err := bans.NewRepository(r.o.Store).Of(ctx, id)
	if err != nil {
		return fmt.Errorf("client %q: %w", id, err)
	}
	now := r.o.Now()
	for i := range all {
		if b := &all[i]; b.Active(now) || now.Before(b.Forget) {
			l.Banned = append(l.Banned, b.Username)
		}
	}
	l.MoreBanned = len(l.Banned) > namedOverrides
	l.Banned = l.Banned[:min(namedOverrides, len(l.Banned))]
	return nil
}
