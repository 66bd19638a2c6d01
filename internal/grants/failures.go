package grants

import (
	"fmt"
	"net/netip"
	"time"

	"oauth-server/internal/ratelimit"
)

// FailureLimits bound how many authentications may fail. They count only against the address that they come from (an IPv6 address stands for its /64), so no one can lock out a client
// or a user from elsewhere.
type FailureLimits struct {
	PerAddress ratelimit.Limit // of all failures from one address
	PerName    ratelimit.Limit // of those from one address with one client_id or username
}

// maxFailureKeys bounds the memory of one [failures] to about 16 MB.
const maxFailureKeys = 1 << 16

// failures counts failed attempts.
type failures struct {
	counters *ratelimit.Counters
	limits   *ratelimit.Effective
}

func newFailures(l FailureLimits) (*failures, error) {
	limits, err := enforced(ratelimit.Policy{User: []ratelimit.Limit{l.PerName}, Client: []ratelimit.Limit{l.PerAddress}})
	if err != nil {
		return nil, err
	}
	return &failures{counters: ratelimit.NewCounters(maxFailureKeys), limits: limits}, nil
}

// enforced returns a policy that applies to all keys.
func enforced(p ratelimit.Policy) (*ratelimit.Effective, error) {
	policies, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: p})
	if err != nil {
		return nil, err
	}
	return policies.For(""), nil
}

// failureKeys are what an attempt counts against: first the address, then the address with the
// name. count depends on this order.
func failureKeys(remote netip.Addr, name string) [2]ratelimit.Key {
	from := source(remote)
	return [2]ratelimit.Key{{ClientID: from}, {ClientID: from, Username: name}}
}

// blocked returns how long another attempt is pointless, 0 if it may be made now. It counts
// nothing.
func (f *failures) blocked(now time.Time, remote netip.Addr, name string) (wait time.Duration) {
	for _, k := range failureKeys(remote, name) {
		if d, denies := f.counters.Denies(now, k, f.limits); denies {
			wait = max(wait, d.RetryAfter)
		}
	}
	return wait
}

// count counts a failure. If there were too many already, it returns how long another attempt is
// pointless, otherwise 0. An address over its limit counts under no further names, so that it
// cannot fill the memory with them.
func (f *failures) count(now time.Time, remote netip.Addr, name string) time.Duration {
	for _, k := range failureKeys(remote, name) {
		if d := f.counters.Take(now, k, f.limits, 1); d.Rejected() {
			return d.RetryAfter
		}
	}
	return 0
}

// tooManyFailures is the answer to an attempt that has to wait, nil if it need not.
func tooManyFailures(wait time.Duration) error {
	return tooMany(wait, "Too many failed attempts from this address")
}

// tooMany rounds the wait up to whole seconds.
func tooMany(wait time.Duration, reason string) error {
	if wait <= 0 {
		return nil
	}
	seconds := (wait + time.Second - 1) / time.Second
	return &LimitedError{RetryAfter: seconds * time.Second, reason: reason}
}

// signIns counts wrong passwords and, by address and username, right ones too. Hashing is expensive, so
// without a limit one account is enough to keep the processors busy.
type signIns struct {
	*failures
	successes *ratelimit.Effective
}

func newSignIns(failed FailureLimits, succeeded ratelimit.Limit) (*signIns, error) {
	f, err := newFailures(failed)
	if err != nil {
		return nil, fmt.Errorf("wrong passwords: %w", err)
	}
	successes, err := enforced(ratelimit.Policy{User: []ratelimit.Limit{succeeded}, Client: []ratelimit.Limit{succeeded}})
	if err != nil {
		return nil, fmt.Errorf("right passwords: %w", err)
	}
	return &signIns{failures: f, successes: successes}, nil
}

// successKey differs from all of failureKeys: no address begins like it.
func successKey(remote netip.Addr, name string) ratelimit.Key {
	return ratelimit.Key{ClientID: "successes from " + source(remote), Username: name}
}

// allowed returns the answer to an attempt that would be pointless or one too many, nil if it may be
// made now. It counts nothing.
func (s *signIns) allowed(now time.Time, remote netip.Addr, name string) error {
	if err := tooManyFailures(s.blocked(now, remote, name)); err != nil {
		return err
	}
	d, _ := s.counters.Denies(now, successKey(remote, name), s.successes)
	return tooMany(d.RetryAfter, "Too many sign-ins with this username from this address")
}

// succeeded counts a success.
func (s *signIns) succeeded(now time.Time, remote netip.Addr, name string) {
	s.counters.Take(now, successKey(remote, name), s.successes, 1)
}

// source names where an attempt comes from: an IPv4 address, or the /64 of an IPv6 address, because
// one customer usually has all of it.
func source(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr.String() // "invalid IP" if it is unknown
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}
