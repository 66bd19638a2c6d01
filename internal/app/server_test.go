package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

func newLogger(cfg config.Log, w io.Writer) *slog.Logger {
	return NewLeveledLogger(cfg, &slog.LevelVar{}, w)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig returns a server on a free port with its own store.
func testConfig(tb testing.TB) *config.Config {
	tb.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.AdminListen = "127.0.0.1:0", ""
	cfg.Store.Embedded = &config.Embedded{Path: filepath.Join(tb.TempDir(), "test.db")}
	return cfg
}

// idle returns a server that is not started.
func idle(t *testing.T, cfg *config.Config, o Options) *Server {
	t.Helper()
	s, err := New(t.Context(), cfg, o)
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, s.stop(context.Background())) })
	return s
}

// running is a server under test.
type running struct {
	*Server
	secret string // of the client "shop"
	stop   func() error
}

// start runs a server with the client "shop" until the test ends.
func start(tb testing.TB, cfg *config.Config, log io.Writer) *running {
	tb.Helper()
	r := &running{}
	r.run(tb, cfg, log, func(ctx context.Context, store Store) (err error) {
		_, r.secret, err = CreateClient(ctx, store, clientcfg.Client{ID: "shop"}, time.Now())
		return err
	})
	return r
}

// resume runs a server on the store of a stopped one.
func resume(tb testing.TB, cfg *config.Config, secret string) *running {
	tb.Helper()
	r := &running{secret: secret}
	r.run(tb, cfg, io.Discard, nil)
	return r
}

func (r *running) run(tb testing.TB, cfg *config.Config, log io.Writer, prepare func(context.Context, Store) error, change ...func(*Server)) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server, err := New(ctx, cfg, Options{Logger: newLogger(cfg.Log, log), Prepare: prepare})
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	r.Server = server
	for _, c := range change {
		c(server)
	}
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	tb.Cleanup(func() {
		if err := r.stop(); err != nil {
			tb.Error(err)
		}
	})
}

// reply is an answer with its whole body.
type reply struct {
	*http.Response
	body string
}

// token returns the access token in the answer.
func (r reply) token(tb testing.TB) string {
	tb.Helper()
	var body struct {
		AccessToken string `json:"access_token"`
	}
	check.OK(tb, json.Unmarshal([]byte(r.body), &body))
	return body.AccessToken
}

// send sends a request and reads the answer.
func send(tb testing.TB, client *http.Client, method, address, body string, change ...func(*http.Request)) reply {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, address, strings.NewReader(body))
	check.OK(tb, err)
	for _, c := range change {
		c(req)
	}
	res, err := client.Do(req)
	check.OK(tb, err)
	text, err := io.ReadAll(res.Body)
	check.OK(tb, errors.Join(err, res.Body.Close()))
	return reply{res, string(text)}
}

func get(tb testing.TB, client *http.Client, address string) reply {
	tb.Helper()
	return send(tb, client, http.MethodGet, address, "")
}

// tokenOf requests a token for a client, without a user.
func tokenOf(tb testing.TB, client *http.Client, base, id, secret string) reply {
	tb.Helper()
	return send(tb, client, http.MethodPost, base+"/token", "grant_type=client_credentials", func(r *http.Request) {
		r.SetBasicAuth(id, secret)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	})
}

func (r *running) token(tb testing.TB, client *http.Client) reply {
	tb.Helper()
	return tokenOf(tb, client, r.Issuer(), "shop", r.secret)
}

// newClient returns a client that keeps no connection open after the test.
func newClient(tb testing.TB, cfg *tls.Config) *http.Client {
	tb.Helper()
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestServerIssuesATokenAndStops(t *testing.T) {
	var log bytes.Buffer
	r := start(t, testConfig(t), &log)
	client := newClient(t, nil)
	token := r.token(t, client).token(t)
	client.CloseIdleConnections()
	check.OK(t, r.stop())
	for _, want := range []string{"msg=listening address=" + r.Addr(), "msg=stopping", "msg=stopped"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), r.secret) || token == "" || strings.Contains(log.String(), token) {
		t.Error("the log holds a secret")
	}
}

// Attack (rfc9700): 2.6, 4.13 TLS. The server can terminate TLS. Forwarded headers count from
// `trusted_proxies` only. Also httpapi.TestClientAddress.
func TestServerSpeaksTLS(t *testing.T) {
	cfg := testConfig(t)
	cfg.TLS = certificateFiles(t)
	cert := writeCertificate(t, cfg.TLS, 1)
	r := start(t, cfg, io.Discard)
	if !strings.HasPrefix(r.Issuer(), "https://127.0.0.1:") {
		t.Errorf("issuer %s", r.Issuer())
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	client := newClient(t, &tls.Config{RootCAs: pool})
	if got := r.token(t, client); got.StatusCode != http.StatusOK || got.ProtoMajor != 2 {
		t.Errorf("%+v", got)
	}
	client.CloseIdleConnections()
}

func TestNewReportsWhatIsWrongAndLetsGo(t *testing.T) {
	cfg := testConfig(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = taken.Close() }()
	busy := *cfg
	busy.Listen = taken.Addr().String()
	want := "--listen: listen tcp " + busy.Listen + ": bind: address already in use; set another address with --listen or in the configuration file"
	if _, err := New(t.Context(), &busy, Options{}); err == nil || err.Error() != want {
		t.Errorf("New on a taken port: %v, want %s", err, want)
	}
	failure := errors.New("no")
	_, err = New(t.Context(), cfg, Options{Prepare: func(context.Context, Store) error { return failure }})
	check.ErrorIs(t, err, failure)
	idle(t, cfg, Options{}) // what failed before holds the store no more
}

// TestPolicyOfAnUnknownClientIsReported checks that the server starts although the file names a
// client that is deleted or not registered yet. The report follows registrations while the server
// runs.
func TestPolicyOfAnUnknownClientIsReported(t *testing.T) {
	cfg := testConfig(t)
	cfg.RateLimit.Clients = map[string]ratelimit.Policy{"shop": {}, "shpo": {}, "app.example.com": {Trusted: true}}
	var out bytes.Buffer
	s := idle(t, cfg, Options{Logger: slog.New(slog.NewTextHandler(&out, nil)), Prepare: func(ctx context.Context, store Store) error {
		_, _, err := CreateClient(ctx, store, clientcfg.Client{ID: "shop"}, time.Now())
		return err
	}})
	u := s.limiter.unregistered
	check.Equal(t, "unregistered", u.list(), []string{"app.example.com", "shpo"})
	check.OK(t, s.limiter.noteUnregistered(t.Context()))
	for _, field := range []string{`rate_limit.clients[\"app.example.com\"]`, "rate_limit.clients.shpo"} {
		check.Equal(t, "lines about "+field, strings.Count(out.String(), field), 1)
	}
	check.OK(t, s.limiter.noteUnregistered(t.Context()))
	check.Equal(t, "warnings after nothing has changed", strings.Count(out.String(), "level=WARN msg=\"configuration"), 2)

	_, _, err := CreateClient(t.Context(), s.base.store, clientcfg.Client{ID: "shpo"}, time.Now())
	check.OK(t, err)
	check.OK(t, s.base.store.DeleteClient(t.Context(), "shop", clientcfg.Event{}))
	check.OK(t, s.base.clients.Renew(t.Context(), 0))
	check.OK(t, s.limiter.noteUnregistered(t.Context()))
	check.Equal(t, "unregistered", u.list(), []string{"app.example.com", "shop"})
	for _, line := range []string{"now registered\" client_id=shpo", "an unregistered client\" client_id=shop"} {
		check.Equal(t, line, strings.Count(out.String(), line), 1)
	}
}

func TestIssuerFor(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv6loopback, Port: 41000}
	tests := []struct{ name, issuer, listen, cert, want string }{
		{"configured", "https://auth.example.com", "[::1]:0", "", "https://auth.example.com"},
		{"port of the system", "", "127.0.0.1:0", "", "http://127.0.0.1:41000"},
		{"IPv6", "", "[::1]:0", "", "http://[::1]:41000"},
		{"by name", "", "localhost:0", "", "http://localhost:41000"},
		{"TLS", "", "127.0.0.1:0", "cert.pem", "https://127.0.0.1:41000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := &config.Config{Issuer: tt.issuer, Listen: tt.listen, TLS: config.TLS{CertFile: tt.cert}}
			check.Equal(t, "issuer", IssuerFor(cfg, addr), tt.want)
		})
	}
}

func TestNewLogger(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(config.Log{Format: "json", Level: "warn"}, &out)
	log.Info("quiet")
	log.Warn("loud")
	var line struct{ Msg string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Msg != "loud" {
		t.Errorf("logged %q, %v", out.String(), err)
	}
	if !newLogger(config.Log{}, io.Discard).Enabled(t.Context(), slog.LevelInfo) {
		t.Error("without a level, info is not logged")
	}
}

// A peer can hold a connection or memory only for a limited time, and only a limited amount.
func TestServerBoundsItsPeers(t *testing.T) {
	s := newHTTPServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	for name, bound := range map[string]struct{ got, most int }{
		"seconds to read the headers":   {int(s.ReadHeaderTimeout.Seconds()), 10},
		"seconds to read the request":   {int(s.ReadTimeout.Seconds()), 60},
		"seconds to write the answer":   {int(s.WriteTimeout.Seconds()), 60},
		"seconds of an idle connection": {int(s.IdleTimeout.Seconds()), 300},
		"seconds of stalled writes":     {int(s.HTTP2.WriteByteTimeout.Seconds()), 60},
		"streams":                       {s.HTTP2.MaxConcurrentStreams, 100},
		"bytes of a frame":              {s.HTTP2.MaxReadFrameSize, 16 << 10},
		"unread bytes":                  {s.HTTP2.MaxReceiveBufferPerStream, 128 << 10},
		"unread bytes of all streams":   {s.HTTP2.MaxReceiveBufferPerConnection, 128 << 10},
	} {
		if bound.got <= 0 || bound.got > bound.most {
			t.Errorf("%s: %d, want at most %d", name, bound.got, bound.most)
		}
	}
	if room := min(s.ReadTimeout, s.WriteTimeout) - ratelimit.LongestWait; room < 5*time.Second {
		t.Errorf("beside the longest wait for a turn, a request may take %s", room)
	}

	r := start(t, testConfig(t), io.Discard)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.Issuer()+"/healthz", http.NoBody)
	check.OK(t, err)
	req.Header.Set("X-Endless", strings.Repeat("x", 64<<10))
	res, err := newClient(t, nil).Do(req)
	check.OK(t, err)
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	_ = res.Body.Close()
	check.Equal(t, "status of 64 KiB of headers", res.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
}
