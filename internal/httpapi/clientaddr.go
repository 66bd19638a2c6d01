package httpapi

import (
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The headers in which proxies name the client, for [Options].TrustedHeader.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
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

// clientAddr returns the address that sent the request. The trusted header is read from its end,
// since every proxy appends the peer that it saw: as long as an entry is a trusted proxy, the one
// before it was written by that proxy and can be believed, up to TrustedHops entries in all. The
// first address that is not trusted, or the last that may be read, is the client; it may have made
// up everything before. An entry that is not an address ends the search. Of the two headers only
// the trusted one is read: most proxies pass the other on as the client sent it.
func (s *Server) clientAddr(c *call, peer netip.Addr, h http.Header) netip.Addr {
	client, left := peer, s.o.TrustedHops
	for _, line := range slices.Backward(h[s.o.TrustedHeader]) {
		for hop := range s.hops(line) {
			if !hop.IsValid() {
				return client
			}
			client = hop
			if left--; !s.trusts(client) {
				return client
			}
			if left == 0 {
				s.warnOfHops(c, client)
				return client
			}
		}
	}
	return client
}

// warnOfHops logs, once, that the search for the client ended at a proxy. All clients of that proxy
// then count as one.
func (s *Server) warnOfHops(c *call, at netip.Addr) {
	s.fewHops.Do(func() {
		s.log.LogAttrs(c.ctx(), slog.LevelWarn,
			"client address is one of trusted_proxies; if requests pass several proxies, raise trusted_hops",
			slog.String("address", at.String()), slog.Int("trusted_hops", s.o.TrustedHops))
	})
}

// hops returns the addresses in a line of the trusted header, from its end. Zero stands for what is
// not an address.
func (s *Server) hops(line string) iter.Seq[netip.Addr] {
	if s.o.TrustedHeader == Forwarded {
		return forwarded(line)
	}
	return xForwardedFor(line)
}

func xForwardedFor(line string) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for {
			comma := strings.LastIndexByte(line, ',')
			if !yield(parseNode(strings.Trim(line[comma+1:], blanks))) || comma < 0 {
				return
			}
			line = line[:comma]
		}
	}
}

// blanks is the optional white space of header fields (RFC 9110 5.6.3).
const blanks = " \t"

// parseNode reads an address (RFC 7239 6), zero if s is none: with or without a port, which may be
// obfuscated, and IPv6 in brackets if there is one. The node may also be unknown or obfuscated.
func parseNode(s string) netip.Addr {
	host, port := s, ""
	inner, bracketed := strings.CutPrefix(s, "[")
	switch {
	case bracketed:
		host, port, bracketed = strings.Cut(inner, "]")
		if !bracketed || !strings.Contains(host, ":") || port != "" && port[0] != ':' {
			return netip.Addr{}
		}
		port = strings.TrimPrefix(port, ":")
	case strings.Count(s, ":") == 1:
		host, port, _ = strings.Cut(s, ":")
	}
	a, err := netip.ParseAddr(host)
	if err != nil || strings.Trim(port, "0123456789") != "" && !strings.HasPrefix(port, "_") {
		return netip.Addr{}
	}
	return canonical(a)
}
