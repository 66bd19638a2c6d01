package clientcfg

import (
	"context"
	"fmt"

	"oauth-server/internal/ratelimit"
)

// Rebase puts what operators changed on top of another configuration file. The policies that come of it
// are adopted as those of any change are, so no count is lost. An error is or wraps [fielderr.Errors] if
// both together are not valid; then nothing is changed.
func (s *PolicySource) Rebase(ctx context.Context, base ratelimit.Settings) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	next, err := s.current.Load().rebase(base)
	if err != nil {
		return fmt.Errorf("clientcfg: the policies on top of another configuration file: %w", err)
	}
	s.base = base
	s.adopt(next)
	return nil
}

// rebase returns the snapshot of the same changes on top of another base.
func (p *PolicySnapshot) rebase(base ratelimit.Settings) (*PolicySnapshot, error) {
	d, err := newDraft(base)
	if err != nil {
		return nil, err
	}
	d.set.Version, d.next.id, d.next.leftOut = p.Version(), p.id, p.leftOut
	d.putSettings(p.set.Settings)
	for id, own := range p.set.Clients.All() {
		d.putPolicy(id, &own)
	}
	for name, c := range p.set.Candidates.All() {
		d.putCandidate(name, &c)
	}
	return d.finish()
}
