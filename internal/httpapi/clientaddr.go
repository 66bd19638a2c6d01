package httpapi

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"oauth-server/internal/accesslog"
)

// The headers in which proxies name the client, for [Options].TrustedHeader.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
)

// canonical makes ::ffff:192.0.2.1 and 192.0.2.1 one address.
func canonical(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Addresses finds out which address a request comes from.
type Addresses struct {
	TrustedProxies []netip.Prefix // [Options].TrustedProxies
	TrustedHeader  string         // [Options].TrustedHeader
	TrustedHops    int            // [Options].TrustedHops
	Logger         *slog.Logger

	fewHops sync.Once
}

// Of returns the address that sent the request, and whether its peer is a trusted proxy.
func (a *Addresses) Of(r *http.Request) (client netip.Addr, proxied bool) {
	peer := accesslog.Peer(r)
	if !a.trusts(peer) {
		return peer, false
	}
	return a.clientAddr(r.Context(), peer, r.Header), true
}

func (a *Addresses) trusts(at netip.Addr) bool {
	for _, p := range a.TrustedProxies {
		if p.Contains(at) {
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
func (a *Addresses) clientAddr(ctx context.Context, peer netip.Addr, h http.Header) netip.Addr {
	client, left := peer, a.TrustedHops
	for _, line := range slices.Backward(h[a.TrustedHeader]) {
		for hop := range a.hops(line) {
			if !hop.IsValid() {
				return client
			}
			client = hop
			if left--; !a.trusts(client) {
				return client
			}
			if left == 0 {
				a.warnOfHops(ctx, client)
				return client
			}
		}
	}
	return client
}

// warnOfHops logs, once, that the search for the client ended at a proxy. All clients of that proxy
// then count as one.
func (a *Addresses) warnOfHops(ctx context.Context, at netip.Addr) {
	a.fewHops.Do(func() {
		a.Logger.LogAttrs(ctx, slog.LevelWarn,
			"client address is one of trusted_proxies; if requests pass several proxies, raise trusted_hops",
			slog.String("address", at.String()), slog.Int("trusted_hops", a.TrustedHops))
	})
}

// hops returns the addresses in a line of the trusted header, from its end. Zero stands for what is
// not an address.
func (a *Addresses) hops(line string) iter.Seq[netip.Addr] {
	if a.TrustedHeader == Forwarded {
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
