package grants

import (
	"net/netip"
	"time"

	"oauth-server/internal/ratelimit"
)

// FailureLimits bound how many authentications may fail. Only failures count, and only against the
// address that they come from (an IPv6 address stands for its /64), so no one can lock out a client
// or a user from elsewhere. Users who share an address can lock each other out.
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
	policies, err := ratelimit.Compile(ratelimit.Settings{
		Mode: ratelimit.Enforce, CanaryPercent: 100,
		Default: ratelimit.Policy{User: []ratelimit.Limit{l.PerName}, Client: []ratelimit.Limit{l.PerAddress}},
	})
	if err != nil {
		return nil, err
	}
	return &failures{counters: ratelimit.NewCounters(maxFailureKeys), limits: policies.For("")}, nil
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

// tooManyFailures is the answer to an attempt that has to wait, nil if it need not. It rounds the
// wait up to whole seconds.
func tooManyFailures(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	seconds := (wait + time.Second - 1) / time.Second
	return &LimitedError{RetryAfter: seconds * time.Second, reason: "Too many failed attempts from this address"}
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
