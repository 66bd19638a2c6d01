package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/app/connbound"
	"oauth-server/internal/app/observed"
	"oauth-server/internal/app/repositories"
	"oauth-server/internal/background"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/syncer/clock"
)

// foundation is the first stage: the parts that the other stages use, and everything that is
// opened.
type foundation struct {
	cfg       *config.Config
	log       *slog.Logger
	clock     *clock.Clock // for all counts
	telemetry *telemetry
	listener  net.Listener // for clients
	operators net.Listener // nil: operators are not served
	envoy     net.Listener // for Envoy; nil: not served
	issuer    string
	backend   repositories.Backend
	data      store.Backend // backend with metrics; request operations wait in the store queue
	follower  *store.Follower
	// store is the backend with its repositories. Their writes notify the follower.
	store       Store
	backups     *backups // of the data file; nil for MongoDB
	loops       *background.Group
	cert        *certificate // nil: plain HTTP
	adminCert   *certificate // the same for operators
	keys        *keys.Ring
	keysChanged <-chan struct{} // receives a value after keys were added or withdrawn
	mac         *keys.MAC
	clients     *clientcfg.Source
	passwords   *secret.Passwords
	uses        *clientcfg.Uses // of client secrets
	overload    *overloadControl
	bounds      *connbound.Bounds // of connections
}

// newFoundation opens everything, in the order of the fields. It pushes each close function to undo
// at once, so it is called even if a later step fails.
func newFoundation(ctx context.Context, cfg *config.Config, opts Options, undo *teardown) (*foundation, error) {
	f := &foundation{cfg: cfg, log: opts.Logger, clock: clock.New(nil)}
	var err error
	if f.telemetry, err = newTelemetry(ctx, cfg, opts.Logger); err != nil {
		return nil, err
	}
	undo.push("tracing", f.telemetry.tracer.Shutdown)
	if err := f.listen(ctx, undo); err != nil {
		return nil, err
	}
	f.issuer = IssuerFor(cfg, f.listener.Addr())
	if f.isGateway() && cfg.Issuer == "" {
		if f.issuer = f.adminURL(); f.issuer == "" { // without an admin address, operators need no tokens
			f.issuer = "http://127.0.0.1"
		}
	}
	if f.backend, err = migrateAndOpen(ctx, cfg, f.log); err != nil {
		return nil, err
	}
	undo.push("the store", func(context.Context) error { return f.backend.Close() })
	f.bounds = connbound.New(cfg, connbound.OpenFiles(), opts.Memory, poolSize(f.backend), f.log)
	f.telemetry.WatchConnections(f.bounds.Stats)
	f.backups = newBackups(cfg, f.backend, opts.Prepare != nil)
	f.overload = newOverload(cfg.Overload, f.backend)
	f.overload.shedder.SetQuota(opts.Quota)
	f.data = observed.New(f.backend, observed.Options{Observer: f.telemetry, Queue: f.overload.storeQueue, Pauser: f.overload.shedder})
	// Only one caller follows at a time, so its operations need not wait in the store queue.
	if f.follower, err = store.NewFollower(ctx, observed.New(f.backend, observed.Options{Observer: f.telemetry})); err != nil {
		return nil, err
	}
	f.store = Store{Backend: f.backend, All: repositories.Of(f.follower)}
	f.loops = background.NewGroup(context.WithoutCancel(ctx), f.log, f.telemetry.Panic)
	undo.push("background loops", f.stopLoops)
	undo.push("the verification of the database", f.verifyStore(ctx))
	if opts.Prepare != nil {
		if err := opts.Prepare(ctx, f.store); err != nil {
			return nil, err
		}
	}
	if err := f.loadCertificates(); err != nil {
		return nil, err
	}
	if f.keys, err = openKeys(ctx, f); err != nil {
		return nil, err
	}
	if f.keysChanged, err = f.store.Changes(ctx); err != nil {
		return nil, err
	}
	secrets, err := cfg.Keys.Secrets()
	if err != nil {
		return nil, err
	}
	if f.mac, err = keys.OpenMAC(ctx, f.store, secrets, f.log); err != nil {
		return nil, err
	}
	f.uses = clientcfg.NewUses(f.store)
	undo.push("the last uses of secrets", f.lastWrite(f.uses.Flush, 1, slog.LevelInfo, "last uses of secrets not stored at shutdown"))
	if f.clients, err = clientcfg.NewSource(ctx, f.follower, f.log); err != nil {
		return nil, err
	}
	f.passwords = secret.NewPasswords(secret.PasswordOptions{
		Concurrency: cfg.Passwords.Concurrency, Memory: opts.Memory,
		Separate: opts.Separate, Hashed: f.telemetry.PasswordHashed,
	})
	return f, nil
}

// followKeys publishes added keys, and stops accepting tokens signed with withdrawn keys.
func (f *foundation) followKeys(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.keysChanged:
		}
		for err := f.keys.Refresh(ctx); err != nil; err = f.keys.Refresh(ctx) {
			f.log.LogAttrs(ctx, slog.LevelError, "refresh of signing keys failed; keeping the last valid ones", slog.Any("error", err))
			if !background.Sleep(ctx, keysRetryEvery) {
				return nil
			}
		}
	}
}

// stopLoops ends the background work before the store closes.
func (f *foundation) stopLoops(context.Context) error {
	f.loops.Cancel()
	f.loops.Wait()
	return nil
}

// loadCertificates loads the certificates of the HTTPS listeners.
func (f *foundation) loadCertificates() (err error) {
	if f.cfg.TLS.Enabled() {
		if f.cert, err = loadCertificate(f.cfg.TLS, "", f.log); err != nil {
			return err
		}
	}
	if own := f.cfg.OperatorTLS(); own.Enabled() && f.operators != nil {
		f.adminCert, err = loadCertificate(own, f.cfg.AdminClientCA, f.log)
	}
	return err
}

// listen binds the addresses for clients, operators and Envoy. operators stays nil if there is no
// address, or if the default address is in use, so a second server on the same machine can start.
func (f *foundation) listen(ctx context.Context, undo *teardown) (err error) {
	bind := func(name, flag, address string) (net.Listener, error) {
		if address == "" {
			return nil, nil
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w; set another address with --%[1]s or in the configuration file", flag, err)
		}
		undo.push(name, func(context.Context) error { return closeListener(l) })
		return l, nil
	}
	if f.listener, err = bind("listening", "listen", f.cfg.Listen); err != nil {
		return err
	}
	f.operators, err = bind("listening for operators", "admin-listen", f.cfg.AdminListen)
	if err != nil && (!errors.Is(err, syscall.EADDRINUSE) || f.cfg.AdminListen != config.DefaultAdminListen) { // serveOperators logs it
		return err
	}
	f.envoy, err = bind("listening for Envoy", "envoy-listen", f.cfg.Gateway.EnvoyListen)
	return err
}

// closeListener closes a listener, which its server may have closed already.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// IssuerFor returns the configured issuer. By default, it is the URL of the listening loopback
// address.
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

// isGateway reports whether clients get the upstream of the gateway instead of the endpoints of
// this server.
func (f *foundation) isGateway() bool { return f.cfg.Gateway.Enabled() }

// adminURL returns the URL of the admin API, or an empty string if it is not served.
func (f *foundation) adminURL() string {
	switch {
	case f.operators == nil:
		return ""
	case f.adminCert != nil:
		return "https://" + f.operators.Addr().String()
	}
	return "http://" + f.operators.Addr().String()
}

// localAccess returns how commands on this machine reach the admin API. It returns nil if the API
// is not served on a loopback address, or if the store is not a file.
func (f *foundation) localAccess() *adminlocal.Access {
	if f.operators == nil || f.cfg.Store.Embedded == nil {
		return nil
	}
	address, err := netip.ParseAddrPort(f.operators.Addr().String())
	switch ip := address.Addr().Unmap(); {
	case err != nil:
		return nil
	case ip == netip.IPv6Unspecified() || ip == netip.IPv4Unspecified():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		address = netip.AddrPortFrom(ip, address.Port())
	case !ip.IsLoopback():
		return nil
	}
	scheme, _, _ := strings.Cut(f.adminURL(), "://")
	access := adminlocal.New(scheme + "://" + address.String())
	return &access
}

func openKeys(ctx context.Context, f *foundation) (*keys.Ring, error) {
	secrets, err := f.cfg.Keys.Secrets()
	if err != nil {
		return nil, err
	}
	ring, err := keys.Open(ctx, f.store, keys.Options{
		Issuer:        f.issuer,
		Algorithm:     f.cfg.Tokens.Algorithm,
		TokenLifetime: f.cfg.Tokens.AccessTTL.Std(),
		RotateEvery:   f.cfg.Tokens.KeyRotation.Std(),
		Secrets:       secrets,
		Logger:        f.log,
	})
	if err != nil {
		return nil, ExplainKeys(err)
	}
	if secrets.Current == nil {
		level := slog.LevelWarn
		if f.cfg.LoopbackListen() {
			level = slog.LevelInfo // most likely a developer's machine
		}
		why := "keys.secret is not set"
		if secrets.Second != nil { // the first rollout of a secret
			why = "none is first in keys.secret"
		}
		for _, kid := range ring.InClear() {
			f.log.LogAttrs(ctx, level, "signing key stored unencrypted", slog.String("reason", why), slog.String("kid", kid))
		}
	}
	return ring, nil
}

// ExplainKeys adds advice to an error about a signing key.
func ExplainKeys(err error) error {
	switch {
	case errors.Is(err, keys.ErrNoSecret):
		return fmt.Errorf("%w: set its secret in OAUTH_KEYS_SECRET or keys.secret_file", err)
	case errors.Is(err, keys.ErrOtherSecret):
		return fmt.Errorf("%w: add its secret after a comma in OAUTH_KEYS_SECRET or keys.secret_file; "+
			"if it is lost, stop all servers and run oauth-server keys rotate --now --secret-lost", err)
	case errors.Is(err, keys.ErrDamaged):
		return fmt.Errorf("%w: restore the store from a backup, or replace all keys with oauth-server keys rotate --now", err)
	}
	return err
}
