// Package attempts limits what policies do not cover: failed authentications, sign-ins, invalid grants
// and queries. It counts in the memory of this instance only, and enforces its limits whatever the
// mode of the limiter is.
//
//	meters := attempts.NewSet(time.Now(), attempts.DefaultKeys)
//	failed := meters.Failures("sign-ins", limits) // meters.Err() reports invalid limits
//	if err := failed.Blocked(now, place, username); err != nil { … }
package attempts

import (
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/limiter/recent"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// DefaultKeys bounds the memory of one [Meter] to about 16 MB.
const DefaultKeys = 1 << 16

// provenFor is how long a key stays proven.
const provenFor = 24 * time.Hour

// Set makes meters that share one table of proven keys.
type Set struct {
	keys   int
	proven *recent.Table
	errs   []error
}

// NewSet returns an empty Set. Each of its meters has counters for that many keys.
func NewSet(now time.Time, keys int) *Set {
	return &Set{keys: keys, proven: recent.New(now, recent.DefaultSlots)}
}

// Err returns the errors of all invalid limits, joined.
func (s *Set) Err() error { return errors.Join(s.errs...) }

// Meter counts by key. When its counters are full, proven keys are counted in a separate set, so a
// flood of names cannot limit a caller that has authenticated before. It is safe for concurrent use.
type Meter struct {
	limits   *ratelimit.Effective
	counters *counting.Counters
	reserved *counting.Counters // for proven keys
	proven   *recent.Table      // shared by all meters
	seed     maphash.Seed       // for the keys of this meter in proven
}

// Limits returns limits: named for keys with a Username, and whole for other keys.
func (s *Set) Limits(of string, named, whole ratelimit.Limit) *ratelimit.Effective {
	limits, err := ratelimit.Enforced(named, whole)
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("attempts: limits of %s: %w", of, err))
	}
	return limits
}

// Meter makes a Meter with these [Set.Limits].
func (s *Set) Meter(of string, named, whole ratelimit.Limit) *Meter {
	return &Meter{
		limits: s.Limits(of, named, whole), counters: counting.NewCounters(s.keys),
		reserved: counting.NewCounters(s.keys), proven: s.proven, seed: maphash.MakeSeed(),
	}
}

// Prove records that the owner of the keys has authenticated.
func (m *Meter) Prove(now time.Time, keys ...ratelimit.Key) {
	for _, k := range keys {
		m.proven.Renew(now, maphash.Comparable(m.seed, k), provenFor)
	}
}

// room returns the counters for a key.
func (m *Meter) room(now time.Time, k ratelimit.Key) *counting.Counters {
	if st := m.counters.Stats(); st.Keys >= st.MaxKeys && m.proven.Done(now, maphash.Comparable(m.seed, k), provenFor) {
		return m.reserved
	}
	return m.counters
}

// Wait returns how long the keys have to wait, or 0. It counts nothing.
func (m *Meter) Wait(now time.Time, keys ...ratelimit.Key) (wait time.Duration) {
	for _, k := range keys {
		if d, denies := m.room(now, k).Denies(now, k, m.limits); denies {
			wait = max(wait, d.RetryAfter)
		}
	}
	return wait
}

// Take counts once for each key, up to the first key over its limit. It returns how long that key
// has to wait, or 0 if no key is over its limit.
func (m *Meter) Take(now time.Time, keys ...ratelimit.Key) time.Duration {
	for _, k := range keys {
		if d := m.room(now, k).Take(now, k, m.limits, 1); d.Rejected() {
			return d.RetryAfter
		}
	}
	return 0
}

// TooMany returns a *[oautherr.LimitedError] for a request that has to wait, or nil if wait is not
// positive. limit is the place of the limit in the configuration. The wait is rounded up to whole
// seconds, so a caller that waits this long is not early.
func TooMany(wait time.Duration, limit, reason string) error {
	if wait <= 0 {
		return nil
	}
	return &oautherr.LimitedError{RetryAfter: (wait + time.Second - 1).Truncate(time.Second), Limit: limit, Reason: reason}
}
