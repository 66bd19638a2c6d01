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

	"oauth-server/internal/observe/accesslog"
)

// The headers that proxies use for the client address.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
)

// canonical maps ::ffff:192.0.2.1 to 192.0.2.1.
func canonical(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Addresses determines the client address of requests. The zero value trusts no proxy.
type Addresses struct {
	TrustedProxies []netip.Prefix // peers with a trusted TrustedHeader and X-Request-Id
	// TrustedHeader is the header in those proxies' requests that contains the client address:
	// [XForwardedFor] or [Forwarded]. The proxies must overwrite it or append to it. The other header
	// is never read.
	TrustedHeader string
	// TrustedHops is the maximum number of entries that are read from the end of that header: the
	// number of trusted proxies in a row.
	TrustedHops int
	Logger      *slog.Logger

	fewHops sync.Once
}

// Of returns the address of the client, and whether the peer is a trusted proxy.
func (a *Addresses) Of(r *http.Request) (client netip.Addr, proxied bool) {
	peer := accesslog.Peer(r)
	if !a.trusts(peer) {
		return peer, false
	}
	client, _, _ = a.clientAddr(r.Context(), peer, r.Header)
	return client, true
}

// Host returns the host that the client sent the request to. If the peer is a trusted proxy, this
// is the host from the trusted proxy nearest to the client, in X-Forwarded-Host or as host in
// Forwarded. Otherwise it is the host of the request.
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

// clientAddr returns the address of the client. It reads the trusted header from its end, because
// every proxy appends the peer that it saw. If an entry is a trusted proxy, that proxy wrote the
// entry before it, so that entry can be trusted too, up to TrustedHops entries. The first untrusted
// address, or the last entry that may be read, is the client. The client may have forged everything
// before it. An entry that is not an address ends the search. Only the trusted header is read,
// because most proxies pass the other one on as the client sent it. clientAddr also returns the
// number of entries read, each written by a trusted proxy, and the host in the last entry that has
// one.
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
			"client address is in trusted_proxies; if requests pass several proxies, raise trusted_hops",
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

// parseNode parses an address (RFC 7239 6). The address may have a port, which may be obfuscated,
// and an IPv6 address with a port is in brackets. parseNode returns zero for an invalid, unknown or
// obfuscated node.
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
