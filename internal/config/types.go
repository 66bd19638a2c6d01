package config

import (
	"fmt"
	"net/netip"
	"time"

	"oauth-server/internal/ratelimit"
)

// Duration is a time.Duration that is written without zero parts: 60s, 1m30s, 720h.
type Duration time.Duration

// MarshalText writes it as in a file.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the duration without the zero parts: 1h, not 1h0m0s.
func (d Duration) String() string { return ratelimit.FormatWindow(time.Duration(d)) }

// Std converts it to a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Prefix is a range of addresses such as 10.0.0.0/8, or a single address.
type Prefix struct{ netip.Prefix }

// UnmarshalText reads CIDR notation or a single address.
func (p *Prefix) UnmarshalText(text []byte) error {
	if a, err := netip.ParseAddr(string(text)); err == nil && a.Zone() == "" {
		p.Prefix = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	v, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an address or a range such as 10.0.0.0/8", text)
	}
	p.Prefix = v.Masked()
	return nil
}
