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

	"oauth-server/internal/accesslog"
	"oauth-server/internal/gateway/introspection"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenpath"
	"oauth-server/internal/gateway/upstream"
	"oauth-server/internal/grants"
	"oauth-server/internal/judgement"
)

// OnError is what becomes of a request when the gateway itself fails to judge it.
type OnError string

// The values of OnError.
const (
	Allow OnError = "allow" // it passes, which is logged and counted
	Deny  OnError = "deny"  // it is answered with 503
)

// Options configure a [Gateway] and [NewMiddleware]. Judge and ClientAddr are required, and for a Gateway Upstream and
// TokenPaths.
type Options struct {
	// Upstream is the URL of the server behind the gateway: a scheme and a host, without a path. NewMiddleware ignores
	// it, TokenPaths and AnswerWithin.
	Upstream *url.URL
	// TokenPaths are the paths of token endpoints. A segment * stands for any one, a first segment ** for any
	// number.
	TokenPaths []string
	Judge      *judgement.Judge
	// Subjects leads from refresh tokens, and from the usernames of password grants, to users. Nil: a new one.
	Subjects *subject.Memory
	// Shared has what the memory does not have of refresh tokens; its memory is Subjects. Nil: nothing.
	Shared *sharing.Subjects
	// Claim names the user in tokens. Empty: sub.
	Claim string
	// Introspection is where the users of answers that show none are asked for. Nil: nowhere. NewMiddleware and NewJudge
	// ignore it.
	Introspection *introspection.Endpoint
	// OnError is Allow if it is empty.
	OnError OnError
	// AnswerWithin is how long the upstream may take for the answer to a token request. 0: 30 seconds.
	AnswerWithin time.Duration
	// PublicURL is the origin at which clients reach the gateway: a scheme and a host. The upstream sees it as Host and in the
	// forwarded fields, and requests for another host are answered with 421. Nil: every host is served, and the upstream sees
	// its own. NewMiddleware and NewJudge ignore it.
	PublicURL *url.URL
	// ClientAddr returns the address that a request comes from, and whether its peer is a trusted proxy.
	ClientAddr func(*http.Request) (addr netip.Addr, proxied bool)
	// ClientHost returns the host that a client sent a request to. Nil: Host.
	ClientHost func(*http.Request) string
	// LimitedCode is the OAuth error code of a 429. Nil: temporarily_unavailable.
	LimitedCode func() grants.ErrorCode
	Now         func() time.Time // time.Now; of what expires
	Logger      *slog.Logger     // discards
	// Answered is called with what became of each token request, when it has its answer. It must not block. Nil disables
	// it.
	Answered func(context.Context, Result)
	// Exchanged is called after each request to the upstream, with or without an answer. It must not block. Nil disables it.
	// NewMiddleware and NewJudge ignore it.
	Exchanged func(Exchange)
}

// Gateway judges token requests and passes everything on. It is safe for concurrent use.
type Gateway struct {
	o        Options
	paths    []tokenpath.Pattern // of token endpoints
	public   *publicOrigin       // nil: not known
	underWay *underWay
	gone     *atomic.Int64  // requests whose clients have hung up, see lasting
	next     http.Handler   // answers what passes
	tokens   *upstream.Pool // sends token requests to the upstream; nil for a middleware
	// checkAgain is the time between the questions of Check to an upstream that does not answer.
	checkAgain time.Duration
	// writeWithin is how long a client may take to read what is written at once.
	writeWithin time.Duration
	// uploadGrace is how long the body of a request that is no one of tokens may be waited for, see [patience].
	uploadGrace time.Duration
	// discovered takes the path of metadata that a client asks for, while Check waits for one.
	discovered chan string
	// inside is set for a middleware: all paths are of token endpoints, and the server that it is part of names and logs
	// requests as it likes.
	inside bool

	reader *subject.Reader
	key    [32]byte // of what clients show
	counts *counts
	asking *introspections // nil: no users are asked for
}

// patterns returns the paths parsed, or an error that joins all of those that are malformed.
func patterns(paths []string) (all []tokenpath.Pattern, err error) {
	if len(paths) == 0 {
		return nil, errors.New("gateway: a token path is needed, such as /oauth2/token")
	}
	for _, p := range paths {
		parsed, bad := tokenpath.Parse(p)
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("gateway: token path %q: %w", p, bad))
		}
		all = append(all, parsed)
	}
	return all, err
}

// New makes a Gateway before o.Upstream. Its error joins everything that is wrong with the options.
func New(o Options) (*Gateway, error) {
	paths, err := patterns(o.TokenPaths)
	if o.Upstream == nil {
		err = errors.Join(err, errors.New("gateway: an upstream is needed"))
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
		if g.asking, err = newIntrospections(*o.Introspection, g.reader); err != nil {
			return nil, err
		}
	}
	g.next = &httputil.ReverseProxy{
		Rewrite: g.rewrite, Transport: timed{upstream.NewResender(newTransport()), g}, FlushInterval: -1, // streams are passed on as they come
		ErrorHandler: g.unreachable,
		ErrorLog:     slog.NewLogLogger(g.o.Logger.Handler(), slog.LevelDebug),
	}
	return g, nil
}

// NewMiddleware returns what judges the requests to token endpoints of this process in the same way: every path that it
// is put before is one. All of them share what they count. Its error joins everything that is wrong with the options.
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

// newGateway makes a Gateway that lacks what is behind it.
func newGateway(o Options) (*Gateway, error) {
	reader, err := subject.NewReader(o.Claim)
	if o.Judge == nil || o.ClientAddr == nil {
		err = errors.Join(err, errors.New("gateway: a judge and the address of clients are needed"))
	}
	if err != nil {
		return nil, err
	}
	o.OnError = cmp.Or(o.OnError, Allow)
	if o.Subjects == nil {
		o.Subjects = subject.NewMemory(subject.Options{})
	}
	if o.ClientHost == nil {
		o.ClientHost = func(r *http.Request) string { return r.Host }
	}
	if o.LimitedCode == nil {
		o.LimitedCode = func() grants.ErrorCode { return grants.TemporarilyUnavailable }
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
	_, _ = rand.Read(g.key[:]) // which never fails
	return g, nil
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body *upload
	if !g.inside {
		d := g.newDownstream(w, r)
		defer d.end()
		w, body = d, d.upload
	}
	switch {
	case !g.inside && !g.serves(r):
		g.reject(w, r, http.StatusMisdirectedRequest, "The gateway does not serve that host.")
	case !g.inside && r.URL.Opaque != "": // what follows the scheme would be sent as a target with a host of its own
		g.reject(w, r, http.StatusBadRequest, "The target of the request is neither a path nor a URL with a host.")
	case g.isToken(r), g.asksNear(w, r):
		g.token(w, r)
	case !g.inside && (r.Method == http.MethodConnect || r.Method == "PRI"): // of tunnels, and of HTTP/2
		g.reject(w, r, http.StatusMethodNotAllowed, "The gateway does not take that method.")
	default:
		if isMetadata(r.URL.Path) {
			select {
			case g.discovered <- r.URL.Path:
			default: // it is checked
			}
		}
		if body != nil {
			body.ReadCloser = r.Body       // which asksNear may have read a part of
			r = r.WithContext(r.Context()) // the server keeps the one that it made
			r.Body = body
		}
		g.next.ServeHTTP(w, r)
	}
}

// reject answers a request that the gateway passes on to nobody.
func (g *Gateway) reject(w http.ResponseWriter, r *http.Request, status int, description string) {
	x, r := g.begin(w, r)
	x.fail(x.out, r, Refused, status, grants.InvalidRequest, description)
	if g.isToken(r) {
		x.end(r)
	} else {
		x.log(r)
	}
}

// isToken reports whether the upstream may take the request for one of tokens by its path. A request without parameters is
// none, such as the preflight of a browser; some servers take parameters from the query, and with any method.
func (g *Gateway) isToken(r *http.Request) bool {
	// An opaque target, such as a:b://c/token, is sent as b://c/token, in which servers look for a path of their own.
	if len(g.paths) > 0 && r.URL.Opaque == "" && !g.isTokenPath(r.URL) {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return r.ContentLength != 0 || r.URL.RawQuery != ""
	}
	return true
}

// isTokenPath reports whether an upstream may take the path of a URL for that of a token endpoint.
func (g *Gateway) isTokenPath(u *url.URL) bool {
	return slices.ContainsFunc(g.paths, func(p tokenpath.Pattern) bool { return p.MatchURL(u) })
}

// rewrite makes a request one to the upstream.
func (g *Gateway) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(g.o.Upstream)
	if !strings.EqualFold(p.Out.Header.Get("Upgrade"), "websocket") { // with h2c, requests of tokens would go past the gateway
		delete(p.Out.Header, "Upgrade")
		delete(p.Out.Header, "Connection")
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery // also what does not parse
	keepTarget(p.Out.URL, p.In)
	keepTrailer(p.Out, p.In)
	client, proxied := g.o.ClientAddr(p.In)
	g.setOrigin(p.Out, client, proxied)
}

// newTransport returns what carries all but token requests: it changes nothing of what it carries.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http sets it
	t.Proxy = nil                                        // the upstream is what was configured
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
	t.ResponseHeaderTimeout = 30 * time.Second
	t.ForceAttemptHTTP2 = false
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12} // Clone has set one that offers HTTP/2
	return t
}
