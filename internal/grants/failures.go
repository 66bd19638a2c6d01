package grants

import (
	"fmt"
	"net/netip"
	"time"

	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/recent"
	"oauth-server/internal/ratelimit"
)

// FailureLimits bound how many authentications may fail. Only failures count, and only against the
// address that they come from (an IPv6 address counts as its /64). No one can lock out a client or
// a user from another address, but users who share an address can lock each other out. An IPv6 /48
// counts as another address, with siteFactor times the limit, because one customer can hold a whole
// /48.
type FailureLimits struct {
	PerAddress ratelimit.Limit // all failures from one address
	PerName    ratelimit.Limit // failures from one address with one client_id or username
}

const siteFactor = 10

// failures count failed attempts.
type failures struct {
	*meter
	sites *meter
}

func newFailures(proven *recent.Table, l FailureLimits) (f failures, err error) {
	if f.meter, err = newMeter(proven, l.PerName, l.PerAddress); err != nil {
		return f, err
	}
	site := l.PerAddress
	site.Requests = min(siteFactor*site.Requests, ratelimit.MaxRequests)
	f.sites, err = newMeter(proven, site, site)
	return f, err
}

// place is the origin of a request. Requests that foreign web pages make browsers send count as a
// separate place, because they must not lock out the other users at the same address.
type place struct {
	addr netip.Addr
	page bool // see [Page.foreign]
}

// of returns the name of the place within a network, or "" for no network.
func (p place) of(network string) string {
	if p.page && network != "" {
		return network + " pages"
	}
	return network
}

func (p place) source() string { return p.of(limiter.SourceOf(p.addr)) }

// siteKeys returns the key of the attempt's IPv6 /48.
func siteKeys(at place) []ratelimit.Key {
	if site := at.of(limiter.SiteOf(at.addr)); site != "" {
		return []ratelimit.Key{{ClientID: site}}
	}
	return nil
}

// failureKeys returns the keys that an attempt counts against: first the address, then the address
// with the name. An address over its limit counts under no further names, so it cannot fill the
// memory with them.
func failureKeys(at place, name string) []ratelimit.Key {
	from := at.source()
	return []ratelimit.Key{{ClientID: from}, {ClientID: from, Username: name}}
}

// blocked returns the error for an attempt over the limits, or nil if it may be made now. It counts
// nothing.
func (f failures) blocked(now time.Time, at place, name string) error {
	return tooManyFailures(max(f.sites.wait(now, siteKeys(at)), f.wait(now, failureKeys(at, name))))
}

// count counts a failure and returns an error if there were already too many. A site over its limit
// counts under no further addresses.
func (f failures) count(now time.Time, at place, name string) error {
	if wait := f.sites.take(now, siteKeys(at)); wait > 0 {
		return tooManyFailures(wait)
	}
	return tooManyFailures(f.take(now, failureKeys(at, name)))
}

func tooManyFailures(wait time.Duration) error {
	return tooMany(wait, attemptsLimit, "Too many failed attempts from this address")
}

// signIns counts wrong passwords, and also correct ones by address and username. Hashing is
// expensive, so without a limit one account could keep the processors busy.
type signIns struct {
	failures
	successes *meter
}

func newSignIns(proven *recent.Table, failed FailureLimits, succeeded ratelimit.Limit) (s signIns, err error) {
	if s.failures, err = newFailures(proven, failed); err != nil {
		return s, fmt.Errorf("wrong passwords: %w", err)
	}
	if s.successes, err = newMeter(proven, succeeded, succeeded); err != nil {
		return s, fmt.Errorf("right passwords: %w", err)
	}
	return s, nil
}

// successKeys returns the keys that a correct password counts against.
func successKeys(at place, name string) []ratelimit.Key {
	return []ratelimit.Key{{ClientID: at.source(), Username: name}}
}

// allowed returns the error for an attempt over the limits, or nil if it may be made now. It counts
// nothing.
func (s signIns) allowed(now time.Time, at place, name string) error {
	if err := s.blocked(now, at, name); err != nil {
		return err
	}
	return tooMany(s.successes.wait(now, successKeys(at, name)), signInsLimit, "Too many sign-ins with this username from this address")
}

// succeeded counts a correct password.
func (s signIns) succeeded(now time.Time, at place, name string) {
	s.sites.prove(now, siteKeys(at))
	s.prove(now, failureKeys(at, name))
	s.successes.take(now, successKeys(at, name))
}
