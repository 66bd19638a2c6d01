package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/grants"
)

// configFileCheck is how often the configuration file is read. That notices every way of replacing it, as
// for certificates.
const configFileCheck = 2 * time.Second

// configFile uses what changes in the configuration file while the server runs, as far as it can change
// then. A file that is not valid as a whole is not used at all.
type configFile struct {
	sources  config.Sources // with the path of the file; empty: there is none
	started  *config.Config
	inUse    atomic.Pointer[config.Config]
	log      *slog.Logger
	level    *slog.LevelVar // nil: it stays as it is
	limiter  *limiter
	overload func(config.Overload) // uses a changed one
	statusOf atomic.Pointer[fileStatus]

	mu   sync.Mutex // one look at a time
	text []byte     // that is in use; nil: that of the start
	seen []byte     // at the last look; nil if it could not be read
}

// fileStatus is what came of the last look.
type fileStatus struct {
	at      time.Time // when the file in use was first seen
	refused error     // why the newest is not in use; nil if it is
	restart []string  // fields that take effect at the next start only
}

func newConfigFile(l *limiter, opts Options) *configFile {
	c := &configFile{started: l.base.cfg, log: l.base.log, level: opts.Level, limiter: l, overload: l.base.overload.set}
	if opts.Sources != nil {
		c.sources = *opts.Sources
		c.sources.File = regular(opts.Sources.Path())
	}
	c.inUse.Store(c.started)
	c.statusOf.Store(&fileStatus{at: time.Now()})
	return c
}

// regular returns the path of a file that can be read again. A pipe, such as that of a shell's <(…), has
// nothing any more once it was read. A file that is missing was there at the start, and comes back.
func regular(path string) string {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// exists reports whether there is a file to follow.
func (c *configFile) exists() bool { return c.sources.File != "" }

func (c *configFile) status() fileStatus { return *c.statusOf.Load() }

// look reads the file, and uses it if it has changed. One that is written in place may be read half
// written, and half a file can be valid. So it is used when it is the same at two looks.
func (c *configFile) look(ctx context.Context) error { return c.read(ctx, false) }

// lookAtOnce is look for an operator who says that the file is as it should be.
func (c *configFile) lookAtOnce(ctx context.Context) error {
	if !c.exists() {
		return nil
	}
	return c.read(ctx, true)
}

// read uses the file if it is to be used. An error is why the newest file is not in use; each one is logged,
// and so is what an operator asked for.
func (c *configFile) read(ctx context.Context, asked bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.status()
	now, err := c.next(ctx, before, asked)
	if ctx.Err() != nil { // it may be why
		return err
	}
	now.refused = err
	c.statusOf.Store(&now)
	if err != nil && (asked || before.refused == nil || before.refused.Error() != err.Error()) {
		c.log.LogAttrs(ctx, slog.LevelError, "configuration file refused; the last good one stays in use", slog.Any("error", err))
	}
	return err
}

// next returns what comes of another look.
func (c *configFile) next(ctx context.Context, before fileStatus, asked bool) (fileStatus, error) {
	text, err := config.ReadAgain(c.sources.File)
	if err != nil {
		c.seen = nil
		return before, err
	}
	settled, known := same(text, c.seen), before.refused == nil && same(text, c.text)
	c.seen = text
	if !asked && (!settled || known) {
		return before, before.refused
	}
	now, err := c.use(ctx, text)
	if err == nil {
		c.text = text
	}
	return now, err
}

// same reports whether a file was read before with that text.
func same(text, before []byte) bool { return before != nil && bytes.Equal(text, before) }

// use validates a file as a start does, together with what operators changed, and applies what can change
// while the server runs.
func (c *configFile) use(ctx context.Context, text []byte) (fileStatus, error) {
	sources, now := c.sources, c.status()
	sources.Text = text
	next, err := config.Load(sources)
	if err != nil {
		return now, err
	}
	changed := config.Differences(c.inUse.Load(), next)
	if len(changed) > 0 && config.SetsNothing(text) {
		return now, errEmptied
	}
	if slices.ContainsFunc(changed, isOfLimits) {
		if err := c.limiter.rebase(ctx, next); err != nil {
			return now, err
		}
	}
	if c.level != nil {
		c.level.Set(levelOf(next.Log))
	}
	c.limiter.denials.follow(next)
	if slices.ContainsFunc(changed, isOfOverload) {
		c.overload(next.Overload)
	}
	c.inUse.Store(next)
	now.restart = slices.DeleteFunc(config.Differences(c.started, next), isLive)
	if len(changed) > 0 || now.refused != nil {
		now.at = time.Now()
		c.log.LogAttrs(ctx, slog.LevelInfo, "configuration file read again", slog.Any("changed", changed))
	}
	if len(now.restart) > 0 && len(changed) > 0 {
		c.log.LogAttrs(ctx, slog.LevelWarn, "changes in the configuration file need a restart; the others are in use",
			slog.Any("fields", now.restart))
	}
	return now, nil
}

// errEmptied refuses a file without a setting, also one of comments only, that would put back what is in use
// to its default: most likely the file was to be written, and was not.
var errEmptied = errors.New("the configuration file is empty; one that sets nothing has {}")

// errorCodeField is the one live field below rate_limit that is not about limits.
const errorCodeField = "rate_limit.error_code"

// overloadField has the settings of overload control below it, all of which are live.
const overloadField = "overload"

// live are the fields that take effect while the server runs, and those below them.
var live = []string{
	"drain_delay", "shutdown_timeout", "log.level", "log_users", "log_usernames",
	"rate_limit.mode", "rate_limit.instance_mode", "rate_limit.canary_percent", "rate_limit.default", "rate_limit.clients",
	errorCodeField, overloadField,
}

// withLive is a configuration with the live fields of another one.
func withLive(c, from *config.Config) *config.Config {
	next := *c
	next.DrainDelay, next.ShutdownTimeout, next.LogUsernames = from.DrainDelay, from.ShutdownTimeout, from.LogUsernames
	next.Log.Level, next.LogUsers = from.Log.Level, from.LogUsers
	next.Overload = from.Overload
	next.RateLimit.Settings, next.RateLimit.ErrorCode = from.RateLimit.Settings, from.RateLimit.ErrorCode
	return &next
}

func isLive(path string) bool {
	return slices.ContainsFunc(live, func(field string) bool { return path == field || strings.HasPrefix(path, field+".") })
}

func isOfLimits(path string) bool {
	return isLive(path) && strings.HasPrefix(path, "rate_limit.") && path != errorCodeField
}

func isOfOverload(path string) bool { return strings.HasPrefix(path, overloadField+".") }

// limitedCode is the OAuth error code of a 429.
func (c *configFile) limitedCode() grants.ErrorCode {
	return grants.ErrorCode(c.inUse.Load().RateLimit.ErrorCode)
}

// follow looks at each signal, at once, until ctx ends.
func (c *configFile) follow(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			err := c.lookAtOnce(ctx)
			if !c.exists() {
				c.log.LogAttrs(ctx, slog.LevelInfo, "no configuration file to read again")
			} else if err == nil {
				c.log.LogAttrs(ctx, slog.LevelInfo, "configuration file is in use", slog.String("file", c.sources.File))
			}
		}
	}
}

// show is the status for operators.
func (c *configFile) show() adminapi.ConfigFile {
	st := c.status()
	out := adminapi.ConfigFile{ReadAt: st.at.UTC(), RestartNeeded: st.restart, ErrorCode: string(c.limitedCode())}
	if st.refused != nil {
		out.Error = firstProblem(st.refused)
	}
	return out
}

// firstProblem is the first line of an error. A file may have a hundred problems, and the report of an
// instance is stored with each heartbeat; the log has all.
func firstProblem(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if more {
		first += fmt.Sprintf(" (and %d more)", 1+strings.Count(rest, "\n"))
	}
	return first
}

// rebase has the limits of another configuration file lie below what operators changed.
func (l *limiter) rebase(ctx context.Context, cfg *config.Config) error {
	if err := l.policies.Rebase(ctx, cfg.RateLimit.Settings, l.locksOut); err != nil {
		return err
	}
	l.logOverrides(ctx)
	l.warnOfShortCodes(ctx, cfg)
	return nil
}

// locksOut returns an error if policies lock out an operator's client that others do not, as for a change
// by an operator.
func (l *limiter) locksOut(before, after *clientcfg.PolicySnapshot) error {
	if err := l.base.clients.Directory().LockedOut(before, after); err != nil {
		return fmt.Errorf("rate_limit: %w", err)
	}
	return nil
}
