package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/config"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Options are what a [Server] needs beside its configuration.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
	// Prepare, if not nil, is called with the opened store before anything is
	// read from it.
	Prepare func(context.Context, Store) error
	// Memory is how many bytes the process may use; 0 if that is not known.
	Memory int64
	// Quota is how many processors a quota of processor time leaves the process; 0 if there is none.
	Quota float64
	// Separate, if not nil, computes the expensive part of hashing a password in another process. What it
	// fails to compute is computed in this one.
	Separate func(secret.Task) ([]byte, error)
	// Hashing, if not nil, is called before each password is hashed in this process.
	Hashing func()
	// Listening, if not nil, is called once the server answers.
	Listening func(*Server)

	// Sources are what the configuration was loaded from, if its file is to be followed while the server
	// runs. Nil: it is not.
	Sources *config.Sources
	// Level is that of Logger, for a file that changes it. Nil: it stays.
	Level *slog.LevelVar
	// Reread has the file read at once at each signal.
	Reread <-chan os.Signal
}

// Server is a running server, or one about to run.
type Server struct {
	cfg     *config.Config
	opts    Options
	base    *foundation
	limiter *limiter
	edge    *edge
	undo    teardown
	// prepared is the file for which Run has stopped: it is to take the place of the data file.
	prepared string
}

// New builds the three stages, so that whatever is wrong is found before the first request:
// addresses are bound, the store is open, keys, clients and policies are read. It serves nothing
// yet. If it fails, everything it opened is closed again.
func New(ctx context.Context, cfg *config.Config, opts Options) (*Server, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{cfg: cfg, opts: opts}
	if err := s.build(ctx); err != nil {
		return nil, errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *Server) build(ctx context.Context) (err error) {
	if s.base, err = newFoundation(ctx, s.cfg, s.opts, &s.undo); err != nil {
		return err
	}
	if s.limiter, err = newLimiter(ctx, s.base, s.opts); err != nil {
		return err
	}
	s.edge, err = newEdge(s.base, s.limiter) //nolint:contextcheck // its handlers take the context of each request
	return err
}

// ErrTerminated is the cause of the end of a context at which [Server.Run] waits for the drain delay
// before it stops.
var ErrTerminated = errors.New("terminated")

// Run serves until ctx ends, then stops gracefully: it takes no new requests, answers those it has,
// writes the counts that are left, stops the background loops and closes the store, all within the
// configured time. If the cause is [ErrTerminated], readiness fails for the drain delay before that,
// while every request is answered. It returns nil after a clean stop. It stops also if the data file is to
// be restored, for [Serve].
func (s *Server) Run(ctx context.Context) error {
	log, live := s.opts.Logger, context.WithoutCancel(ctx) // live ends with the teardown, not before
	failed := make(chan error, 3)
	s.start(live, failed)
	s.base.awaitVerification(ctx)
	log.LogAttrs(ctx, slog.LevelInfo, "listening", s.describe()...)
	if s.base.isGateway() {
		log.LogAttrs(ctx, slog.LevelInfo, "limiting token requests", describeGateway(&s.cfg.Gateway, s.limiter.policies.Snapshot().Settings())...)
	}
	if s.opts.Listening != nil {
		s.opts.Listening(s)
	}
	var err error
	select {
	case s.prepared = <-s.base.backups.requests():
		s.edge.retire()
		log.LogAttrs(live, slog.LevelWarn, "stopping to restore the data file", slog.String("from", s.prepared))
	case <-ctx.Done():
		dropRestore(live, log, s.base.backups.close())
		err = s.retire(live, context.Cause(ctx), failed)
		log.LogAttrs(live, slog.LevelInfo, "stopping", slog.String("within", s.config().ShutdownTimeout.Std().String()))
	case err = <-failed:
		dropRestore(live, log, s.base.backups.close())
	}
	err = errors.Join(err, s.stop(live))
	if err == nil {
		log.LogAttrs(live, slog.LevelInfo, "stopped")
	}
	return err
}

// retire has the load balancers send requests to other instances: readiness fails, and if the server
// is terminated, it returns after the drain delay, in which they notice. It returns sooner, with the
// error, when serving fails.
func (s *Server) retire(ctx context.Context, cause error, failed <-chan error) error {
	s.edge.retire()
	delay := s.config().DrainDelay
	if !errors.Is(cause, ErrTerminated) || delay == 0 {
		return nil
	}
	s.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "draining", slog.String("for", delay.String()))
	over := time.NewTimer(delay.Std())
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case err := <-failed:
		return err
	}
}

// config is the configuration in use: that of the start, with what has changed in its file meanwhile and can
// change while the server runs.
func (s *Server) config() *config.Config {
	if s.limiter == nil {
		return s.cfg
	}
	return s.limiter.file.inUse.Load()
}

// next is the configuration for the server that takes the place of this one in the process: the one that it
// was started with, and what has changed while it ran.
func (s *Server) next() *config.Config { return withLive(s.cfg, s.config()) }

// start starts what runs, in this order. Operators come first, and so can watch a stop until the
// counts are written. Counts are shared before the first request and after the last. An end of
// serving that was not asked for is sent to failed.
func (s *Server) start(ctx context.Context, failed chan<- error) {
	s.undo.push("serving operators", s.edge.serveOperators(ctx, failed))
	s.undo.push("the admin address beside the data file", s.edge.announce(ctx))
	s.startLoops()
	s.base.loops.Go("admission", s.base.overload.gate.Run) // apart: it measures real time, which tests of the others simulate
	if g := s.edge.gateway; g != nil {
		s.base.loops.Go("the token paths of the upstream", g.Check)
	}
	s.undo.push("sharing the counts", s.limiter.share(ctx, s.edge.admin.Report))
	s.undo.push("bans that are not stored", s.limiter.storeBans)
	if s.edge.shared != nil {
		s.undo.push("users of refresh tokens that are not stored", s.edge.storeSubjects)
	}
	if s.edge.gateway != nil {
		s.undo.push("users who are asked for", s.edge.stopGateway)
	}
	s.undo.push("serving", s.edge.serve(failed))
	s.undo.push("serving Envoy", s.edge.serveEnvoy(failed))
}

// Close gives up a server that was made and never run.
func (s *Server) Close() error { return s.stop(context.Background()) }

// stop undoes the start within the configured time. What does not end in time is logged and is not
// an error: the process is about to end, and whatever was answered is durable.
func (s *Server) stop(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, s.config().ShutdownTimeout.Std())
	defer cancel()
	late, err := s.undo.run(within)
	if len(late) > 0 {
		s.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "not everything stopped in time", slog.Any("left", late))
	}
	return err
}

// Periods of background work. A change of clients or policies is in force on every instance after
// that long, at most.
const (
	changesEvery     = time.Second // of clients, policies and keys
	keysRetryEvery   = time.Second // after a failure
	lastTokensEvery  = time.Second // a token that was revoked elsewhere is handed out again no longer than that
	bansRefreshEvery = time.Second // a ban is in force on every instance after that long
	endsEvery        = time.Second // temporary changes that are due are looked for, in memory
)

// usesFlushedEvery is how often the store learns which secrets were used.
const usesFlushedEvery = time.Minute

// tasks lists what is repeated while the server runs.
func (s *Server) tasks() []background.Task {
	const keep = "refresh failed; keeping last good snapshot"
	f, l := s.base, s.limiter
	tasks := []background.Task{
		{Name: "signing keys", Every: f.keys.CheckEvery(), Do: f.keys.Maintain, Failed: keep},
		{Name: "changes", Every: changesEvery, Do: f.follower.Refresh, Failed: keep},
		{Name: "unregistered clients", Every: changesEvery, First: true, Do: l.unregistered.note, Failed: keep},
		{Name: "operators locked out", Every: changesEvery, Do: l.lockOuts.note, Failed: keep},
		{Name: "uses of secrets", Every: usesFlushedEvery, Do: f.uses.Flush, Failed: "uses of secrets not stored; trying again"},
		{Name: "bans", Every: bansRefreshEvery, Do: l.bans.Refresh, Failed: "bans not stored or read; keeping those that are known"},
		{
			Name: "tokens for reuse", Every: lastTokensEvery, Do: s.edge.service.SweepLastTokens,
			Failed: "revocations of tokens kept for reuse not read; trying again",
		},
		{
			Name: "ends of changes", Every: endsEvery, Do: s.edge.admin.EndChanges,
			Failed: "temporary change not ended; trying again",
		},
		{
			Name: "audit sweep", Every: time.Hour, Retry: time.Minute, First: true, Do: s.edge.admin.SweepAudit,
			Failed: "audit sweep failed; old entries stay",
		},
	}
	if sweeper, ok := f.backend.(store.Sweeper); ok {
		tasks = append(tasks, background.Task{
			Name: "sweep", Every: time.Minute, Do: sweep(sweeper, f.clock.Now, f.log),
			Failed: "sweep failed; expired entries stay",
		})
	}
	if shared := s.edge.shared; shared != nil {
		tasks = append(tasks, background.Task{
			Name: "users of refresh tokens", Every: sharing.FlushEvery, Retry: sharing.RetryAfter, Do: shared.Flush,
			Failed: "users of refresh tokens not stored; trying again",
		})
	}
	for name, cert := range map[string]*certificate{"certificate": f.cert, "admin certificate": f.adminCert} {
		if cert != nil {
			tasks = append(tasks, background.Task{
				Name: name, Every: certificateCheck, Do: cert.reload,
				Failed: "certificate reload failed; keeping last good certificate",
			})
		}
	}
	return tasks
}

// startLoops starts the background work.
func (s *Server) startLoops() {
	loops := s.base.loops
	for _, task := range s.tasks() {
		loops.Repeat(task)
	}
	loops.Go("withdrawn keys", s.base.followKeys)
	loops.Go("resets", s.limiter.resets.Run)
	loops.Go("new bans", s.limiter.bans.Run)
	file := s.limiter.file
	if file.exists() {
		loops.Repeat(background.Task{Name: "configuration file", Every: configFileCheck, Do: func(ctx context.Context) error {
			_ = file.look(ctx) // it has logged why
			return nil
		}})
	}
	loops.Go("signals", func(ctx context.Context) error { return file.follow(ctx, s.opts.Reread) })
}

// sweep removes what has expired, by process time: a wall clock that was set must not delete what
// still counts.
func sweep(s store.Sweeper, now func() time.Time, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		n, err := s.Sweep(ctx, now())
		if n > 0 {
			log.LogAttrs(ctx, slog.LevelDebug, "swept what has expired", slog.Int("entries", n))
		}
		return err
	}
}

// Addr is the address that is listened on, with the port that a port 0 became.
func (s *Server) Addr() string { return s.base.listener.Addr().String() }

// AdminAddr is the address that operators are served on; empty if none.
func (s *Server) AdminAddr() string {
	if s.base.operators == nil {
		return ""
	}
	return s.base.operators.Addr().String()
}

// AdminURL is the URL that operators are served on, by its address; empty if none.
func (s *Server) AdminURL() string { return s.base.adminURL() }

// Address is the host and port that clients are served on.
func (s *Server) Address() string { return s.base.listener.Addr().String() }

// Issuer is the public URL of the server.
func (s *Server) Issuer() string { return s.base.issuer }

// describe returns what is logged when the server answers.
func (s *Server) describe() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("address", s.Addr()), slog.String("issuer", s.Issuer()),
		slog.Int("clients", s.base.clients.Directory().Len()),
		slog.Int("passwords_at_once", s.base.passwords.Concurrency()),
	}
	if admin := s.AdminAddr(); admin != "" {
		attrs = append(attrs, slog.String("admin_address", admin))
	}
	if l := s.base.envoy; l != nil {
		attrs = append(attrs, slog.String("envoy_address", l.Addr().String()))
	}
	return attrs
}
