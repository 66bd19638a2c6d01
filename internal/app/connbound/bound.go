package connbound

import (
	"container/ring"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/config"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/observe/metrics"
)

const (
	// operatorConnections are reserved for operators, scrapers and health checks, but at most half
	// of the files. One source gets half of them, which must be more than an import uses.
	operatorConnections = 128
	// envoyConnections fits the threads of many Envoys. Each thread opens one connection.
	envoyConnections = 1024
	// ownFiles is the number of open files of the process, not counting connections.
	ownFiles = 64
	// leastConnections is the minimum, however few files and little memory there are.
	leastConnections = 16
	// mostConnections is the maximum if neither files nor memory are known.
	mostConnections = 1 << 16
	// connectionMemory is the maximum memory of a connection: its buffers, TLS, and a request with
	// header and body.
	connectionMemory = 128 << 10
	// upstreamConnections is the number of upstream connections that a gateway may need for each
	// client connection: one for an HTTP/1 request, one for an HTTP/2 request, and one idle
	// connection.
	upstreamConnections = 3
	// One source may have 1/sourceShare of all connections.
	sourceShare = 4
)

// Bounds holds the bounds of the three listeners.
type Bounds struct{ Clients, Operators, Envoy *Bound }

// New divides the files that the process may open and the memory that it may use between the
// listeners. Zero means unknown. store is the number of connections of the store.
func New(cfg *config.Config, files, memory int64, store int, log *slog.Logger) *Bounds {
	left, operators := int64(mostConnections), operatorConnections
	if files > 0 {
		operators = int(min(operatorConnections, max(files/2, leastConnections)))
		left = files - ownFiles - int64(operators) - int64(store)
	}
	b := &Bounds{Operators: &Bound{name: "operators", most: operators, perSource: operators / 2, log: log}}
	if cfg.Gateway.EnvoyListen != "" {
		most := max(min(envoyConnections, left/2), leastConnections)
		b.Envoy, left = &Bound{name: "envoy", most: int(most), perSource: int(most / 2), log: log}, left-most
	}
	if cfg.Gateway.Enabled() && !cfg.Gateway.Judge {
		left /= 1 + upstreamConnections
	}
	if memory > 0 {
		left = min(left, memory/connectionMemory)
	}
	most := int(max(min(left, mostConnections), leastConnections))
	b.Clients = &Bound{name: "clients", most: most, perSource: max(most/sourceShare, 1), trusted: cfg.TrustedProxies.Ranges(), log: log}
	return b
}

// Stats returns the open connections and the refusals of all listeners.
func (b *Bounds) Stats() (all []metrics.Connections) {
	for _, one := range []*Bound{b.Clients, b.Operators, b.Envoy} {
		if one != nil {
			all = append(all, one.stats())
		}
	}
	return all
}

// Bound limits the connections of a listener, and the requests on its HTTP/2 connections, which
// carry many. It limits them in total and per source, so one source cannot use up the room of all
// others. At the limit, a new entry replaces the one that has been silent longest: a connection
// without a request, or a request with an incomplete body. If no entry is silent, the new one is
// refused. A Bound is safe for concurrent use.
type Bound struct {
	name            string
	most, perSource int            // of connections, and also of HTTP/2 requests
	trusted         []netip.Prefix // of proxies: their connections carry many sources
	log             *slog.Logger

	mu       sync.Mutex
	all      tally
	sources  map[string]*tally
	excess   time.Time // time of the last refusal or cut
	refusals metrics.Refusals
}

// kind is the kind of an entry.
type kind int

const (
	connections kind = iota
	requests         // HTTP/2 requests
	kinds
)

// tally counts the open entries of a source, or of all sources.
type tally [kinds]struct {
	open   int
	silent ring.Ring // its beginning; the others have a *held, the longest silent first
}

// held is an entry that counts until it is released.
type held struct {
	bound  *Bound
	kind   kind
	source string
	cut    func() // ends it without blocking
	// Guarded by the mutex of the bound:
	released, silent bool
	inAll, inHere    ring.Ring // elements of the silent rings
}

// take adds an entry for an address, initially silent. It returns nil at the limit.
func (b *Bound) take(k kind, at netip.Addr, cut func()) *held {
	source, most := limiter.SourceOf(at), b.perSource
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
	h.inAll.Value, h.inHere.Value = h, h
	h.rest()
	return h
}

// makeRoom cuts the entry that has been silent longest. It reports false if no entry is silent.
func (b *Bound) makeRoom(silent *ring.Ring, source string) bool {
	oldest, now := silent.Next(), time.Now()
	if now.Sub(b.excess) >= noteAgainAfter {
		b.log.LogAttrs(context.Background(), slog.LevelWarn, "too many connections or requests; closing the idlest, or refusing new ones",
			slog.String("listener", b.name), slog.String("source", source), slog.Int("most_of_a_source", b.perSource), slog.Int("most", b.most))
	}
	b.excess = now
	if oldest == silent {
		return false
	}
	h := oldest.Value.(*held) //nolint:forcetypeassert // the ring holds nothing else
	h.release()
	h.cut()
	b.refusals.Silent++
	return true
}

// noteAgainAfter is the time without excess after which the next one is logged again.
const noteAgainAfter = time.Minute

// release removes the entry from the counts. Further calls do nothing. The caller holds the mutex,
// as for rest and wake.
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

// rest marks the entry as silent from now on.
func (h *held) rest() {
	if h.released {
		return
	}
	h.wake()
	h.silent = true
	h.bound.all[h.kind].silent.Prev().Link(&h.inAll)
	h.bound.sources[h.source][h.kind].silent.Prev().Link(&h.inHere)
}

// wake marks the entry as not silent.
func (h *held) wake() {
	if h.silent {
		h.inAll.Prev().Unlink(1)
		h.inHere.Prev().Unlink(1)
		h.silent = false
	}
}

// locked calls f, one of the methods above, with the mutex held.
func (h *held) locked(f func(*held)) {
	h.bound.mu.Lock()
	defer h.bound.mu.Unlock()
	f(h)
}

// Listener returns l with its connections bounded.
func (b *Bound) Listener(l net.Listener) net.Listener { return &boundListener{l, b} }

type boundListener struct {
	net.Listener
	bound *Bound
}

// Accept implements [net.Listener].
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		at, _ := netip.ParseAddrPort(c.RemoteAddr().String())                                      // a Unix socket has no address
		if h := l.bound.take(connections, at.Addr().Unmap(), func() { _ = c.Close() }); h != nil { // its server notices
			return &heldConn{c, h}, nil
		}
		_ = c.Close() // refused
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

// NetConn returns the underlying connection, like the method of [crypto/tls.Conn].
func (c *heldConn) NetConn() net.Conn { return c.Conn }

// CloseWrite implements the method that net/http calls before it closes a connection with unread
// data.
func (c *heldConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// heldOf returns the entry of a connection, which may be below TLS and other wrappers. It returns
// nil if the connection is not bounded.
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

// TrackSilence records the state of a connection. It is called from [http.Server].ConnState.
func TrackSilence(c net.Conn, state http.ConnState) {
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

// WithHeld is an [http.Server].ConnContext.
func WithHeld(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, heldKey{}, heldOf(c))
}

// Around limits requests. HTTP/2 requests over the limit get 503. While a body is incomplete, its
// HTTP/2 request, or its HTTP/1 connection, is silent.
func (b *Bound) Around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hasBody := r.Body != nil && r.Body != http.NoBody
		h, _ := r.Context().Value(heldKey{}).(*held) // the entry of the connection
		if r.ProtoMajor >= 2 {
			stream := http.NewResponseController(w)
			h = b.take(requests, accesslog.Peer(r), func() { _ = stream.SetReadDeadline(time.Unix(1, 0)) })
			if h == nil {
				w.Header().Set("Retry-After", "1")
				answer := oautherr.NewAnswer(http.StatusServiceUnavailable, oautherr.TemporarilyUnavailable, "Too many requests at once.")
				_ = answer.Write(w, r.Header.Get("Origin")) // the client may be gone
				return
			}
			defer h.locked((*held).release)
			if !hasBody {
				h.locked((*held).wake)
			}
		}
		if hasBody && h != nil {
			h.locked((*held).rest)
			r = r.WithContext(r.Context()) // the server keeps the body in its own request
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

// stats returns the open entries and the refusals.
func (b *Bound) stats() metrics.Connections {
	b.mu.Lock()
	defer b.mu.Unlock()
	return metrics.Connections{Listener: b.name, Open: b.all[connections].open, Requests: b.all[requests].open, Most: b.most, Refusals: b.refusals}
}
