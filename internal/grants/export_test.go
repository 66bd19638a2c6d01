package grants

import (
	"strconv"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
)

// SetRefreshTokenLifetime changes the option of a running service.
func (s *Service) SetRefreshTokenLifetime(d time.Duration) { s.opts.RefreshTokenLifetime = d }

// SetPolicies changes the policies of a service. No request may run at the same time.
func (s *Service) SetPolicies(p func() *clientcfg.PolicySnapshot) {
	s.opts.Policies, s.limiter.Policies = p, func() limiter.Policies { return p() }
}

// LastTokens returns how many tokens a service keeps for reuse, and how many for predictions of
// dry-run.
func (s *Service) LastTokens() (tokens, predicted int) {
	return s.last.enforced.count(), s.last.dryRun.count()
}

// TriedTokens returns how many tokens are kept for predictions of candidates.
func (s *Service) TriedTokens() int { return s.last.tried.count() }

func (l *lastTokens) count() int {
	return len(l.sweep(func(string) func(*lastToken) bool { return func(*lastToken) bool { return false } }))
}

// BeginReuse adds a running request for other tokens.
func (s *Service) BeginReuse() { s.last.enforced.begin(&reuse{done: make(chan struct{})}) }

// LastTokensRoom returns the capacity of a client's tokens after most of them were revoked.
func LastTokensRoom() int {
	r := newReuseTables(time.Now())
	for i := range maxTokensOfClient {
		r.enforced.put("shop", lastToken{id: tokenSet{byte(i)}, jti: strconv.Itoa(i)})
	}
	for i := range maxTokensOfClient - 1 {
		r.revoked("shop", strconv.Itoa(i))
	}
	return cap(r.enforced.byClient["shop"])
}

// FillLastTokens keeps tokens of different sets for a number of clients. It returns how many
// remain, and their accounted size in bytes.
func FillLastTokens(tokens, clients int) (kept, bytes int) {
	s := &Service{last: newReuseTables(time.Now())}
	for i := range tokens {
		c := &clientcfg.Client{ID: strconv.Itoa(i % clients)}
		id := s.last.enforced.set(c.ID, c, [32]byte{}, []string{strconv.Itoa(i)}, time.Time{})
		s.last.enforced.put(c.ID, lastToken{id: id, length: 800})
	}
	kept, _ = s.LastTokens()
	return kept, int(s.last.enforced.size)
}
