package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/admin"
	"oauth-server/internal/background"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clock"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/watched"
	"oauth-server/internal/syncer"
)

// Periods of background work.
const (
	sweepEvery          = time.Minute
	clientsRefreshEvery = 2 * time.Second
)

// Options are what a [Server] needs beside its configuration.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
	// Prepare, if not nil, is called with the opened store before anything is
	// read from it.
	Prepare func(context.Context, Store) error
	// Listening, if not nil, is called once the server answers.
	Listening func(*Server)
}

// Server is a running server, or one about to run.
type Server struct {
	cfg       *config.Config
	opts      Options
	log       *slog.Logger
	issuer    string
	listener  net.Listener
	store     Store
	watched   *watched.Store // the same store, and every operation is counted
	clients   *clientcfg.Source
	policies  *clientcfg.PolicySource
	clock     *clock.Clock // that all counts go by
	counters  *ratelimit.Counters
	syncer    *syncer.Syncer
	syncStats syncStats
	activity  *activity.Recorder
	resets    *admin.Resets
	service   *grants.Service
	keys      *keys.Ring
	cert      *certificate // nil: plain HTTP
	http      *http.Server
	farewell  farewell
	loops     *background.Group
	undo      teardown
	stopping  atomic.Bool
	verified  <-chan struct{} // closed after the verification of the database; nil: there is none

	telemetry        *telemetry
	admin            *admin.Server
	operatorListener net.Listener // nil: operators are not served
}

// New binds the address, opens the store and makes every part, in this order,
// so that whatever is wrong is found before the first request. It serves
// nothing yet. If it fails, everything it opened is closed again.
func New(ctx context.Context, cfg *config.Config, opts Options) (*Server, error) {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, opts: opts, log: log, clock: clock.New(nil), farewell: farewell{wait: partingTime}}
	if err := s.assemble(ctx); err != nil {
		return nil, errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Server) assemble(ctx context.Context) error {
	steps := []func(context.Context) error{
		s.openTelemetry, s.listen, s.listenForOperators, s.migrate, s.openStore, s.openCertificate,
		s.openKeys, s.openClients, s.openSyncer, s.openLimiter,
		s.makeService, s.makeHandler, s.makeAdmin,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) listen(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return err
	}
	s.listener = l
	s.undo.push("listening", func(context.Context) error { return closed(l) })
	s.issuer = IssuerFor(s.cfg, l.Addr())
	return nil
}

// IssuerFor is the configured issuer, or the one that a loopback address that
// is being listened on suggests.
func IssuerFor(cfg *config.Config, addr net.Addr) string {
	if cfg.Issuer != "" {
		return cfg.Issuer
	}
	host, _, err := net.SplitHostPort(cfg.Listen)
	_, port, err2 := net.SplitHostPort(addr.String())
	if err != nil || err2 != nil {
		return ""
	}
	scheme := "http://"
	if cfg.TLS.Enabled() {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

func (s *Server) openStore(ctx context.Context) error {
	store, err := OpenStore(ctx, s.cfg.Store)
	if err != nil {
		return err
	}
	s.store, s.watched = store, watched.New(store, s.telemetry)
	s.undo.push("the store", func(context.Context) error { return store.Close() })
	s.verifyStore(ctx)
	if s.opts.Prepare != nil {
		return s.opts.Prepare(ctx, store)
	}
	return nil
}

func (s *Server) openCertificate(context.Context) (err error) {
	if s.cfg.TLS.Enabled() {
		s.cert, err = loadCertificate(s.cfg.TLS, s.log)
	}
	return err
}

func (s *Server) openKeys(ctx context.Context) (err error) {
	s.keys, err = keys.Open(ctx, s.watched, keys.Options{
		Issuer:        s.issuer,
		Algorithm:     s.cfg.Tokens.Algorithm,
		TokenLifetime: s.cfg.Tokens.AccessTTL.Std(),
		RotateEvery:   s.cfg.Tokens.KeyRotation.Std(),
		Logger:        s.log,
	})
	return err
}

func (s *Server) openClients(ctx context.Context) (err error) {
	if s.clients, err = clientcfg.NewSource(ctx, s.watched); err != nil {
		return err
	}
	s.watch()
	return nil
}

// newHTTPServer bounds what a slow or greedy peer can hold on to. Requests are
// small and answered in milliseconds; the longest wait is for a password to
// be hashed.
func newHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		// What clients do wrong below HTTP (bad handshakes) is no trouble of ours.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Addr is the address that is listened on, with the port that a port 0 became.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Issuer is the public URL of the server.
func (s *Server) Issuer() string { return s.issuer }

// describe is the line that says that the server answers.
func (s *Server) describe() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("address", s.Addr()), slog.String("issuer", s.issuer),
		slog.Int("clients", s.clients.Directory().Len()),
	}
	if admin := s.AdminAddr(); admin != "" {
		attrs = append(attrs, slog.String("admin_address", admin))
	}
	return attrs
}
