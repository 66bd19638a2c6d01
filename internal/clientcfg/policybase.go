package clientcfg

import (
	"context"
	"fmt"

	"oauth-server/internal/ratelimit"
)

// Rebase puts the operators' changes on top of another configuration file. The resulting policies
// are adopted like any other change, so no count is lost. If both together are invalid, the
// error is or wraps [fielderr.Errors]. An error of allowed, which may be nil, is returned
// unchanged. After an error nothing is changed.
func (s *PolicySource) Rebase(ctx context.Context, base ratelimit.Settings, allowed func(before, after *PolicySnapshot) error) error {
	return s.follower.Do(ctx, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.current.Load()
		next, err := before.rebase(base)
		if err != nil {
			return fmt.Errorf("clientcfg: apply policies to the new configuration file: %w", err)
		}
		if allowed != nil {
			if err := allowed(before, next); err != nil {
				return err
			}
		}
		s.base = base
		s.use(ctx, next)
		return nil
	})
}

// rebase returns the snapshot with the same changes on top of another base. It keeps everything
// that does not depend on the base.
func (p *PolicySnapshot) rebase(base ratelimit.Settings) (*PolicySnapshot, error) {
	d := p.edit()
	d.next.base = base
	var err error
	if d.next.digest, err = digestOf(base); err != nil {
		return nil, err
	}
	d.set(SettingsTarget, "", &p.set.Settings)
	for _, inFile := range []map[string]ratelimit.Policy{p.base.Clients, base.Clients} {
		for id := range inFile {
			if _, changed := p.set.Clients.Get(id); !changed {
				d.set(policyTargets, id, nil)
			}
		}
	}
	return d.finish()
}
