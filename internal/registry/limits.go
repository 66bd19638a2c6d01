package registry

import (
	"context"
	"fmt"

	"oauth-server/internal/bans"
	"oauth-server/internal/clientcfg"
)

// Limits is what operators have set about the limits of one client, and its bans. It is not deleted with the client.
type Limits struct {
	Policy, Candidate bool
	// Overrides is how many users have limits of their own, and Users the first of them, ordered.
	Overrides int
	Users     []string
	// Banned are those who are banned, or were and are not forgotten: the first users, ordered, an empty one for the
	// client itself.
	Banned     []string
	MoreBanned bool // that are not among them
}

// NamedOverrides is how many of the users with limits of their own are named, and of those who are banned.
const NamedOverrides = 5

// LimitsOf returns what operators have set about the limits of a client, and its bans. It reads no policies of others.
func (r *Registry) LimitsOf(ctx context.Context, id string) (l Limits, err error) {
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
	l.Users = l.Users[:min(NamedOverrides, l.Overrides)]
	return l, r.addBans(ctx, id, &l)
}

// addBans adds those of the client who are banned, or were and are not forgotten.
func (r *Registry) addBans(ctx context.Context, id string, l *Limits) error {
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
	l.MoreBanned = len(l.Banned) > NamedOverrides
	l.Banned = l.Banned[:min(NamedOverrides, len(l.Banned))]
	return nil
}
