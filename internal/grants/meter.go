package grants

import (
	"cmp"
	"errors"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/network"
	"oauth-server/internal/ratelimit"
)

// maxMeterKeys bounds the memory of one [meter] to about 16 MB.
const maxMeterKeys = 1 << 16

// meter counts by key, in memory and for this instance alone. A key with a Username has the first of
// its limits, another one the second. They are enforced, whatever the mode of the limiter is.
type meter struct {
	counters *ratelimit.Counters
	limits   *ratelimit.Effective
}

func newMeter(named, whole ratelimit.Limit) (*meter, error) {
	limits, err := ratelimit.Enforced(named, whole)
	if err != nil {
		return nil, err
	}
	return &meter{counters: ratelimit.NewCounters(maxMeterKeys), limits: limits}, nil
}

// wait returns how long the keys have to wait, 0 if they need not. It counts nothing.
func (m *meter) wait(now time.Time, keys []ratelimit.Key) (wait time.Duration) {
	for _, k := range keys {
		if d, denies := m.counters.Denies(now, k, m.limits); denies {
			wait = max(wait, d.RetryAfter)
		}
	}
	return wait
}

// take counts once for each key, up to the first that is over its limit, and returns how long that
// one has to wait, 0 if there is none.
func (m *meter) take(now time.Time, keys []ratelimit.Key) time.Duration {
	for _, k := range keys {
		if d := m.counters.Take(now, k, m.limits, 1); d.Rejected() {
			return d.RetryAfter
		}
	}
	return 0
}

// The limits that are no policy's, by their places in the configuration; see [LimitedError].
const (
	attemptsLimit       = "failed_attempts"
	userAttemptsLimit   = "failed_attempts.users"
	grantAttemptsLimit  = "failed_attempts.grants"
	signInsLimit        = "passwords.sign_ins_per_minute"
	inspectionLimit     = "inspection"
	authorizationsLimit = "sessions.codes"
)

// tooMany returns the error of a request that has to wait for the limit, nil if it need not. It rounds
// the wait up to whole seconds.
func tooMany(wait time.Duration, limit, reason string) error {
	if wait <= 0 {
		return nil
	}
	return &LimitedError{RetryAfter: wholeSeconds(wait), Limit: limit, reason: reason}
}

// grantKeys are what an invalid code or refresh token counts against: its source address, and the
// client from there. A client with a secret is proven, so that it has nothing to do with the failures
// of others at its address.
func grantKeys(client *clientcfg.Client, remote netip.Addr) []ratelimit.Key {
	from := network.Source(remote)
	ofClient := ratelimit.Key{ClientID: from, Username: client.ID}
	if !client.Public {
		return []ratelimit.Key{ofClient}
	}
	return []ratelimit.Key{{ClientID: from}, ofClient}
}

// metered runs look, which reads a code or a refresh token from the store, unless too many were
// invalid: then nothing is read, so that the limit holds for right ones too.
func (s *Service) metered(client *clientcfg.Client, remote netip.Addr, look func() error) error {
	const reason = "Too many invalid codes and refresh tokens from this address"
	keys := grantKeys(client, remote)
	if err := tooMany(s.invalidGrants.wait(s.opts.Clock(), keys), grantAttemptsLimit, reason); err != nil {
		return err
	}
	err := look()
	var failed *Error
	if errors.As(err, &failed) && failed.Code == InvalidGrant {
		return cmp.Or(tooMany(s.invalidGrants.take(s.opts.Clock(), keys), grantAttemptsLimit, reason), err)
	}
	return err
}

// meteredQuery counts a request of the client to an endpoint. Everyone can send requests as a public
// client, so that those count against its source address too.
func (s *Service) meteredQuery(m *meter, client *clientcfg.Client, remote netip.Addr) error {
	k := ratelimit.Key{ClientID: client.ID}
	if client.Public {
		k.Username = network.Source(remote)
	}
	return tooMany(m.take(s.opts.Clock(), []ratelimit.Key{k}), inspectionLimit, "Too many requests of this client to this endpoint")
}
