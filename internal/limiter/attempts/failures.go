package attempts

import (
	"net/netip"
	"time"

	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

// Limits bound how many authentications may fail. Only failures count, and only against the address
// that they come from (an IPv6 address counts as its /64). No one can lock out a client or a user
// from another address, but users who share an address can lock each other out. An IPv6 /48 counts as
// another address, with siteFactor times the limit, because one customer can hold a whole /48.
type Limits struct {
	PerAddress ratelimit.Limit // all failures from one address
	PerName    ratelimit.Limit // failures from one address with one client_id or username
}

const siteFactor = 10

// NewLimits returns limits of perAddress and perName failures in each window.
func NewLimits(perAddress, perName int64, window time.Duration) Limits {
	return Limits{ratelimit.NewLimit("per-address", perAddress, window), ratelimit.NewLimit("per-name", perName, window)}
}

// Place is the origin of a request. Requests that foreign web pages make browsers send count as a
// separate place, because they must not lock out the other users at the same address.
type Place struct {
	Addr netip.Addr
	Page bool // a foreign page made the browser send the request
}

// of returns the name of the place within a network, or "" for no network.
func (p Place) of(network string) string {
	if p.Page && network != "" {
		return network + " pages"
	}
	return network
}

// Source returns the name under which requests of the place count.
func (p Place) Source() string { return p.of(limiter.SourceOf(p.Addr)) }

// Failures count failed attempts. They are safe for concurrent use.
type Failures struct{ named, sites *Meter }

// Failures makes a Failures.
func (s *Set) Failures(of string, l Limits) Failures {
	site := l.PerAddress
	site.Requests = min(siteFactor*site.Requests, ratelimit.MaxRequests)
	return Failures{s.Meter(of, l.PerName, l.PerAddress), s.Meter(of, site, site)}
}

// siteKeys returns the key of the attempt's IPv6 /48.
func siteKeys(at Place) []ratelimit.Key {
	if site := at.of(limiter.SiteOf(at.Addr)); site != "" {
		return []ratelimit.Key{{ClientID: site}}
	}
	return nil
}

// keys returns the keys that an attempt counts against: first the address, then the address with the
// name. An address over its limit counts under no further names, so it cannot fill the memory with
// them.
func keys(at Place, name string) []ratelimit.Key {
	from := at.Source()
	return []ratelimit.Key{{ClientID: from}, {ClientID: from, Username: name}}
}

// Blocked returns the error for an attempt over the limits, or nil if it may be made now. It counts
// nothing.
func (f Failures) Blocked(now time.Time, at Place, name string) error {
	return tooMany(max(f.sites.Wait(now, siteKeys(at)...), f.named.Wait(now, keys(at, name)...)))
}

// Count counts a failure and returns an error if there were already too many. A site over its limit
// counts under no further addresses.
func (f Failures) Count(now time.Time, at Place, name string) error {
	if wait := f.sites.Take(now, siteKeys(at)...); wait > 0 {
		return tooMany(wait)
	}
	return tooMany(f.named.Take(now, keys(at, name)...))
}

// Prove records a successful attempt.
func (f Failures) Prove(now time.Time, at Place, name string) {
	f.sites.Prove(now, siteKeys(at)...)
	f.named.Prove(now, keys(at, name)...)
}

func tooMany(wait time.Duration) error {
	return TooMany(wait, "failed_attempts", "Too many failed attempts from this address")
}
