package grants

import (
	"cmp"
	"errors"
	"hash/maphash"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/recent"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/ratelimit"
)

// maxMeterKeys bounds the memory of one [meter] to about 16 MB.
const maxMeterKeys = 1 << 16

// provenFor is how long a key stays proven.
const provenFor = 24 * time.Hour

// meter counts by key, in the memory of this instance only. A key with a Username has the named
// limit, and any other key the whole limit. Both are enforced whatever the mode of the limiter is.
// When the counters are full, proven keys are counted in a separate set, so a flood of names cannot
// limit a caller that has authenticated before.
type meter struct {
	counters *ratelimit.Counters
	limits   *ratelimit.Effective

	reserved *ratelimit.Counters // for proven keys
	proven   *recent.Table       // shared by all meters
	seed     maphash.Seed        // for the keys of this meter in proven
}

func newMeter(proven *recent.Table, named, whole ratelimit.Limit) (*meter, error) {
	limits, err := ratelimit.Enforced(named, whole)
	if err != nil {
		return nil, err
	}
	return &meter{
		counters: ratelimit.NewCounters(maxMeterKeys), limits: limits,
		reserved: ratelimit.NewCounters(maxMeterKeys), proven: proven, seed: maphash.MakeSeed(),
	}, nil
}

// prove records that the owner of the keys has authenticated.
func (m *meter) prove(now time.Time, keys []ratelimit.Key) {
	for _, k := range keys {
		m.proven.Renew(now, maphash.Comparable(m.seed, k), provenFor)
	}
}

// room returns the counters for a key.
func (m *meter) room(now time.Time, k ratelimit.Key) *ratelimit.Counters {
	if st := m.counters.Stats(); st.Keys >= st.MaxKeys && m.proven.Done(now, maphash.Comparable(m.seed, k), provenFor) {
		return m.reserved
	}
	return m.counters
}

// wait returns how long the keys have to wait, or 0. It counts nothing.
func (m *meter) wait(now time.Time, keys []ratelimit.Key) (wait time.Duration) {
	for _, k := range keys {
		if d, denies := m.room(now, k).Denies(now, k, m.limits); denies {
			wait = max(wait, d.RetryAfter)
		}
	}
	return wait
}

// take counts once for each key, up to the first key over its limit. It returns how long that key
// has to wait, or 0 if no key is over its limit.
func (m *meter) take(now time.Time, keys []ratelimit.Key) time.Duration {
	for _, k := range keys {
		if d := m.room(now, k).Take(now, k, m.limits, 1); d.Rejected() {
			return d.RetryAfter
		}
	}
	return 0
}

// Names of the limits outside policies, after their places in the configuration; see
// [oautherr.LimitedError].
const (
	attemptsLimit       = "failed_attempts"
	userAttemptsLimit   = "failed_attempts.users"
	grantAttemptsLimit  = "failed_attempts.grants"
	signInsLimit        = "passwords.sign_ins_per_minute"
	inspectionLimit     = "inspection"
	authorizationsLimit = "sessions.codes"
)

// tooMany returns a oautherr.LimitedError for a request that has to wait, or nil if wait is not positive. It
// rounds the wait up to whole seconds.
func tooMany(wait time.Duration, limit, reason string) error {
	if wait <= 0 {
		return nil
	}
	return &oautherr.LimitedError{RetryAfter: wholeSeconds(wait), Limit: limit, Reason: reason}
}

// grantKeys returns the keys that an invalid code or refresh token counts against: its source
// address, and the client at that address. A client with a secret has authenticated, so failures of
// other clients at its address do not affect it.
func (s *Service) grantKeys(client *clientcfg.Client, at place) []ratelimit.Key {
	from := at.source()
	ofClient := ratelimit.Key{ClientID: from, Username: client.ID}
	if !client.Public {
		keys := []ratelimit.Key{ofClient}
		s.invalidGrants.prove(s.opts.Clock(), keys)
		return keys
	}
	return []ratelimit.Key{{ClientID: from}, ofClient}
}

// metered runs look, which reads a code or a refresh token from the store. If too many were
// invalid, it reads nothing and returns an error, even for a valid code or token.
func (s *Service) metered(client *clientcfg.Client, at place, look func() error) error {
	const reason = "Too many invalid codes and refresh tokens from this address"
	keys := s.grantKeys(client, at)
	if err := tooMany(s.invalidGrants.wait(s.opts.Clock(), keys), grantAttemptsLimit, reason); err != nil {
		return err
	}
	err := look()
	if err == nil {
		s.invalidGrants.prove(s.opts.Clock(), keys)
	}
	var failed *Error
	if errors.As(err, &failed) && failed.Code == oautherr.InvalidGrant {
		return cmp.Or(tooMany(s.invalidGrants.take(s.opts.Clock(), keys), grantAttemptsLimit, reason), err)
	}
	return err
}

// meteredQuery counts a client's request to an endpoint. Anyone can send requests as a public
// client, so these count by source address too.
func (s *Service) meteredQuery(m *meter, client *clientcfg.Client, q *TokenQuery) error {
	keys := []ratelimit.Key{{ClientID: client.ID}}
	if client.Public {
		keys[0].Username = place{q.Remote, q.Credentials.Page.foreign(client)}.source()
	} else {
		m.prove(s.opts.Clock(), keys)
	}
	return tooMany(m.take(s.opts.Clock(), keys), inspectionLimit, "Too many requests of this client to this endpoint")
}

// wholeSeconds rounds up, so a caller that waits this long is not early.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
