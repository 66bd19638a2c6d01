package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// canonical makes ::ffff:192.0.2.1 and 192.0.2.1 one address.
func canonical(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func (s *Server) trusts(a netip.Addr) bool {
	for _, p := range s.o.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// clientAddr returns the address that sent the request. X-Forwarded-For is read from the right,
// since every proxy appends the peer that it saw: as long as an entry is a trusted proxy, the one
// to its left was written by it and can be believed. The first untrusted address is the client; it
// may have made up everything further left.
func (s *Server) clientAddr(peer netip.Addr, trusted bool, h http.Header) netip.Addr {
	if !trusted {
		return peer
	}
	hops := strings.Split(strings.Join(h["X-Forwarded-For"], ","), ",")
	client := peer
	for i := len(hops) - 1; i >= 0; i-- {
		hop, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			return client
		}
		client = hop
		if !s.trusts(client) {
			return client
		}
	}
	return client
}

// parseHop reads an address; some proxies append its port.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return canonical(a), true
	}
	ap, err := netip.ParseAddrPort(s)
	return canonical(ap.Addr()), err == nil
}
