package attempts

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// few allows 5 failures a minute from an address, 3 of them with the same name.
func few(t *testing.T, keys int) Failures {
	t.Helper()
	s := NewSet(noon, keys)
	f := s.Failures("tests", NewLimits(5, 3, time.Minute))
	check.OK(t, s.Err())
	return f
}

// at returns a place, or the place of unknown addresses if the text is no address.
func at(address string) Place {
	addr, _ := netip.ParseAddr(address)
	return Place{Addr: addr}
}

// failed counts n failures and returns the error of the last.
func failed(f Failures, n int, place Place, name string) (err error) {
	for range n {
		err = f.Count(noon, place, name)
	}
	return err
}

func TestFailures(t *testing.T) {
	f, here := few(t, 1000), at("192.0.2.1")
	check.OK(t, failed(f, 3, here, "alice"))
	err := f.Blocked(noon, here, "alice")
	var limited *oautherr.LimitedError
	if !errors.As(err, &limited) || limited.RetryAfter%time.Second != 0 {
		t.Fatalf("error %v", err)
	}
	check.Equal(t, "error", *limited, oautherr.LimitedError{
		RetryAfter: limited.RetryAfter, Limit: "failed_attempts", Reason: "Too many failed attempts from this address",
	})
	check.Equal(t, "after the wait", f.Blocked(noon.Add(limited.RetryAfter), here, "alice"), nil)
	check.Equal(t, "a second before", f.Blocked(noon.Add(limited.RetryAfter-time.Second), here, "alice") != nil, true)
	check.OK(t, f.Blocked(noon, here, "bob"))
	check.OK(t, failed(f, 2, here, "bob"))
	for _, name := range []string{"alice", "bob", "nobody"} {
		check.Equal(t, name+" over the limit of the address", f.Count(noon, here, name) != nil, true)
	}
	check.OK(t, f.Count(noon, at("192.0.2.2"), "alice"))
	check.OK(t, f.Count(noon, Place{here.Addr, true}, "alice"))
}

func TestSources(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then string
		same        bool
	}{
		"the same address":        {"192.0.2.1", "192.0.2.1", true},
		"another address":         {"192.0.2.1", "192.0.2.2", false},
		"IPv4 in IPv6":            {"192.0.2.1", "::ffff:192.0.2.1", true},
		"the same /64":            {"2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true},
		"another /64":             {"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		"the same, with its zone": {"fe80::1%eth0", "fe80::1%eth1", true},
		"IPv6 loopback":           {"::1", "127.0.0.1", false},
		"unknown addresses":       {"", "", true},
	} {
		f := few(t, 1000)
		_ = failed(f, 3, at(tc.first), "shop")
		check.Equal(t, name, f.Blocked(noon, at(tc.then), "shop") != nil, tc.same)
	}
}

// TestSites: an IPv6 /48 may have ten times the failures of an address, spread over any of its
// addresses. IPv4 addresses have no such network.
//
// Attack (guessing): Guessing from an IPv6 network. A /48 has a limit of its own, ten times that
// for an address.
func TestSites(t *testing.T) {
	f := few(t, 1000)
	for i := range 50 {
		check.OK(t, f.Count(noon, at(fmt.Sprintf("2001:db8:0:%x::1", i)), "shop"))
		check.OK(t, f.Count(noon, at(fmt.Sprintf("198.51.100.%d", i)), "shop"))
	}
	for _, address := range []string{"2001:db8:0:ff::1", "2001:db8:0:100::1"} {
		check.Equal(t, address, f.Blocked(noon, at(address), "other") != nil && f.Count(noon, at(address), "other") != nil, true)
	}
	check.OK(t, f.Count(noon, at("2001:db8:1::1"), "shop"))
	check.OK(t, f.Count(noon, at("198.51.100.99"), "shop"))
}

// TestFullMeter: if a meter has no room for another key, new keys are limited together, but not keys
// that were proven. These are limited by their own counts.
//
// Attack (guessing): Filling the failure counters. New keys share counters and are limited
// together. Callers that authenticated before keep their own. Also
// grants.TestProvenInFullMeters.
func TestFullMeter(t *testing.T) {
	s := NewSet(noon, 1)
	l := ratelimit.NewLimit("few", 3, time.Minute)
	m := s.Meter("tests", l, l)
	key := func(i int) ratelimit.Key { return ratelimit.Key{ClientID: fmt.Sprint(i)} }
	proven := key(-1)
	m.Prove(noon, proven)
	for i := range 200 { // far more than eight shared counters admit
		m.Take(noon, key(i))
	}
	for i := range 20 {
		check.Equal(t, "waits of a new key", m.Wait(noon, key(1000+i)) > 0 && m.Take(noon, key(1000+i)) > 0, true)
	}
	check.Equal(t, "wait of a proven key", m.Wait(noon, proven), 0)
	for range 3 {
		check.Equal(t, "wait of a proven key", m.Take(noon, proven), 0)
	}
	check.Equal(t, "waits over its own limit", m.Take(noon, proven) > 0, true)
	check.Equal(t, "wait of a new key later", m.Wait(noon.Add(2*time.Minute), key(2000)), 0)
}

func TestInvalidLimits(t *testing.T) {
	s := NewSet(noon, 1)
	s.Meter("one", ratelimit.NewLimit("x", -1, time.Minute), ratelimit.DefaultLimit())
	s.Failures("two", NewLimits(1, 1, 0))
	check.ErrorSays(t, s.Err(), "limits of one")
	check.ErrorSays(t, s.Err(), "limits of two")
}
