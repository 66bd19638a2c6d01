package grants

import (
	"hash/maphash"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/recent"
)

// Issued is an access token that was issued, for [Options].Issued.
type Issued struct {
	ClientID string
	Grant    clientcfg.Grant
	// Wasted is set if an equal token still had more than half of its lifetime left. Equal means
	// the same client, credential, user, scope set and audience. For a refresh, the equal token is
	// the one issued together with the refresh token. The check uses the tokens that this instance
	// issued lately and, for refreshes, the store, so it misses some.
	Wasted bool
}

// issued passes the issued token to the observer.
func (s *Service) issued(x *issuance) {
	if s.opts.Issued != nil {
		s.opts.Issued(Issued{ClientID: x.client.ID, Grant: x.grant, Wasted: s.wasted(x)})
	}
}

// wasted reports whether an equal token still had more than half of its lifetime left.
func (s *Service) wasted(x *issuance) bool {
	half := s.opts.AccessTokenLifetime / 2
	if x.grant == clientcfg.RefreshToken {
		return sameSet(x.scopes, x.found.Scopes) && x.now.Sub(x.found.IssuedAt) < half
	}
	return s.recent.Renew(x.now, s.recent.hash(x), half)
}

// sameSet reports whether two lists without duplicates have the same elements.
func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// recentTokens records when tokens were issued lately, by a keyed hash of the properties that equal
// tokens share.
type recentTokens struct {
	*recent.Table
	seed maphash.Seed
}

func newRecentTokens(now time.Time) *recentTokens {
	return &recentTokens{recent.New(now, recent.DefaultSlots), maphash.MakeSeed()}
}

// hash returns a keyed hash of the properties that equal tokens share. The order of scopes and
// audiences does not matter.
func (r *recentTokens) hash(x *issuance) uint64 {
	h := maphash.String(r.seed, x.client.ID)
	h = recent.Mix(h, maphash.Comparable(r.seed, x.client.Stamp)) // after a revocation the client needs new tokens
	h = recent.Mix(h, maphash.Bytes(r.seed, x.credential[:]))
	h = recent.Mix(h, maphash.String(r.seed, x.auth.Username))
	for _, list := range [...][]string{x.scopes, x.client.Audience} {
		var sum uint64
		for _, text := range list {
			sum += maphash.String(r.seed, text)
		}
		h = recent.Mix(h, sum)
	}
	return h
}
