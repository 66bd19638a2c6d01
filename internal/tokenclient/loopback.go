package tokenclient

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strconv"
	"time"
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

// loopback waits for one authorization response on a loopback address
// (RFC 8252 section 7.3).
type loopback struct {
	listener net.Listener
	path     string
	want     expectation
	notify   func(format string, args ...any)
	answer   chan answer // of capacity one: the first answer counts
}

type answer struct {
	code string
	err  error
}

// listenLoopback opens 127.0.0.1, the literal rather than localhost, which
// could resolve to something else (RFC 8252 section 8.3).
func listenLoopback(ctx context.Context, port int, path string, want expectation, notify func(string, ...any)) (*loopback, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the code: %w", err)
	}
	return &loopback{listener: listener, path: path, want: want, notify: notify, answer: make(chan answer, 1)}, nil
}

func (l *loopback) redirectURI() string { return "http://" + l.listener.Addr().String() + l.path }

// receive shows the sign-in address and waits for the code, until ctx ends. It closes the listener.
func (l *loopback) receive(ctx context.Context, show func() error) (code string, err error) {
	server := &http.Server{
		Handler:        l,
		ReadTimeout:    callbackTimeout,
		WriteTimeout:   callbackTimeout,
		MaxHeaderBytes: maxCallbackSize,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l.listener) }()
	defer func() { err = errors.Join(err, stop(ctx, server, served)) }()
	if err := show(); err != nil {
		return "", fmt.Errorf("show the sign-in address: %w", err)
	}
	select {
	case a := <-l.answer:
		return a.code, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("the sign-in was not finished in time: %w", ctx.Err())
	}
}

// stop waits until the browser has received its page, then closes everything.
func stop(ctx context.Context, server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // an idle connection of the browser is no failure
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// ServeHTTP receives the redirect. Only the exact Host is served, so that no web page can reach the
// listener through a name of its own (DNS rebinding).
func (l *loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host != l.listener.Addr().String():
		http.Error(w, "not served under this name", http.StatusMisdirectedRequest)
	case r.URL.Path != l.path:
		http.NotFound(w, r)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
	default:
		l.serveCallback(w, r)
	}
}

func (l *loopback) serveCallback(w http.ResponseWriter, r *http.Request) {
	c, err := parseCallback(r.URL.RawQuery)
	var code string
	if err == nil {
		code, err = l.want.check(c)
	}
	if errors.Is(err, errUnexpected) {
		l.notify("ignored a callback: %v", err)
		l.writePage(w, err)
		return
	}
	select {
	case l.answer <- answer{code: code, err: err}:
		l.writePage(w, err)
	default:
		l.writePage(w, errors.New("this sign-in was answered already"))
	}
}

// outcome is the content of the page.
type outcome struct {
	Title   string
	Denied  bool   // by the user
	Problem string // empty if the sign-in succeeded
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
	shown := outcome{Title: "You are signed in"}
	var refused *ServerError
	switch {
	case errors.As(failure, &refused) && refused.Code == "access_denied":
		shown = outcome{Title: "You denied the access", Denied: true, Problem: failure.Error()}
	case failure != nil:
		shown = outcome{Title: "The sign-in was not completed", Problem: failure.Error()}
	}
	if failure != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	if err := page.Execute(w, shown); err != nil {
		l.notify("the browser did not take its page: %v", err)
	}
}
