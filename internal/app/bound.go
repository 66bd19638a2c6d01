package app

import (
	"container/list"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/metrics"
	"oauth-server/internal/network"
)

const (
	// operatorConnections are kept free for operators, scrapers and health checks; at most half of the files. One source has
	// half of them, which has to be more than an import uses.
	operatorConnections = 128
	// envoyConnections has room for the threads of many Envoys, each of which has one connection.
	envoyConnections = 1024
	// ownFiles is how many files the process has open besides connections.
	ownFiles = 64
	// leastConnections are allowed however few files and little memory there are.
	leastConnections = 16
	// mostConnections are allowed where neither is known.
	mostConnections = 1 << 16
	// connectionMemory is what a connection may cost: its buffers, TLS, and a request with its header and body.
	connectionMemory = 128 << 10
	// upstreamConnections is how many connections to the upstream a gateway may have for each of a client: one of a
	// request of HTTP/1, one of a request of HTTP/2, and one that is kept idle.
	upstreamConnections = 3
	// sourceShare is which share of all connections one source may have.
	sourceShare = 4
)

// bounds are those of the three listeners.
type bounds struct{ clients, operators, envoy *bound }

// newBounds divides the files that the process may open, and the memory that it may use, 0 if either is not known. store
// is how many connections that opens.
func newBounds(cfg *config.Config, files, memory int64, store int, log *slog.Logger) *bounds {
	left, operators := int64(mostConnections), operatorConnections
	if files > 0 {
		operators = int(min(operatorConnections, max(files/2, leastConnections)))
		left = files - ownFiles - int64(operators) - int64(store)
	}
	b := &bounds{operators: &bound{name: "operators", most: operators, perSource: operators / 2, log: log}}
	if cfg.Gateway.EnvoyListen != "" {
		most := max(min(envoyConnections, left/2), leastConnections)
		b.envoy, left = &bound{name: "envoy", most: int(most), perSource: int(most / 2), log: log}, left-most
	}
	if cfg.Gateway.Enabled() && !cfg.Gateway.Judge {
		left /= 1 + upstreamConnections
	}
	if memory > 0 {
		left = min(left, memory/connectionMemory)
	}
	most := int(max(min(left, mostConnections), leastConnections))
	b.clients = &bound{name: "clients", most: most, perSource: max(most/sourceShare, 1), trusted: cfg.TrustedProxies.Ranges(), log: log}
	return b
}

// metrics returns what is open, and what the bounds hold back.
func (b *bounds) metrics() (all []metrics.Connections) {
	for _, one := range []*bound{b.clients, b.operators, b.envoy} {
		if one != nil {
			all = append(all, one.stats())
		}
	}
	return all
}

// bound limits the connections of a listener, and the requests on those of HTTP/2, which carry many: in all, and of one
// source, such that no one takes the room of all others. One more takes the place of the one that has been silent for
// longest: a connection without a request, or a request of which the body has not come in. If there is none, it is
// refused. It is safe for concurrent use.
type bound struct {
	name            string
	most, perSource int            // connections, and as many requests of HTTP/2
	trusted         []netip.Prefix // of proxies: what comes from there is of many sources
	log             *slog.Logger

	mu       sync.Mutex
	all      tally
	sources  map[string]*tally
	excess   time.Time // the last
	refusals metrics.Refusals
}

// kind is what is bounded.
type kind int

const (
	connections kind = iota
	requests         // of HTTP/2
	kinds
)

// tally is what is open of a source, or in all.
type tally [kinds]struct {
	open   int
	silent list.List // of *held, the one that has been silent for longest first
}

// held is what counts until it is released.
type held struct {
	bound  *bound
	kind   kind
	source string
	cut    func() // ends it; it does not wait
	// Guarded by the mutex of the bound:
	released      bool
	inAll, inHere *list.Element // among what is silent; nil: it is not
}

// take counts what comes from an address, and is silent so far; nil: there is too much.
func (b *bound) take(k kind, at netip.Addr, cut func()) *held {
	source, most := network.Source(at), b.perSource
	if slices.ContainsFunc(b.trusted, func(p netip.Prefix) bool { return p.Contains(at) }) {
		most = b.most
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if of := b.sources[source]; of != nil && of[k].open >= most && !b.makeRoom(&of[k].silent, source) {
		b.refusals.Source++
		return nil
	}
	if b.all[k].open >= b.most && !b.makeRoom(&b.all[k].silent, source) {
		b.refusals.Total++
		return nil
	}
	of := b.sources[source]
	if of == nil {
		if b.sources == nil {
			b.sources = map[string]*tally{}
		}
		of = &tally{}
		b.sources[source] = of
	}
	of[k].open++
	b.all[k].open++
	h := &held{bound: b, kind: k, source: source, cut: cut}
	h.rest()
	return h
}

// makeRoom cuts what has been silent for longest; false: nothing is.
func (b *bound) makeRoom(silent *list.List, source string) bool {
	oldest, now := silent.Front(), time.Now()
	if now.Sub(b.excess) >= noteAgainAfter {
		b.log.LogAttrs(context.Background(), slog.LevelWarn, "too many connections or requests at once; ending the most silent ones, or refusing new ones",
			slog.String("listener", b.name), slog.String("source", source), slog.Int("most_of_a_source", b.perSource), slog.Int("most", b.most))
	}
	b.excess = now
	if oldest == nil {
		return false
	}
	h := oldest.Value.(*held) //nolint:forcetypeassert // the list holds nothing else
	h.release()
	h.cut()
	b.refusals.Silent++
	return true
}

// noteAgainAfter is how long there must be no excess before the next one has a line.
const noteAgainAfter = time.Minute

// release takes it from the count. Calls after the first do nothing. The caller holds the mutex, as for rest and wake.
func (h *held) release() {
	if h.released {
		return
	}
	h.wake()
	h.released = true
	of := h.bound.sources[h.source]
	of[h.kind].open--
	h.bound.all[h.kind].open--
	if of[connections].open == 0 && of[requests].open == 0 {
		delete(h.bound.sources, h.source)
	}
}

// rest notes that it is silent from now on.
func (h *held) rest() {
	switch {
	case h.released:
	case h.inAll == nil:
		h.inAll = h.bound.all[h.kind].silent.PushBack(h)
		h.inHere = h.bound.sources[h.source][h.kind].silent.PushBack(h)
	default:
		h.bound.all[h.kind].silent.MoveToBack(h.inAll)
		h.bound.sources[h.source][h.kind].silent.MoveToBack(h.inHere)
	}
}

// wake notes that it is not silent.
func (h *held) wake() {
	if h.inAll != nil {
		h.bound.all[h.kind].silent.Remove(h.inAll)
		h.bound.sources[h.source][h.kind].silent.Remove(h.inHere)
		h.inAll, h.inHere = nil, nil
	}
}

// locked calls f, one of the methods above, with the mutex.
func (h *held) locked(f func(*held)) {
	h.bound.mu.Lock()
	defer h.bound.mu.Unlock()
	f(h)
}

// listener returns l with its connections bounded.
func (b *bound) listener(l net.Listener) net.Listener { return &boundListener{l, b} }

type boundListener struct {
	net.Listener
	bound *bound
}

// Accept implements [net.Listener].
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at, _ := netip.ParseAddrPort(c.RemoteAddr().String())                                      // a Unix socket has none
		if h := l.bound.take(connections, at.Addr().Unmap(), func() { _ = c.Close() }); h != nil { // its server notices
			return &heldConn{c, h}, nil
		}
		_ = c.Close() // it is refused
	}
}

// heldConn is a connection that counts until it is closed.
type heldConn struct {
	net.Conn
	held *held
}

// Close implements [net.Conn].
func (c *heldConn) Close() error {
	c.held.locked((*held).release)
	return c.Conn.Close()
}

// SyscallConn implements [syscall.Conn].
func (c *heldConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, syscall.ENOTSUP
}

// CloseWrite is what net/http calls before it closes a connection with something unread on it.
func (c *heldConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// heldOf returns what counts for a connection, beneath TLS and others; nil: it is not bounded.
func heldOf(c net.Conn) *held {
	for {
		switch at := c.(type) {
		case *heldConn:
			return at.held
		case interface{ NetConn() net.Conn }:
			c = at.NetConn()
		default:
			return nil
		}
	}
}

// trackSilence takes the state of a connection from [http.Server].ConnState.
func trackSilence(c net.Conn, state http.ConnState) {
	h := heldOf(c)
	switch {
	case h == nil:
	case state == http.StateIdle:
		h.locked((*held).rest)
	case state == http.StateActive || state == http.StateHijacked:
		h.locked((*held).wake)
	}
}

type heldKey struct{}

// withHeld is a [http.Server].ConnContext.
func withHeld(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, heldKey{}, heldOf(c))
}

// around bounds requests: those of HTTP/2 beyond the bound are refused with 503, and one of which the body does not come in
// is silent, or its connection is with HTTP/1.
func (b *bound) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hasBody := r.Body != nil && r.Body != http.NoBody
		h, _ := r.Context().Value(heldKey{}).(*held) // that of the connection
		if r.ProtoMajor >= 2 {
			stream := http.NewResponseController(w)
			h = b.take(requests, accesslog.Peer(r), func() { _ = stream.SetReadDeadline(time.Unix(1, 0)) }) //nolint:contextcheck // the line in the log is about no single request
			if h == nil {
				w.Header().Set("Retry-After", "1")
				_ = httpapi.WriteError(w, r.Header.Get("Origin"), http.StatusServiceUnavailable, grants.TemporarilyUnavailable, "Too many requests at once.") // it may be gone
				return
			}
			defer h.locked((*held).release)
			if !hasBody {
				h.locked((*held).wake)
			}
		}
		if hasBody && h != nil {
			h.locked((*held).rest)
			r = r.WithContext(r.Context()) // which leaves the body to the server in the request that it made
			r.Body = &silentBody{r.Body, h}
		}
		next.ServeHTTP(w, r)
	})
}

// silentBody is a body that is silent until it ends.
type silentBody struct {
	io.ReadCloser
	held *held
}

// Read implements [io.Reader].
func (s *silentBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil {
		s.held.locked((*held).wake)
	} else {
		s.held.locked((*held).rest)
	}
	return n, err
}

// stats returns what is open, and what was refused.
func (b *bound) stats() metrics.Connections {
	b.mu.Lock()
	defer b.mu.Unlock()
	return metrics.Connections{Listener: b.name, Open: b.all[connections].open, Requests: b.all[requests].open, Most: b.most, Refusals: b.refusals}
}
