package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/gateway/upstream"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
)

// OnError says what happens to a request if the gateway itself fails to check it.
type OnError string

// The values of OnError.
const (
	Allow OnError = "allow" // the request passes; this is logged and counted
	Deny  OnError = "deny"  // the request gets 503
)

// Options configure a [Gateway] and [NewMiddleware]. Limiter and ClientAddr are required. A Gateway
// also requires Upstream and TokenPaths.
type Options struct {
	// Upstream is the URL of the server behind the gateway: a scheme and a host, without a path.
	// NewMiddleware ignores Upstream, TokenPaths and AnswerWithin.
	Upstream *url.URL
	// TokenPaths are the paths of token endpoints. A * matches any one segment. A leading **
	// matches any number of segments.
	TokenPaths []string
	Limiter    *limiter.Limiter
	// Subjects maps refresh tokens, and usernames of password grants, to users. Nil: a new one.
	Subjects *subject.Memory
	// Shared holds refresh tokens that are missing in the memory, and puts those that it finds into
	// Subjects. Nil: refresh tokens are not shared.
	Shared Shared
	// Claim is the name of the claim that holds the user. Empty: sub.
	Claim string
	// Introspection finds the user if an answer shows none. Nil: no introspection. NewMiddleware
	// and NewDecider ignore it.
	Introspection Introspection
	// OnError defaults to Allow.
	OnError OnError
	// AnswerWithin bounds the time that the upstream takes to answer a token request. 0: 30
	// seconds.
	AnswerWithin time.Duration
	// PublicURL is the origin at which clients reach the gateway: a scheme and a host. The upstream
	// gets it as Host and in the forwarded fields, and requests for another host get 421. Nil: the
	// gateway serves every host and sends the upstream its own host. NewMiddleware and NewDecider
	// ignore it.
	PublicURL *url.URL
	// ClientAddr returns the client address of a request, and whether the peer is a trusted proxy.
	ClientAddr func(*http.Request) (addr netip.Addr, proxied bool)
	// ClientHost returns the host that a client sent a request to. Nil: Request.Host.
	ClientHost func(*http.Request) string
	// LimitedCode returns the OAuth error code of a 429. Nil: temporarily_unavailable.
	LimitedCode func() oautherr.Code
	Now         func() time.Time // the clock for expiry; nil: time.Now
	Logger      *slog.Logger     // nil: discards
	// Answered is called with the result of each token request, after its answer. It must not
	// block. Nil disables it.
	Answered func(context.Context, Result)
	// Exchanged is called after each request to the upstream, answered or not. It must not block.
	// Nil disables it. NewMiddleware and NewDecider ignore it.
	Exchanged func(Exchange)
}

// Shared shares the users of refresh tokens with other instances. Package sharing implements it.
type Shared interface {
	// Find returns the user of a token. It may read a store. source is the address of the requester.
	Find(ctx context.Context, now time.Time, token subject.Digest, clientID, source string) (user string, known bool)
	// Put shares the user of a token until it expires. It never blocks.
	Put(now time.Time, token subject.Digest, clientID, user string, expires time.Time)
	// FlushNow waits a moment until all tokens are shared.
	FlushNow(ctx context.Context)
}

// unshared is the Shared of a gateway that shares nothing.
type unshared struct{}

// Find finds nothing.
func (unshared) Find(context.Context, time.Time, subject.Digest, string, string) (user string, known bool) {
	return "", false
}

// Put does nothing.
func (unshared) Put(time.Time, subject.Digest, string, string, time.Time) {}

// FlushNow does nothing.
func (unshared) FlushNow(context.Context) {}

// Introspection returns the user of an access token, or the reason why the user is unknown. Package
// introspection implements it.
type Introspection interface {
	User(ctx context.Context, accessToken string) (user string, reason subject.Reason, err error)
}

// Gateway checks token requests against the limits and passes everything else. It is safe for
// concurrent use.
type Gateway struct {
	o        Options
	paths    []tokenrequest.PathPattern // of token endpoints
	public   *publicOrigin              // nil: unknown
	underWay *underWay
	gone     *atomic.Int64  // requests that continue after their client hung up, see outlives
	next     http.Handler   // of a middleware, handles requests that pass; otherwise all but token requests
	tokens   *upstream.Pool // sends token requests to the upstream; nil for a middleware
	// checkAgain is the retry interval of Check while the upstream does not answer.
	checkAgain time.Duration
	// writeWithin bounds each write to a client.
	writeWithin time.Duration
	// uploadGrace is the time that the body of a request that is not a token request may be waited
	// for, see [patience].
	uploadGrace time.Duration
	// discovered receives the path of metadata that a client requests, while Check waits for one.
	discovered chan string
	// inside is set for a middleware: every path is a token endpoint, and the surrounding server
	// assigns request IDs and logs requests.
	inside bool

	reader *subject.Reader
	key    [32]byte // key for the IDs of credentials
	counts *counts
	asking *introspections // nil: no introspection
}

// patterns parses the paths. Its error joins the errors of all malformed paths.
func patterns(paths []string) (all []tokenrequest.PathPattern, err error) {
	if len(paths) == 0 {
		return nil, errors.New("gateway: no token path, such as /oauth2/token")
	}
	for _, p := range paths {
		parsed, bad := tokenrequest.ParsePath(p)
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("gateway: token path %q: %w", p, bad))
		}
		all = append(all, parsed)
	}
	return all, err
}

// New returns a Gateway in front of o.Upstream. Its error joins all invalid options.
func New(o Options) (*Gateway, error) {
	paths, err := patterns(o.TokenPaths)
	if o.Upstream == nil {
		err = errors.Join(err, errors.New("gateway: no upstream"))
	}
	g, bad := newGateway(o)
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	g.o.Logger = slog.New(accesslog.WithRequestID(g.o.Logger.Handler()))
	g.paths, g.checkAgain, g.writeWithin, g.uploadGrace, g.discovered = paths, checkAgainAfter, writeTimeout, uploadGrace, make(chan string)
	g.public = newPublicOrigin(o.PublicURL)
	g.tokens = upstream.New(o.Upstream, upstream.Options{AnswerWithin: o.AnswerWithin})
	if o.Introspection != nil {
		g.asking = newIntrospections(o.Introspection)
	}
	g.next = &httputil.ReverseProxy{
		Rewrite: g.rewrite, Transport: timed{upstream.NewResender(newTransport()), g}, FlushInterval: -1, // streams are forwarded as they arrive
		ErrorHandler: g.unreachable,
		ErrorLog:     slog.NewLogLogger(g.o.Logger.Handler(), slog.LevelDebug),
	}
	return g, nil
}

// NewMiddleware returns a middleware that limits token endpoints of this process in the same way.
// It treats every path that it wraps as a token endpoint. All handlers that it wraps share their
// counts. Its error joins all invalid options.
func NewMiddleware(o Options) (func(next http.Handler) http.Handler, error) {
	g, err := newGateway(o)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		before := *g
		before.next, before.inside = next, true
		return &before
	}, nil
}

// newGateway returns a Gateway without the handler behind it.
func newGateway(o Options) (*Gateway, error) {
	reader, err := subject.NewReader(o.Claim)
	if o.Limiter == nil || o.ClientAddr == nil {
		err = errors.Join(err, errors.New("gateway: Limiter and ClientAddress are required"))
	}
	if err != nil {
		return nil, err
	}
	o.OnError = cmp.Or(o.OnError, Allow)
	if o.Subjects == nil {
		o.Subjects = subject.NewMemory(0)
	}
	if o.Shared == nil {
		o.Shared = unshared{}
	}
	if o.ClientHost == nil {
		o.ClientHost = func(r *http.Request) string { return r.Host }
	}
	if o.LimitedCode == nil {
		o.LimitedCode = func() oautherr.Code { return oautherr.TemporarilyUnavailable }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Answered == nil {
		o.Answered = func(context.Context, Result) {}
	}
	if o.Exchanged == nil {
		o.Exchanged = func(Exchange) {}
	}
	g := &Gateway{o: o, underWay: newUnderWay(), gone: new(atomic.Int64), reader: reader, counts: &counts{unknown: make([]atomic.Uint64, len(subject.Reasons())+1)}}
	_, _ = rand.Read(g.key[:]) // never fails
	return g, nil
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var d *downstream
	if !g.inside {
		d = g.newDownstream(w, r)
		defer d.end()
		w = d
	}
	switch {
	case !g.inside && !g.serves(r):
		g.reject(w, r, http.StatusMisdirectedRequest, "The gateway does not serve this host.")
	case !g.inside && r.URL.Opaque != "": // the rest after the scheme would be sent as a target with a host of its own
		g.reject(w, r, http.StatusBadRequest, "The request target must be a path or a URL with a host.")
	case !g.inside && strings.Contains(r.RequestURI, " "): // of HTTP/2; the upstream would read another request line
		g.reject(w, r, http.StatusBadRequest, "The request target must not contain a space.")
	case g.isToken(r), g.asksNear(w, r):
		g.token(w, r)
	case !g.inside && (r.Method == http.MethodConnect || r.Method == "PRI"): // a tunnel, or the HTTP/2 preface
		g.reject(w, r, http.StatusMethodNotAllowed, "The gateway does not support this method.")
	default:
		if isMetadata(r.URL.Path) {
			select {
			case g.discovered <- r.URL.Path:
			default: // Check has finished
			}
		}
		if d != nil {
			r = r.WithContext(r.Context()) // the server keeps its own request
			d.upload = g.bound(d.control, r)
		}
		g.next.ServeHTTP(w, r)
	}
}

// reject answers a request that the gateway does not forward.
func (g *Gateway) reject(w http.ResponseWriter, r *http.Request, status int, description string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.uploadGrace)) // for the body, which the server reads; fails only in tests
	x, r := g.begin(w, r)
	x.fail(x.out, r, Refused, status, oautherr.InvalidRequest, description)
	if g.isToken(r) {
		x.end(r)
	} else {
		x.log(r)
	}
}

// isToken reports whether the upstream may treat the request as a token request because of its
// path. A request without parameters, such as a browser's preflight, is not a token request. Any
// method counts, and the query counts, because some servers read parameters from the query.
func (g *Gateway) isToken(r *http.Request) bool {
	// An opaque target such as a:b://c/token is sent as b://c/token, and servers take the path from
	// that.
	if len(g.paths) > 0 && r.URL.Opaque == "" && !g.isTokenPath(r.URL) {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return r.ContentLength != 0 || r.URL.RawQuery != ""
	}
	return true
}

// isTokenPath reports whether an upstream may treat the path of a URL as a token endpoint.
func (g *Gateway) isTokenPath(u *url.URL) bool {
	return slices.ContainsFunc(g.paths, func(p tokenrequest.PathPattern) bool { return p.MatchURL(u) })
}

// rewrite turns a client's request into a request to the upstream.
func (g *Gateway) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(g.o.Upstream)
	if !strings.EqualFold(p.Out.Header.Get("Upgrade"), "websocket") { // h2c would let token requests bypass the gateway
		delete(p.Out.Header, "Upgrade")
		delete(p.Out.Header, "Connection")
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery // also a query that does not parse
	keepTarget(p.Out.URL, p.In)
	keepTrailer(p.Out, p.In)
	client, proxied := g.o.ClientAddr(p.In)
	p.Out.Host = g.setOrigin(p.Out.Header, client, proxied)
}

// newTransport returns the transport for all requests except token requests. It does not change
// them.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http sets it
	t.Proxy = nil                                        // connect to the configured upstream directly
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
	t.ResponseHeaderTimeout = 30 * time.Second
	t.ForceAttemptHTTP2 = false
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12} // Clone has set a config that offers HTTP/2
	return t
}
