package grants

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// askedAboutTogether is how many tokens one read of revocations covers.
const askedAboutTogether = 500

// revocationsKnownFor is how long tokens are handed out again after the last successful read of
// revocations. An instance that is cut off from the store does not learn of revocations at other
// instances.
const revocationsKnownFor = 10 * time.Second

// reuseTables holds the tokens kept for over_limit: reuse. Each table has its own bounds, so
// predictions never displace tokens that are handed out.
type reuseTables struct {
	enforced *lastTokens // tokens that are handed out
	dryRun   *lastTokens // tokens that enforce would hand out, without their texts
	tried    *lastTokens // tokens that candidate policies would hand out, without their texts

	read atomic.Pointer[time.Time] // when revocations were last read; has a monotonic clock reading
}

func newReuseTables(now time.Time) *reuseTables {
	r := &reuseTables{enforced: newLastTokens(), dryRun: newLastTokens(), tried: newLastTokens()}
	r.read.Store(&now) // there are no tokens yet
	return r
}

// in returns the table for clients in mode m.
func (r *reuseTables) in(m ratelimit.Mode) *lastTokens {
	if m == ratelimit.Enforce {
		return r.enforced
	}
	return r.dryRun
}

func (r *reuseTables) all() [3]*lastTokens { return [...]*lastTokens{r.enforced, r.dryRun, r.tried} }

// revoked drops a revoked token.
func (r *reuseTables) revoked(clientID, jti string) {
	for _, l := range r.all() {
		l.revoked(clientID, jti)
	}
}

// ids returns the client_id of each token by its jti, including tokens kept without their texts.
func (r *reuseTables) ids() map[string]string {
	ids := map[string]string{}
	for _, l := range r.all() {
		l.addIDs(ids)
	}
	return ids
}

// SweepLastTokens drops the tokens kept for over_limit: reuse that can no longer be handed out:
// they are too old, were revoked at any instance, or their client, its policy or the signing keys
// have changed. Call it periodically. If there are no tokens, it does not read the store.
func (s *Service) SweepLastTokens(ctx context.Context) error {
	if s.opts.Policies == nil {
		return nil
	}
	now := s.opts.Now()
	s.dropUnused(now)
	kept := s.last.ids()
	jtis := make([]string, 0, len(kept))
	for jti := range kept {
		jtis = append(jtis, jti)
	}
	for some := range slices.Chunk(jtis, askedAboutTogether) {
		revoked, err := s.revokedOf(ctx, some)
		if err != nil {
			return storeFailed("read revocations", err)
		}
		for _, jti := range revoked {
			s.last.revoked(kept[jti], jti)
		}
	}
	s.last.read.Store(&now)
	return nil
}

// dropUnused drops tokens that are no longer handed out: expired tokens, tokens of a client that
// was changed, removed or given another policy, and tokens signed with an unpublished key.
func (s *Service) dropUnused(now time.Time) {
	policies := s.opts.Policies()
	sweep := func(l *lastTokens, inUse func(clientID string, e *ratelimit.Effective) bool) {
		l.sweep(func(id string) func(*lastToken) bool {
			client, known := s.opts.Clients.Client(id)
			known = known && inUse(id, policies.For(id))
			return func(t *lastToken) bool {
				return !known || !t.goodFor(client) || !now.Before(t.until) || t.text != "" && !s.opts.Signer.Published(t.text)
			}
		})
	}
	sweep(s.last.enforced, func(_ string, e *ratelimit.Effective) bool { return e.Reuses() && e.Mode == ratelimit.Enforce })
	sweep(s.last.dryRun, func(_ string, e *ratelimit.Effective) bool { return e.Reuses() && e.Mode != ratelimit.Enforce })
	sweep(s.last.tried, func(id string, e *ratelimit.Effective) bool {
		trial, ok := policies.Trial(id)
		return ok && trial.Client && trial.Over(e, trial.Effective).OverLimit == ratelimit.OverLimitReuse
	})
}

// revokedOf returns the revoked tokens among jtis. The store says only whether any of them is
// revoked, so it bisects the list.
func (s *Service) revokedOf(ctx context.Context, jtis []string) ([]string, error) {
	names := make([]string, len(jtis))
	for i, jti := range jtis {
		names[i] = tokenName(jti)
	}
	some, err := s.store.Revoked(ctx, names...)
	switch {
	case err != nil || !some:
		return nil, err
	case len(jtis) == 1:
		return jtis, nil
	}
	one, err := s.revokedOf(ctx, jtis[:len(jtis)/2])
	if err != nil {
		return nil, err
	}
	other, err := s.revokedOf(ctx, jtis[len(jtis)/2:])
	return append(one, other...), err
}
