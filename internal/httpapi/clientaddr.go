package httpapi

import (
	"cmp"
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
	client, _, _ = a.clientAddr(r.Context(), peer, r.Header)
	return client, true
}

// Host returns the host that the client sent the request to: as the trusted proxy nearest to the
// client names it, in X-Forwarded-Host or as host in Forwarded, or otherwise that of the request.
func (a *Addresses) Host(r *http.Request) string {
	peer := accesslog.Peer(r)
	if !a.trusts(peer) {
		return r.Host
	}
	_, read, host := a.clientAddr(r.Context(), peer, r.Header)
	if hosts := r.Header["X-Forwarded-Host"]; len(hosts) > 0 && a.TrustedHeader != Forwarded {
		all := strings.Split(strings.Join(hosts, ","), ",")
		host = strings.Trim(all[max(0, len(all)-max(1, read))], blanks)
	}
	return cmp.Or(host, r.Host)
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
// the trusted one is read: most proxies pass the other on as the client sent it. It also returns how
// many entries it has read, each of which a trusted proxy wrote, and the host in the last that has one.
func (a *Addresses) clientAddr(ctx context.Context, peer netip.Addr, h http.Header) (client netip.Addr, read int, host string) {
	client = peer
	for _, line := range slices.Backward(h[a.TrustedHeader]) {
		for hop := range a.hops(line) {
			read++
			host = cmp.Or(hop.host, host)
			if !hop.node.IsValid() {
				return client, read, host
			}
			client = hop.node
			if !a.trusts(client) {
				return client, read, host
			}
			if read == a.TrustedHops {
				a.warnOfHops(ctx, client)
				return client, read, host
			}
		}
	}
	return client, read, host
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

// hops returns the entries in a line of the trusted header, from its end.
func (a *Addresses) hops(line string) iter.Seq[element] {
	if a.TrustedHeader == Forwarded {
		return forwarded(line)
	}
	return xForwardedFor(line)
}

func xForwardedFor(line string) iter.Seq[element] {
	return func(yield func(element) bool) {
		for {
			comma := strings.LastIndexByte(line, ',')
			if !yield(element{node: parseNode(strings.Trim(line[comma+1:], blanks))}) || comma < 0 {
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
