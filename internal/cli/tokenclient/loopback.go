package tokenclient

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/secret"
)

// Bounds on what the listener takes from a browser.
const (
	maxCallbackSize = 16 << 10
	callbackTimeout = 10 * time.Second
	goodbyeTimeout  = 2 * time.Second
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// errUnexpected marks a request to the listener that is not the expected response. Every process on
// this machine can send one, so the listener keeps waiting.
var errUnexpected = errors.New("not the response to this request")

// errIssuer means that the response comes from another server, as in the mix-up attack of RFC 9207.
var errIssuer = errors.New("the response came from another issuer")

// loopback receives one authorization response (RFC 8252 section 7.3).
type loopback struct {
	host, path string // of the redirect URI
	state      string
	issuer     string
	issuerSent bool // the metadata announces iss in every response
	notify     func(format string, args ...any)
	answer     chan answer // of capacity one: the first answer counts
}

type answer struct {
	code string
	err  error
}

// authorize lets a person sign in at the server, waits for the code, and redeems it.
func (r *run) authorize(ctx context.Context, m *Metadata, config *oauth2.Config) (Token, error) {
	if m.AuthorizationEndpoint == "" {
		return Token{}, errors.New("the server has no authorization endpoint")
	}
	if len(m.ChallengeMethods) > 0 && !slices.Contains(m.ChallengeMethods, "S256") {
		return Token{}, errors.New("the server does not support PKCE with S256")
	}
	// The literal address, because localhost could resolve to something else (RFC 8252 section 8.3).
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.RedirectPort)))
	if err != nil {
		return Token{}, fmt.Errorf("listen for the code: %w", err)
	}
	l := &loopback{
		host: listener.Addr().String(), path: r.RedirectPath, state: secret.New(), issuer: m.Issuer,
		issuerSent: m.SendsIssuer, notify: r.notify, answer: make(chan answer, 1),
	}
	config.RedirectURL = "http://" + l.host + l.path
	verifier := oauth2.GenerateVerifier()
	address := config.AuthCodeURL(l.state, oauth2.S256ChallengeOption(verifier))
	code, err := l.receive(ctx, listener, func() error { return r.Show(ctx, address) })
	if err != nil {
		return Token{}, err
	}
	return r.ask(ctx, func(ctx context.Context) (*oauth2.Token, error) {
		return config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	})
}

// receive shows the sign-in address and waits for the code, until ctx ends. It closes the listener
// after the browser has received its page.
func (l *loopback) receive(ctx context.Context, listener net.Listener, show func() error) (code string, err error) {
	server := &http.Server{Handler: l, ReadTimeout: callbackTimeout, WriteTimeout: callbackTimeout, MaxHeaderBytes: maxCallbackSize}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // an idle connection of the browser is no failure
		}
	}()
	if err := show(); err != nil {
		return "", fmt.Errorf("show the sign-in address: %w", err)
	}
	select {
	case a := <-l.answer:
		return a.code, a.err
	case err := <-served:
		return "", fmt.Errorf("listen for the code: %w", err)
	case <-ctx.Done():
		return "", fmt.Errorf("the sign-in was not finished in time: %w", ctx.Err())
	}
}

// ServeHTTP receives the redirect. Only the exact Host is served, so that no web page can reach the
// listener through a name of its own (DNS rebinding).
func (l *loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host != l.host:
		http.Error(w, "not served under this name", http.StatusMisdirectedRequest)
		return
	case r.URL.Path != l.path:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
		return
	}
	code, err := l.code(r.URL.RawQuery)
	if errors.Is(err, errUnexpected) {
		l.notify("ignored a callback: %v", err)
	} else {
		select {
		case l.answer <- answer{code, err}:
		default:
			err = errors.New("this sign-in is already complete")
		}
	}
	l.writePage(w, err)
}

// code returns the code of an authorization response (RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207
// section 2). It checks the state first: without it the rest may come from anywhere. A repeated
// parameter makes a response invalid (RFC 6749 section 3.1).
func (l *loopback) code(rawQuery string) (string, error) {
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", fmt.Errorf("%w: malformed query", errUnexpected)
	}
	for name, values := range q {
		if len(values) > 1 {
			return "", fmt.Errorf("%w: it has %s %d times", errUnexpected, printable(name), len(values))
		}
	}
	iss := q.Get("iss")
	switch {
	case subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) != 1:
		return "", fmt.Errorf("%w: its state is wrong", errUnexpected)
	case iss != l.issuer && (iss != "" || l.issuerSent):
		return "", fmt.Errorf("%w: iss is %q, not %q", errIssuer, printable(iss), l.issuer)
	case q.Get("error") != "":
		return "", &ServerError{
			Code: printable(q.Get("error")), Description: printable(q.Get("error_description")), URI: printable(q.Get("error_uri")),
		}
	case q.Get("code") == "":
		return "", errors.New("the server sent neither a code nor an error")
	}
	return q.Get("code"), nil
}

// writePage shows whether the sign-in succeeded. The address of the page contains the code, so the
// page loads nothing, runs nothing and sends no Referer.
func (l *loopback) writePage(w http.ResponseWriter, failure error) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	var shown struct {
		Denied  bool   // by the user
		Problem string // empty if the sign-in succeeded
	}
	if failure != nil {
		var refused *ServerError
		shown.Denied = errors.As(failure, &refused) && refused.Code == "access_denied"
		shown.Problem = failure.Error()
		w.WriteHeader(http.StatusBadRequest)
	}
	if err := page.Execute(w, shown); err != nil {
		l.notify("show the result in the browser: %v", err)
	}
}
