package config

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"oauth-server/internal/ratelimit"
)

// Duration is a time.Duration written without zero parts: 60s, 1m30s, 720h.
type Duration time.Duration

// MarshalText returns the duration as written in a file.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the duration without the zero parts: 1h, not 1h0m0s.
func (d Duration) String() string { return ratelimit.FormatWindow(time.Duration(d)) }

// Std converts it to a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Proxies are the addresses of trusted proxies: not given, the word none, or a list.
type Proxies []Prefix

// none is the value for no trusted proxies.
const none = "none"

// UnmarshalText reads the word none, which may be given without a list.
func (ps *Proxies) UnmarshalText(text []byte) error {
	if string(text) != none {
		return errors.New("must be a list of addresses and ranges, or none")
	}
	*ps = Proxies{{none: true}}
	return nil
}

// Ranges returns the trusted addresses.
func (ps Proxies) Ranges() []netip.Prefix {
	ranges := make([]netip.Prefix, 0, len(ps))
	for _, p := range ps {
		if !p.none {
			ranges = append(ranges, p.Prefix)
		}
	}
	return ranges
}

// Prefix is a range of addresses such as 10.0.0.0/8, a single address, or the word none.
type Prefix struct {
	netip.Prefix
	none bool
}

// MarshalText writes the form that UnmarshalText reads.
func (p Prefix) MarshalText() ([]byte, error) {
	if p.none {
		return []byte(none), nil
	}
	return p.Prefix.MarshalText()
}

// UnmarshalText reads CIDR notation, a single address or none.
func (p *Prefix) UnmarshalText(text []byte) error {
	if string(text) == none {
		*p = Prefix{none: true}
		return nil
	}
	if a, err := netip.ParseAddr(string(text)); err == nil && a.Zone() == "" {
		a = a.Unmap() // as in the address of a connection
		p.Prefix = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	v, err := netip.ParsePrefix(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("%q is not an address or a range such as 10.0.0.0/8", text)
	case v.Addr().Is4In6():
		return fmt.Errorf("%q is an IPv4-mapped range: write it in IPv4, such as 10.0.0.0/8", text)
	case v.Bits() == 0:
		return fmt.Errorf("%q is every address, which lets any caller forge client addresses", text)
	}
	p.Prefix = v.Masked()
	return nil
}
