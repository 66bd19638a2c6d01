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
	"oauth-server/internal/store/bolt"
)

// Options are the parameters of a [Server] apart from its configuration.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
	// Prepare, if not nil, is called with the opened store before anything is read from it.
	Prepare func(context.Context, Store) error
	// Memory is the number of bytes that the process may use. 0: unknown.
	Memory int64
	// Quota is the number of processors that a CPU quota leaves the process. 0: no quota.
	Quota float64
	// Separate, if not nil, computes the expensive part of hashing a password in another process.
	// If that fails, this process computes it.
	Separate func(secret.Task) ([]byte, error)
	// Listening, if not nil, is called once the server is listening.
	Listening func(*Server)

	// Sources are the sources of the configuration, if the server is to follow its file. Nil: it
	// does not.
	Sources *config.Sources
	// Level is the level of Logger, for a configuration file that changes it. Nil: it stays
	// unchanged.
	Level *slog.LevelVar
	// Reread makes the server read the file at once at each signal.
	Reread <-chan os.Signal
}

// Server is a running server, or one about to run.
type Server struct {
	cfg     *config.Config
	opts    Options
	base    *foundation
	limiter *limiting
	edge    *edge
	undo    teardown
	// prepared is the file that will replace the data file, if Run has stopped for that.
	prepared string
}

// New builds the three stages, so errors are found before the first request: it binds addresses,
// opens the store, and loads keys, clients and policies. It does not serve yet. If it fails, it
// closes everything that it opened.
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
	s.edge, err = newEdge(s.base, s.limiter)
	return err
}

// ErrTerminated is the cause of a context that makes [Server.Run] wait for the drain delay before
// it stops.
var ErrTerminated = errors.New("terminated")

// Run serves until ctx ends, then stops gracefully: it accepts no new requests, answers the current
// ones, writes the remaining counts, stops the background loops and closes the store, all within
// the configured time. If the cause is [ErrTerminated], readiness first fails for the drain delay,
// while every request is answered. Run returns nil after a clean stop. It also stops if the data
// file is to be restored, for [Serve].
func (s *Server) Run(ctx context.Context) error {
	log, live := s.opts.Logger, context.WithoutCancel(ctx) // live ends with the teardown, not with ctx
	failed := make(chan error, 3)
	s.start(live, failed)
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

// retire makes load balancers send requests to other instances. Readiness fails. If the server is
// terminated, retire returns after the drain delay, so balancers can notice. It returns earlier,
// with the error, if serving fails.
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

// config returns the configuration in use: the one at startup, with the later changes in its file
// that can take effect while the server runs.
func (s *Server) config() *config.Config {
	if s.limiter == nil {
		return s.cfg
	}
	return s.limiter.file.inUse.Load()
}

// next returns the configuration for the server that replaces this one in the process: the one at
// startup with the live changes.
func (s *Server) next() *config.Config { return s.cfg.With(s.config(), live) }

// start starts everything, in this order. The admin API comes first, so operators can watch a
// shutdown until the counts are written. Counts are shared from before the first request until
// after the last. Unexpected errors of serving go to failed.
func (s *Server) start(ctx context.Context, failed chan<- error) {
	s.undo.push("serving operators", s.edge.serveOperators(ctx, failed))
	s.undo.push("the admin address beside the data file", s.edge.announce(ctx))
	s.startLoops()
	s.base.loops.Go("admission", s.base.overload.shedder.Run) // separate, because it measures real time, which tests of the others simulate
	if g := s.edge.gateway; g != nil {
		s.base.loops.Go("the token paths of the upstream", g.Check)
	}
	s.undo.push("sharing the counts", s.limiter.share(ctx, s.edge.admin.Report))
	s.undo.push("bans that are not stored", s.base.lastWrite(s.limiter.bans.Flush, 1.0/4, slog.LevelError, "bans not stored at shutdown; they are lost"))
	if s.edge.shared != nil {
		s.undo.push("users of refresh tokens that are not stored", s.base.lastWrite(s.edge.shared.Flush, 1.0/4, slog.LevelWarn,
			"users of refresh tokens not stored at shutdown; the next use of these tokens counts for no user"))
	}
	if s.edge.gateway != nil {
		s.undo.push("users who are asked for", s.edge.stopGateway)
	}
	s.undo.push("serving", s.edge.serve(failed))
	s.undo.push("serving Envoy", s.edge.serveEnvoy(failed))
}

// stop undoes the start within the configured time. It logs steps that do not end in time and
// returns no error for them, because the process is about to end and all answered requests are
// durable.
func (s *Server) stop(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, s.config().ShutdownTimeout.Std())
	defer cancel()
	late, err := s.undo.run(within)
	if len(late) > 0 {
		s.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "shutdown incomplete", slog.Any("left", late))
	}
	return err
}

// Intervals of background work. Every instance applies a change, or a ban, within two seconds:
// changesEvery plus the time of the reads. Each instance reads all the time, so a shorter interval
// costs the database commands without use.
const (
	changesEvery    = 1600 * time.Millisecond // clients, policies, keys and bans
	keysRetryEvery  = time.Second             // after a failure
	lastTokensEvery = time.Second             // maximum time that a token revoked on another instance is still reused
	endsEvery       = time.Second             // check for expired temporary changes, in memory
)

// usesFlushedEvery is how often the uses of secrets are stored.
const usesFlushedEvery = time.Minute

// tasks returns the periodic tasks.
func (s *Server) tasks() []background.Task {
	const keep = "refresh failed; keeping the last snapshot"
	f, l := s.base, s.limiter
	tasks := []background.Task{
		{Name: "signing keys", Every: f.keys.CheckEvery(), Do: f.keys.Maintain, Failed: keep},
		{Name: "changes", Every: changesEvery, Do: f.follower.Refresh, Failed: keep},
		{Name: "unregistered clients", Every: changesEvery, First: true, Do: l.noteUnregistered, Failed: keep},
		{Name: "operators locked out", Every: changesEvery, Do: l.noteLockedOut, Failed: keep},
		{Name: "uses of secrets", Every: usesFlushedEvery, Do: f.uses.Flush, Failed: "uses of secrets not stored; retrying"},
		{Name: "bans", Every: changesEvery, Do: l.bans.Refresh, Failed: "refresh of bans failed; keeping known bans"},
		{
			Name: "tokens for reuse", Every: lastTokensEvery, Do: s.edge.service.SweepLastTokens,
			Failed: "read revocations of reusable tokens failed; retrying",
		},
		{Name: "ends of changes", Every: endsEvery, Do: l.policies.End, Failed: keep},
		{
			Name: "audit sweep", Every: time.Hour, Retry: time.Minute, First: true, Do: s.edge.admin.SweepAudit,
			Failed: "audit sweep failed; keeping old entries",
		},
	}
	if file, ok := f.backend.(*bolt.Store); ok { // MongoDB removes expired records by itself, by its own clock
		tasks = append(tasks, background.Task{
			Name: "sweep", Every: time.Minute, Do: sweep(file, f.clock.Now, f.log),
			Failed: "sweep failed; keeping expired entries",
		})
	}
	if shared := s.edge.shared; shared != nil {
		tasks = append(tasks, background.Task{
			Name: "users of refresh tokens", Every: sharing.FlushEvery, Retry: sharing.RetryAfter, Do: shared.Flush,
			Failed: "users of refresh tokens not stored; retrying",
		})
	}
	for name, cert := range map[string]*certificate{"certificate": f.cert, "admin certificate": f.adminCert} {
		if cert != nil {
			tasks = append(tasks, background.Task{
				Name: name, Every: certificateCheck, Do: cert.reload,
				Failed: "certificate reload failed; keeping the last certificate",
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
			_ = file.look(ctx) // look has logged the error
			return nil
		}})
	}
	loops.Go("signals", func(ctx context.Context) error { return file.follow(ctx, s.opts.Reread) })
}

// sweep removes expired records by process time. With the wall clock, a clock change could delete
// records that still count.
func sweep(s *bolt.Store, now func() time.Time, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		n, err := s.Sweep(ctx, now())
		if n > 0 {
			log.LogAttrs(ctx, slog.LevelDebug, "swept expired entries", slog.Int("entries", n))
		}
		return err
	}
}

// Addr returns the listening address, with the actual port.
func (s *Server) Addr() string { return s.base.listener.Addr().String() }

// AdminAddr returns the address of the admin API, or an empty string if it is not served.
func (s *Server) AdminAddr() string {
	if s.base.operators == nil {
		return ""
	}
	return s.base.operators.Addr().String()
}

// AdminURL returns the URL of the admin API, or an empty string if it is not served.
func (s *Server) AdminURL() string { return s.base.adminURL() }

// Issuer returns the public URL of the server.
func (s *Server) Issuer() string { return s.base.issuer }

// describe returns the attributes of the log line at startup.
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
