package grants

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/clientcfg"
)

// Issued is an access token that was issued, as it is passed to [Options].Issued.
type Issued struct {
	ClientID string
	Grant    clientcfg.Grant
	// Wasted is set if an equal token had more than half of its life left: for the same client, credential,
	// user, scope set and audience; in exchange for a refresh token, the one that was issued with that. It is
	// judged by what this instance has issued lately, and for refresh tokens by what is stored, so some are
	// missed.
	Wasted bool
}

// issued passes the token that was issued to the observer.
func (s *Service) issued(x *issuance) {
	if s.opts.Issued != nil {
		s.opts.Issued(Issued{ClientID: x.client.ID, Grant: x.grant, Wasted: s.wasted(x)})
	}
}

// wasted reports whether an equal token had more than half of its life left.
func (s *Service) wasted(x *issuance) bool {
	half := s.opts.AccessTokenLifetime / 2
	if x.refresh != nil {
		f := &x.refresh.family
		return !x.refresh.earlier && sameSet(x.scopes, f.Scopes) && x.now.Sub(f.IssuedAt) < half
	}
	return s.recent.renew(x.now, s.recent.hash(x), half)
}

// sameSet reports whether two lists without repetitions have the same elements.
func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// recentTokens is a table of when tokens were issued, of a fixed size: a keyed hash of what equal tokens
// have in common, and a time. A new one takes the place of the oldest of a few, so that under too many
// different ones some are forgotten early. It is safe for concurrent use, without a lock: of two tokens
// that are issued at once, one may be forgotten.
type recentTokens struct {
	seed  maphash.Seed
	began time.Time
	// slots have the hash in their upper half, and in the lower the time since began in tenths of a second,
	// plus 1; 0: empty.
	slots []atomic.Uint64
}

// The table has 131,072 slots, of 8 bytes. The slots for a hash are one cache line.
const (
	recentSlots = 1 << 17
	recentWays  = 8
	recentTick  = 100 * time.Millisecond
)

func newRecentTokens(now time.Time) *recentTokens {
	return &recentTokens{seed: maphash.MakeSeed(), began: now, slots: make([]atomic.Uint64, recentSlots)}
}

// hash is a keyed hash of what tokens that are equal to the issued one have in common. The order of
// scopes and audiences is no part of it.
func (r *recentTokens) hash(x *issuance) uint64 {
	h := maphash.String(r.seed, x.client.ID)
	h = mix(h, maphash.Comparable(r.seed, x.client.Stamp)) // a revocation of the client needs new tokens
	h = mix(h, maphash.Bytes(r.seed, x.credential[:]))
	h = mix(h, maphash.String(r.seed, x.auth.Username))
	for _, list := range [...][]string{x.scopes, x.client.Audience} {
		var sum uint64
		for _, text := range list {
			sum += maphash.String(r.seed, text)
		}
		h = mix(h, sum)
	}
	return h
}

// mix combines two hashes so that their order matters.
func mix(h, next uint64) uint64 {
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29 ^ next
}

// renew notes that a token of the hash is issued now, and reports whether one was less than half ago.
func (r *recentTokens) renew(now time.Time, hash uint64, half time.Duration) bool {
	const times = 1<<32 - 1 // the lower half of a slot
	ticks := (uint64(max(now.Sub(r.began)/recentTick, 0)) + 1) & times
	hash = mix(hash, 0)
	first := hash % (recentSlots / recentWays) * recentWays
	entry := hash&^times | ticks
	set, oldest, least := r.slots[first:first+recentWays], 0, uint64(times)
	for i := range set {
		old := set[i].Load()
		if old&^times == hash&^times && old != 0 {
			set[i].Store(entry)
			return time.Duration(max(ticks, old&times)-old&times)*recentTick < half
		}
		if old&times < least {
			oldest, least = i, old&times
		}
	}
	set[oldest].Store(entry)
	return false
}
