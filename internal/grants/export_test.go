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
func (s *Service) SetPolicies(p func() *clientcfg.PolicySnapshot) {
	s.opts.Policies, s.limiter.Policies = p, p
}

// SetMeterKeys empties the meters of a service and gives each room for so many keys.
func (s *Service) SetMeterKeys(n int) {
	for _, m := range []*meter{s.clientFailures.meter, s.signIns.meter, s.signIns.successes, s.invalidGrants, s.revocations} {
		m.counters = ratelimit.NewCounters(n)
	}
}

// LastTokens returns how many tokens a service keeps for reuse, and how many dry-run predicts with.
func (s *Service) LastTokens() (tokens, predicted int) {
	return s.last.enforced.count(), s.last.dryRun.count()
}

// TriedTokens returns how many tokens candidates predict with.
func (s *Service) TriedTokens() int { return s.last.tried.count() }

func (l *lastTokens) count() (n int) {
	l.sweep(func(string) func(*lastToken) bool {
		return func(*lastToken) bool { n++; return false }
	})
	return n
}

// LockedBySweep returns how many shards are locked while a sweep looks up a client, and how many there are.
func LockedBySweep() (locked, shards int) {
	l := newLastTokens()
	l.put("shop", lastToken{})
	l.sweep(func(string) func(*lastToken) bool {
		for i := range l.shards {
			if !l.shards[i].mu.TryLock() {
				locked++
				continue
			}
			l.shards[i].mu.Unlock()
		}
		return func(*lastToken) bool { return false }
	})
	return locked, len(l.shards)
}

// HoldTurns has requests for other tokens under way in all turns.
func (s *Service) HoldTurns() {
	for i := range s.last.enforced.under {
		s.last.enforced.under[i].begin(&reuse{})
	}
}

// LastTokensRoom returns the room for the tokens of a client that had most of its tokens revoked.
func LastTokensRoom() int {
	l := newLastTokens()
	for i := range maxTokensOfClient {
		l.put("shop", lastToken{id: tokenSet{byte(i)}, jti: strconv.Itoa(i)})
	}
	for i := range maxTokensOfClient - 1 {
		l.revoked("shop", strconv.Itoa(i))
	}
	return cap(l.shards[l.shard("shop")].byClient["shop"])
}

// FillLastTokens keeps that many tokens of different sets, of so many clients, and returns how many are left,
// and how many bytes they are said to take.
func FillLastTokens(tokens, clients int) (kept, bytes int) {
	s := &Service{last: newReuseTables(time.Now())}
	for i := range tokens {
		c := &clientcfg.Client{ID: strconv.Itoa(i % clients)}
		id := s.last.enforced.set(c.ID, c, [32]byte{}, []string{strconv.Itoa(i)}, time.Time{})
		s.last.enforced.put(c.ID, lastToken{id: id, length: 800})
	}
	kept, _ = s.LastTokens()
	return kept, int(s.last.enforced.size.Load())
}

// FillRecentTokens issues that many different tokens, each so many times. It returns how many were not
// found the last time, and how many the first time, when there was none.
func FillRecentTokens(tokens, times int) (missed, wrong int) {
	now := time.Now()
	r := newRecentTokens(now)
	for round := range times {
		for i := range tokens {
			x := &issuance{client: &clientcfg.Client{ID: strconv.Itoa(i)}}
			switch found := r.Renew(now, r.hash(x), time.Hour); {
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
