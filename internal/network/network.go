// Package network names where requests come from, for everything that counts by address.
package network

import (
	"fmt"
	"net/netip"
)

// Source returns what stands for one customer: an IPv4 address, or the /64 of an IPv6 address, because one
// customer usually has all of it. An IPv4 address in IPv6 form is that IPv4 address; zones do not count.
// All unknown addresses are one source.
func Source(addr netip.Addr) string {
	addr = plain(addr)
	if !addr.Is6() {
		return addr.String() // "invalid IP" if it is unknown
	}
	return around(addr, 64)
}

// ParseSource returns the source of an address in any form. It takes what [Source] returns, too; any other
// network is an error.
func ParseSource(text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return Source(addr), nil
	}
	if p, err := netip.ParsePrefix(text); err == nil && Source(p.Addr()) == p.Masked().String() {
		return p.Masked().String(), nil
	}
	if unknown := Source(netip.Addr{}); text == unknown {
		return unknown, nil
	}
	return "", fmt.Errorf("%q is neither an address nor the /64 of an IPv6 address", text)
}

// Around returns the networks that a source is in, the widest first: the /48 and the /56 of an IPv6
// address, which many customers have alone, or the /24 of an IPv4 address.
func Around(addr netip.Addr) []string {
	switch addr = plain(addr); {
	case addr.Is4():
		return []string{around(addr, 24)}
	case addr.Is6():
		return []string{around(addr, 48), around(addr, 56)}
	}
	return nil
}

// Site returns the /48 of an IPv6 address, the largest network that one customer usually gets, and "" for
// all others.
func Site(addr netip.Addr) string {
	if addr = plain(addr); !addr.Is6() {
		return ""
	}
	return around(addr, 48)
}

func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func around(addr netip.Addr, bits int) string {
	return netip.PrefixFrom(addr, bits).Masked().String()
}
