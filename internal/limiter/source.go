package limiter

import (
	"fmt"
	"net/netip"
)

// SourceOf returns the network of one customer: an IPv4 address, or the /64 of an IPv6 address,
// because a customer usually has a whole /64. An IPv4-mapped IPv6 address counts as IPv4, and zones
// are ignored. All unknown addresses are one source.
func SourceOf(addr netip.Addr) string {
	addr = plain(addr)
	if !addr.Is6() {
		return addr.String() // "invalid IP" if unknown
	}
	return around(addr, 64)
}

// ParseSource returns the source of an address in any form. It also accepts the output of [SourceOf].
// Any other network is an error.
func ParseSource(text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return SourceOf(addr), nil
	}
	if p, err := netip.ParsePrefix(text); err == nil && SourceOf(p.Addr()) == p.Masked().String() {
		return p.Masked().String(), nil
	}
	if unknown := SourceOf(netip.Addr{}); text == unknown {
		return unknown, nil
	}
	return "", fmt.Errorf("%q is neither an address nor the /64 of an IPv6 address", text)
}

// NetworksAround returns the networks that contain a source, widest first: the /48 and the /56 of an IPv6
// address, which often belong to one customer, or the /24 of an IPv4 address.
func NetworksAround(addr netip.Addr) []string {
	switch addr = plain(addr); {
	case addr.Is4():
		return []string{around(addr, 24)}
	case addr.Is6():
		return []string{around(addr, 48), around(addr, 56)}
	}
	return nil
}

// SiteOf returns the /48 of an IPv6 address, the largest network that a customer usually gets, and ""
// for all others.
func SiteOf(addr netip.Addr) string {
	if addr = plain(addr); !addr.Is6() {
		return ""
	}
	return around(addr, 48)
}

func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func around(addr netip.Addr, bits int) string {
	return netip.PrefixFrom(addr, bits).Masked().String()
}
