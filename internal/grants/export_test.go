package grants

import (
	"strconv"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// SetRefreshTokenLifetime changes the setting of a running service.
func (s *Service) SetRefreshTokenLifetime(d time.Duration) { s.opts.RefreshTokenLifetime = d }

// SetPolicies changes the policies of a service that answers no request meanwhile.
func (s *Service) SetPolicies(p func() *clientcfg.PolicySnapshot) { s.opts.Policies = p }

// SetMeterKeys empties the meters of a service and gives each room for so many keys.
func (s *Service) SetMeterKeys(n int) {
	for _, m := range []*meter{s.clientFailures.meter, s.signIns.meter, s.signIns.successes, s.invalidGrants} {
		m.counters = ratelimit.NewCounters(n)
	}
}

// LastTokens returns how many tokens a service keeps for reuse, and of how many sets.
func (s *Service) LastTokens() (tokens, sets int) {
	for _, all := range s.last.byClient {
		sets += len(all)
	}
	return len(s.last.kept()), sets
}

// FillLastTokens keeps that many tokens of different sets, of so many clients, and returns how many are left,
// and how many bytes they are said to take.
func FillLastTokens(tokens, clients int) (kept, bytes int) {
	s := &Service{last: newLastTokens()}
	for i := range tokens {
		c := &clientcfg.Client{ID: strconv.Itoa(i % clients)}
		id := s.last.set(c.ID, c, [32]byte{}, []string{strconv.Itoa(i)}, time.Time{})
		s.last.put(c.ID, lastToken{id: id, jti: strconv.Itoa(i), text: string(make([]byte, 800))})
	}
	kept, _ = s.LastTokens()
	return kept, s.last.size
}

// FillRecentTokens issues that many different tokens, each so many times. It returns how many were not
// found the last time, and how many the first time, when there was none.
func FillRecentTokens(tokens, times int) (missed, wrong int) {
	now := time.Now()
	r := newRecentTokens(now)
	for round := range times {
		for i := range tokens {
			x := &issuance{client: &clientcfg.Client{ID: strconv.Itoa(i)}}
			switch found := r.renew(now, r.hash(x), time.Hour); {
			case found && round == 0:
				wrong++
			case !found && round == times-1 && round > 0:
				missed++
			}
		}
	}
	return missed, wrong
}

// WasteOf returns what is done for each token to measure waste.
func WasteOf(scopes []string) func() {
	s := &Service{recent: newRecentTokens(time.Now())}
	s.opts.AccessTokenLifetime = time.Hour
	x := &issuance{client: &clientcfg.Client{ID: "shop", Audience: []string{"https://api.example.com"}}, scopes: scopes, now: time.Now()}
	return func() { s.wasted(x) }
}
