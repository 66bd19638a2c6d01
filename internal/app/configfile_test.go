package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// followed is a server that follows a configuration file. The test decides when it reads the file.
type followed struct {
	*Server
	t    *testing.T
	path string
	log  check.Buffer
}

const tenPerMinute = "rate_limit: { default: { user: [ { requests: 10 } ] } }\n"

func newFollowed(t *testing.T, path, text string) *followed {
	t.Helper()
	f := &followed{t: t, path: path}
	f.write(text)
	sources := config.Sources{File: path, Flags: []config.FlagValue{
		{Name: "listen", Value: "127.0.0.1:0"}, {Name: "admin-listen", Value: ""}, {Name: "data", Value: filepath.Join(t.TempDir(), "test.db")},
	}}
	cfg, err := config.Load(sources)
	check.OK(t, err)
	opts := Options{Sources: &sources, Level: &slog.LevelVar{}}
	opts.Logger = NewLeveledLogger(cfg.Log, opts.Level, &f.log)
	f.Server = idle(t, cfg, opts)
	return f
}

func (f *followed) write(text string) {
	f.t.Helper()
	check.OK(f.t, os.WriteFile(f.path, []byte(text), 0o600))
}

// look reads the file n times. All reads except the last may fail.
func (f *followed) look(n int) (err error) {
	for range n {
		err = f.limiter.file.look(f.t.Context())
	}
	return err
}

// limit returns the limit of users of any client.
func (f *followed) limit() int64 {
	return f.limiter.policies.Snapshot().For("any").User.All()[0].Requests
}

func (f *followed) shows(metric string) {
	f.t.Helper()
	page := httptest.NewRecorder()
	metrics.Handler(f.base.telemetry.registry).ServeHTTP(page, httptest.NewRequestWithContext(f.t.Context(), "GET", "/metrics", nil))
	if !strings.Contains(page.Body.String(), "\n"+metric+"\n") {
		f.t.Errorf("the metrics do not show %s", metric)
	}
}

// page returns the page at a path, as served to clients.
func (f *followed) page(path string) string {
	f.t.Helper()
	page := httptest.NewRecorder()
	f.edge.http.Handler.ServeHTTP(page, httptest.NewRequestWithContext(f.t.Context(), "GET", path, nil))
	return page.Body.String()
}

// ready returns what /readyz reports about the file while it is ready.
func (f *followed) ready() string {
	f.t.Helper()
	ready := f.edge.ready.report(true)
	check.Equal(f.t, "status", ready.Status, httpapi.Ready)
	return ready.Checks["configuration_file"]
}

// TestRemovedPolicyOfAnUnknownClient checks that the log does not call a client registered because
// the file no longer has a policy for it.
func TestRemovedPolicyOfAnUnknownClient(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), "rate_limit: { clients: { shpo: { trusted: true } } }\n")
	check.OK(t, f.limiter.noteUnregistered(t.Context()))
	f.write(tenPerMinute)
	check.OK(t, f.look(2))
	check.OK(t, f.limiter.noteUnregistered(t.Context()))
	check.Equal(t, "unregistered", strings.Count(f.log.String(), "an unregistered client\" client_id=shpo"), 1)
	check.Equal(t, "registered", strings.Count(f.log.String(), "is now registered"), 0)
}

func TestChangedConfigurationFileIsUsed(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	before := f.limiter.policies.Snapshot()
	check.OK(t, f.look(3))
	if f.limiter.policies.Snapshot() != before || strings.Contains(f.log.String(), "configuration file") {
		t.Errorf("something has changed:\n%s", f.log.String())
	}
	f.write("") // all defaults: valid, but the file is still being written
	check.OK(t, f.look(1))
	f.write("log: { level: warn }\nlog_users: denied\nlog_usernames: true\ndrain_delay: 7s\nshutdown_timeout: 9s\noverload: { mode: dry_run, target: 25ms, max_in_flight: 64 }\n" +
		"rate_limit: { error_code: slow_down, default: { user: [ { requests: 20 } ] }, clients: { shop: { trusted: true } } }\n")
	check.OK(t, f.look(1))
	check.Equal(t, "limit before the second look", f.limit(), int64(10))
	check.OK(t, f.look(1))
	check.Equal(t, "limit", f.limit(), int64(20))
	check.Equal(t, "trusted", f.limiter.policies.Snapshot().For("shop").Trusted, true)
	check.Equal(t, "level", f.opts.Level.Level(), slog.LevelWarn)
	check.Equal(t, "usernames in the log", f.limiter.denials.names.Load(), true)
	check.Equal(t, "all users in the log", f.limiter.denials.all.Load(), false)
	check.Equal(t, "drain delay", f.config().DrainDelay.String(), "7s")
	check.Equal(t, "shutdown timeout", f.config().ShutdownTimeout.String(), "9s")
	check.Equal(t, "code of a 429", strings.Contains(f.page("/docs/rate-limits"), `"error":"slow_down"`), true)
	check.Equal(t, "/readyz", f.ready(), "")
	f.shows("oauth_config_reload_failed 0")
	f.shows("oauth_config_restart_needed 0")
	f.shows(`oauth_overload_mode{mode="dry_run"} 1`)

	f.write(tenPerMinute) // a removed field has its default again
	check.OK(t, f.look(2))
	check.Equal(t, "limit", f.limit(), int64(10))
	check.Equal(t, "level", f.opts.Level.Level(), slog.LevelInfo)
	f.shows(`oauth_overload_mode{mode="enforce"} 1`)
	line := `msg="configuration file reloaded" changed="[drain_delay shutdown_timeout log.level log_users log_usernames rate_limit.error_code rate_limit.default.user rate_limit.clients overload.mode overload.target overload.max_in_flight]"`
	check.Equal(t, "lines in the log", strings.Count(f.log.String(), line), 1) // the first was above the level
}

// An invalid file is not used at all until it is fixed, even if parts of it are valid.
func TestInvalidConfigurationFileIsRefused(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	f.write("rate_limit:\n  default: { user: [ { requests: 20 } ] }\n  mode: no\ndrain_delay: 7\n")
	check.OK(t, f.look(1))
	for range 2 {
		err := f.look(1)
		check.Equal(t, "problems", len(fielderr.Of(err)), 2)
		check.ErrorSays(t, err, "x.yaml:3")
		check.ErrorSays(t, err, "x.yaml:4")
	}
	check.Equal(t, "limit", f.limit(), int64(10))
	check.Equal(t, "/readyz", f.ready(), "the changed file is refused; the last good one stays in use")
	f.shows("oauth_config_reload_failed 1")
	if shown := f.limiter.file.show(); !strings.HasSuffix(shown.Error, " (and 1 more)") {
		t.Errorf("operators are shown %+v", shown)
	}
	f.write(tenPerMinute)
	check.OK(t, f.look(2))
	check.Equal(t, "/readyz", f.ready(), "")
	f.shows("oauth_config_reload_failed 0")

	check.OK(t, os.Remove(f.path))
	check.ErrorSays(t, f.look(1), "no such file")
	f.shows("oauth_config_reload_failed 1")
	f.write(tenPerMinute)
	check.ErrorSays(t, f.look(1), "no such file") // it may be half written
	check.OK(t, f.look(1))
	check.Equal(t, "/readyz", f.ready(), "")
}

// Each refused file is logged once, however soon it follows another one.
func TestEachRefusedConfigurationFileIsLogged(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	for _, wrong := range []string{"drain_delay: 7", "listn: x", "drain_delay: 7"} {
		f.write(wrong)
		check.ErrorSays(t, f.look(4), "x.yaml:1")
	}
	const line = `level=ERROR msg="configuration file rejected; keeping the last valid one" error="`
	check.Equal(t, "lines in the log", strings.Count(f.log.String(), line), 3)
	check.Equal(t, "lines about listn", strings.Count(f.log.String(), line+"listn: unknown field"), 1)
	check.ErrorSays(t, f.limiter.file.lookAtOnce(t.Context()), "x.yaml:1")
	check.Equal(t, "lines in the log after a signal", strings.Count(f.log.String(), line), 4)
}

// A file that sets nothing is probably a mistake. This also holds for the first file read after the
// start.
func TestEmptiedConfigurationFileIsRefused(t *testing.T) {
	for _, empty := range []string{"", " \n", "# rate_limit:\n", "---\n"} {
		f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
		f.write(empty)
		check.ErrorSays(t, f.look(2), "the configuration file is empty")
		check.ErrorSays(t, f.limiter.file.lookAtOnce(t.Context()), "is empty")
		check.Equal(t, "limit", f.limit(), int64(10))
		f.shows("oauth_config_reload_failed 1")
		f.write("{} # all defaults\n")
		check.OK(t, f.look(2))
		check.Equal(t, "limit", f.limit(), int64(100))
	}
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), "# nothing is set\n")
	check.OK(t, f.look(3))
	f.write("# nothing is set yet\n")
	check.OK(t, f.look(3))
	check.Equal(t, "/readyz", f.ready(), "")
}

// A pipe is empty when it is read again, so it is not followed.
func TestConfigurationOfAPipeIsNotFollowed(t *testing.T) {
	r, w, err := os.Pipe()
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, errors.Join(r.Close(), w.Close())) })
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no pipe has a path here: %v", err)
	}
	c := newConfigFile(&limiting{base: &foundation{}}, Options{Sources: &config.Sources{File: path}})
	check.Equal(t, "followed", c.exists(), false)
	check.OK(t, c.lookAtOnce(t.Context()))
	check.Equal(t, "path of a file that is missing for a moment", regular("no/such/file"), "no/such/file")
}

// Fields that cannot change while the server runs are named. All others are applied.
func TestChangesThatNeedARestart(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	f.write("tokens: { access_ttl: 5m }\nrate_limit: { max_keys: 7, default: { user: [ { requests: 20 } ] } }\n")
	check.OK(t, f.look(2))
	check.Equal(t, "limit", f.limit(), int64(20))
	check.Equal(t, "/readyz", f.ready(), "has changes that need a restart: tokens.access_ttl, rate_limit.max_keys")
	f.shows("oauth_config_restart_needed 2")
	check.Equal(t, "shown", f.limiter.file.show().RestartNeeded, []string{"tokens.access_ttl", "rate_limit.max_keys"})
	line := `level=WARN msg="configuration file changes need a restart; all other changes are applied" fields="[tokens.access_ttl rate_limit.max_keys]"`
	check.OK(t, f.look(3))
	check.Equal(t, "lines in the log", strings.Count(f.log.String(), line), 1)
	f.write(tenPerMinute)
	check.OK(t, f.look(2))
	check.Equal(t, "/readyz", f.ready(), "")
	f.shows("oauth_config_restart_needed 0")
}

// A mounted ConfigMap is replaced by changing a symbolic link.
func TestConfigurationFileBehindALink(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		t.Helper()
		check.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		check.OK(t, os.WriteFile(filepath.Join(dir, name, "x.yaml"), []byte(text), 0o600))
		check.OK(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		check.OK(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", tenPerMinute)
	path := filepath.Join(dir, "x.yaml")
	check.OK(t, os.Symlink(filepath.Join("..data", "x.yaml"), path))
	f := newFollowed(t, path, tenPerMinute)
	version("..2", strings.Replace(tenPerMinute, "10", "30", 1))
	check.OK(t, os.RemoveAll(filepath.Join(dir, "..1")))
	check.OK(t, f.look(2))
	check.Equal(t, "limit", f.limit(), int64(30))
}

// After a signal, the file is applied after one read.
func TestConfigurationFileIsReadAtOnce(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute)
	f.write(strings.Replace(tenPerMinute, "10", "30", 1))
	check.OK(t, f.limiter.file.lookAtOnce(t.Context()))
	check.Equal(t, "limit", f.limit(), int64(30))
	f.write("no: 1\n")
	check.ErrorSays(t, f.limiter.file.lookAtOnce(t.Context()), "x.yaml:1")
	f.shows("oauth_config_reload_failed 1")
}

// Every field is live or needs a restart, and the live fields exist.
func TestLiveFieldsExist(t *testing.T) {
	for _, field := range live {
		_, err := strict.At(config.Default(), field)
		check.OK(t, err)
	}
	check.Equal(t, "max_keys is live", isLive("rate_limit.max_keys"), false)
	check.Equal(t, "a default list is live", isLive("rate_limit.default.user"), true)
}

// TestLiveFields checks that a server that restarts within the process takes over exactly the
// fields that can change while it runs.
func TestLiveFields(t *testing.T) {
	started, inUse := config.Default(), config.Default()
	inUse.DrainDelay, inUse.ShutdownTimeout, inUse.LogUsernames, inUse.Log.Level = 1, 2, true, "debug"
	inUse.LogUsers = config.LogDeniedUsers
	inUse.RateLimit.Mode, inUse.RateLimit.CanaryPercent, inUse.RateLimit.MaxKeys = "dry_run", 7, 8
	inUse.RateLimit.ErrorCode = "slow_down"
	inUse.Overload = config.Overload{Mode: "off", Target: 1, MaxInFlight: 2}
	inUse.Listen = "192.0.2.1:1"
	next := started.With(inUse, live)
	check.Equal(t, "not taken over", config.Differences(next, inUse), []string{"listen", "rate_limit.max_keys"})
	for _, path := range config.Differences(started, next) {
		check.Equal(t, path+" is live", isLive(path), true)
	}
}
