package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin"
	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/app/connbound"
	"oauth-server/internal/app/repositories"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/envoy"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// edge is the third stage: the servers for clients and operators.
type edge struct {
	base      *foundation
	ready     *readiness
	http      *http.Server       // for clients
	addresses *httpapi.Addresses // of clients
	drainer   *connDrainer       // drains the connections of http
	admin     *admin.Server
	service   *grants.Service
	own       *httpapi.Server    // the endpoints of this server: for clients, or only for operators if this is a gateway
	gateway   *gateway.Gateway   // nil: not a gateway
	shared    *sharing.Subjects  // of the gateway; nil: it shares nothing
	limiter   *limiter.Limiter   // of the gateway; nil: not a gateway
	envoy     *envoy.Server      // nil: no Envoy protocols
	ops       *http.Server       // for operators
	local     *adminlocal.Access // for commands on this machine; nil: not available
}

// newEdge creates the handlers and their servers without starting them.
func newEdge(f *foundation, l *limiting) (e *edge, err error) {
	e = &edge{
		base: f, drainer: &connDrainer{delay: idleDelay},
		addresses: &httpapi.Addresses{
			TrustedProxies: f.cfg.TrustedProxies.Ranges(), TrustedHeader: http.CanonicalHeaderKey(f.cfg.TrustedHeader),
			TrustedHops: f.cfg.TrustedHops, Logger: f.log,
		},
		ready: &readiness{clients: f.clients, policies: l.policies, sync: l.stats, unregistered: l.unregistered, file: l.file, shedder: &shedWatch{stats: f.overload.shedder.Stats}, storeQueue: f.overload.storeQueue},
	}
	if e.service, err = newService(f, l); err != nil {
		return nil, err
	}
	f.telemetry.WatchWaiting(e.service.Waiting)
	if e.own, err = e.newHandler(e.service, l.file); err != nil {
		return nil, err
	}
	e.http = newHTTPServer(e.around(e.own), f.log)
	if f.isGateway() {
		if err := e.becomeGateway(l); err != nil {
			return nil, err
		}
	}
	e.http.ConnState = e.track
	e.http.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return connbound.WithHeld(overload.WithConn(ctx, c), c)
	}
	if f.cert != nil {
		e.http.TLSConfig = f.cert.config()
	}
	e.local = f.localAccess()
	if e.admin, err = newAdmin(f, l, e.service, e.local); err != nil {
		return nil, err
	}
	e.ops = newHTTPServer(f.bounds.Operators.Around(e.operatorHandler(l.file)), f.log)
	e.ops.ConnState, e.ops.ConnContext = connbound.TrackSilence, connbound.WithHeld
	e.ops.WriteTimeout = slowestScrape
	e.ops.RegisterOnShutdown(e.admin.EndProfiles)
	if f.adminCert != nil {
		if e.local != nil {
			if f.adminCert.local, err = e.local.Certificate(); err != nil {
				return nil, err
			}
		}
		e.ops.TLSConfig = f.adminCert.config()
	}
	return e, nil
}

// around wraps the handler of client requests.
func (e *edge) around(h http.Handler) http.Handler {
	return e.drainer.around(e.base.bounds.Clients.Around(e.base.telemetry.around(h)))
}

// accountStore implements [registry.Store].
type accountStore struct {
	repositories.All
	store.Backend // with metrics
}

// newService creates the service that issues tokens.
func newService(f *foundation, l *limiting) (*grants.Service, error) {
	return grants.New(grants.Options{
		Issuer:               f.issuer,
		Clients:              f.clients,
		Store:                grants.NewRepository(f.data),
		Users:                accounts.NewUsers(f.follower, f.data),
		Stored:               f.store,
		Signer:               f.keys,
		Logger:               f.log,
		LogUser:              l.denials.user,
		CodeLifetime:         f.cfg.Tokens.CodeTTL.Std(),
		AccessTokenLifetime:  f.cfg.Tokens.AccessTTL.Std(),
		RefreshTokenLifetime: f.cfg.Tokens.RefreshTTL.Std(),
		RefreshMaxAge:        f.cfg.Tokens.RefreshMaxAge.Std(),
		RefreshGrace:         f.cfg.Tokens.RefreshGrace.Std(),
		CodesPerSession:      f.cfg.Sessions.Codes,
		ClientFailures:       failureLimits(f.cfg.FailedAttempts.Window, f.cfg.FailedAttempts.Clients),
		SignIn: accounts.Options{
			Passwords:       f.passwords,
			SessionLifetime: f.cfg.Sessions.TTL.Std(),
			Failures:        failureLimits(f.cfg.FailedAttempts.Window, f.cfg.FailedAttempts.Users.FailureQuota),
			SignIns:         ratelimit.NewLimit("sign-ins", f.cfg.Passwords.SignInsPerMinute, time.Minute),
			Guesses:         accounts.NewGuessLimits(f.cfg.FailedAttempts.Users.PerNameDaily, f.cfg.FailedAttempts.Users.SlowAfter),
		},
		InvalidGrants:  failureLimits(f.cfg.FailedAttempts.Window, f.cfg.FailedAttempts.Grants),
		Introspections: grants.QueryLimit(f.cfg.Inspection.IntrospectPerSecond),
		Revocations:    grants.QueryLimit(f.cfg.Inspection.RevokePerSecond),
		Deriver:        f.mac,
		Clock:          f.clock.Now,
		Counters:       l.counters,
		Policies:       l.policies.Snapshot,
		Bans:           l.bans,
		Observe:        l.decided,
		Issued:         l.issued,
		SecretUsed:     f.uses.Used,
		Shedder:        f.overload.shedder,
	})
}

func failureLimits(window config.Duration, q config.FailureQuota) attempts.Limits {
	return attempts.NewLimits(q.PerAddress, q.PerName, window.Std())
}

// newHandler creates the handler for clients.
func (e *edge) newHandler(service *grants.Service, file *configFile) (*httpapi.Server, error) {
	f := e.base
	return httpapi.New(httpapi.Options{
		Issuer:      f.issuer,
		Service:     service,
		Keys:        f.keys,
		Ready:       func(context.Context) httpapi.Readiness { return e.ready.report(false) },
		Answered:    f.telemetry.answered,
		Logger:      f.log,
		Addresses:   e.addresses,
		LimitedCode: file.limitedCode,
		GrantTypes:  grantTypes(f.clients.Directory()),
		ScopeTexts:  f.cfg.Scopes,
	})
}

// grantTypes returns the grants for the metadata. It includes the password grant only if a client
// is registered for it, because RFC 9700 2.4 forbids its use.
func grantTypes(clients *clientcfg.Directory) []clientcfg.Grant {
	return slices.DeleteFunc(clientcfg.Grants(), func(g clientcfg.Grant) bool {
		return g == clientcfg.Password && !clients.May(g)
	})
}

// newAdmin creates the admin API. Without an address it is not served, but other instances still
// show the report of this one.
func newAdmin(f *foundation, l *limiting, service *grants.Service, local *adminlocal.Access) (*admin.Server, error) {
	token := ""
	if local != nil {
		token = local.Token()
	}
	o := admin.Options{
		LocalToken: token,

		ClientsElsewhere: f.isGateway(),

		Issuer:    f.issuer,
		Instance:  l.syncer.ID,
		Version:   thisBuild().Version,
		Tokens:    service,
		Users:     f.store,
		Clients:   f.clients,
		Policies:  l.policies,
		Resets:    l.resets,
		Registry:  accountStore{f.store.All, f.follower.Backend()},
		Events:    f.store,
		Passwords: f.passwords,
		AuditKept: f.cfg.Audit.Keep.Std(),
		Counters:  l.counters,
		Activity:  l.activity,
		Bans:      l.bans,
		UserHash:  f.userHash,
		Stored:    f.store,
		Sync:      l.syncState,
		File:      l.file.show,
		Clock:     f.clock.Now,
		Logger:    f.log,
	}
	if l.heartbeats != nil {
		o.Reports = l.heartbeats
	}
	if f.backups != nil {
		o.Backups = f.backups
	}
	return admin.New(o)
}

// syncState returns the state of the syncer for operators.
func (l *limiting) syncState() adminapi.SyncState {
	st := l.stats.get()
	return adminapi.SyncState{
		Keys: l.counters.Stats().Keys, Dirty: int64(st.Waiting), Degraded: st.Degraded, Outage: st.Stalled,
		StaleMillis: st.Late.Milliseconds(), UnconfirmedMillis: st.Unconfirmed.Milliseconds(),
		ClockAlone: string(st.Clock.Alone), WallOffset: st.Clock.Wall.Seconds(), StoreOffset: st.Clock.Store.Seconds(),
	}
}

// operatorHandler serves the admin API, which requires a token, the token endpoint for such tokens,
// and metrics and health, which contain no secrets. While profiles are off, their paths are unknown.
func (e *edge) operatorHandler(file *configFile) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(adminapi.Prefix+"/", e.admin)
	mux.Handle("GET /metrics", metrics.Handler(e.base.telemetry.registry))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if c := r.Header.Get(adminlocal.ChallengeHeader); e.local != nil && c != "" && len(c) <= adminlocal.MaxChallenge {
			w.Header().Set(adminlocal.ProofHeader, e.local.Proof(c))
		}
		e.writeStatus(w, r, http.StatusOK, map[string]string{"status": "ok"})
	})
	tokens, unknown := e.own.Operators(), http.NotFoundHandler()
	if e.limiter != nil { // operators can sign in only here
		mux.Handle("/", tokens)
		unknown = tokens
	} else {
		mux.Handle("POST /token", tokens)
		mux.Handle("GET /.well-known/oauth-authorization-server", tokens)
	}
	profiles := func(w http.ResponseWriter, r *http.Request) {
		if file.inUse.Load().AdminProfiles {
			e.admin.ServeHTTP(w, r)
		} else {
			unknown.ServeHTTP(w, r)
		}
	}
	mux.HandleFunc(admin.ProfilesPath, profiles)
	mux.HandleFunc(strings.TrimSuffix(admin.ProfilesPath, "/"), profiles) // else mux redirects it
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ready, status := e.ready.report(true), http.StatusOK
		if ready.Status == httpapi.Down {
			status = http.StatusServiceUnavailable
		}
		e.writeStatus(w, r, status, ready)
	})
	return mux
}

func (e *edge) writeStatus(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		e.base.log.LogAttrs(r.Context(), slog.LevelDebug, "status not written; client disconnected", slog.Any("error", err))
	}
}

// slowestScrape bounds the time to write an answer to a scraper.
const slowestScrape = 30 * time.Second

// serveOperators serves scrapers and operators in the background. Without an address it does
// nothing and returns nil.
func (e *edge) serveOperators(ctx context.Context, failed chan<- error) (stop func(context.Context) error) {
	if e.base.operators == nil {
		if address := e.base.cfg.AdminListen; address != "" {
			e.base.log.LogAttrs(ctx, slog.LevelWarn,
				"admin API not served: another process uses the default address; set --admin-listen",
				slog.String("address", address))
		}
		return nil
	}
	serve := e.ops.Serve
	switch {
	case e.base.adminCert != nil:
		serve = func(l net.Listener) error { return e.ops.ServeTLS(l, "", "") }
	case !e.base.cfg.LoopbackAdminListen():
		e.base.log.LogAttrs(ctx, slog.LevelWarn,
			"admin API is reachable from other machines without TLS; set admin_tls",
			slog.String("address", e.base.operators.Addr().String()))
	}
	go func() {
		if err := serve(e.base.bounds.Operators.Listener(e.base.operators)); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return func(ctx context.Context) error {
		ctx, cancel := withShare(ctx, 3.0/4)
		defer cancel()
		return e.shutdown(ctx, e.ops)
	}
}

// announce writes the address of the admin API next to the data file, for commands on this machine.
// The server also runs without that file.
func (e *edge) announce(ctx context.Context) (undo func(context.Context) error) {
	if e.local == nil {
		return nil
	}
	file := e.base.cfg.Store.Embedded.Path
	if err := e.local.Write(file); err != nil {
		e.base.log.LogAttrs(ctx, slog.LevelWarn, "write admin address beside the data file failed; commands need --server",
			slog.Any("error", err))
		return nil
	}
	return func(context.Context) error { return e.local.Remove(file) }
}

// serve serves clients in the background.
func (e *edge) serve(failed chan<- error) (stop func(context.Context) error) {
	go func() {
		serve := e.http.Serve
		if e.base.cert != nil {
			serve = func(l net.Listener) error { return e.http.ServeTLS(l, "", "") }
		}
		if err := serve(e.watched(e.base.listener)); !errors.Is(err, http.ErrServerClosed) && !e.drainer.draining.Load() {
			failed <- err
		}
	}()
	return e.drain
}

// retire makes readiness fail, so clients are sent to other instances. Requests that still arrive
// are answered, each as the last on its connection, but no request waits in a queue.
func (e *edge) retire() {
	e.ready.stopping.Store(true)
	e.drainer.draining.Store(true)
	if e.envoy != nil {
		e.envoy.Retire()
	}
	e.stopWaiting()
}

// drain stops accepting connections, so clients turn to another instance, and waits for the
// requests in progress. Requests that exceed their share of the time are cut off, because a peer
// that reads slowly must not keep counts from being written.
func (e *edge) drain(ctx context.Context) error {
	ctx, cancel := withShare(ctx, 3.0/4)
	defer cancel()
	e.drainer.draining.Store(true)
	e.stopWaiting()
	failed := closeListener(e.base.listener)
	e.drainer.wait(ctx)
	e.drainer.closeUnused()
	return errors.Join(failed, e.shutdown(ctx, e.http))
}

// shutdown closes a server after it has answered the requests in progress, or when ctx ends.
// Requests that are cut off then are logged and do not count as an error.
func (e *edge) shutdown(ctx context.Context, server *http.Server) error {
	err := server.Shutdown(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.base.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "aborting unfinished requests",
			slog.Bool("operators", server == e.ops))
		return server.Close()
	case errors.Is(err, net.ErrClosed): // drain has closed the listener
		return nil
	}
	return err
}
