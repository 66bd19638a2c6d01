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

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/lockout"
	"oauth-server/internal/config"
	"oauth-server/internal/limiter/oautherr"
)

// configFileCheck is the interval between reads of the configuration file. As for certificates,
// reading detects every way of replacing it.
const configFileCheck = 2 * time.Second

// configFile applies changes of the configuration file while the server runs, as far as they can
// take effect then. An invalid file is not used at all.
type configFile struct {
	sources  config.Sources // with the path of the file; empty: no file
	started  *config.Config
	inUse    atomic.Pointer[config.Config]
	log      *slog.Logger
	level    *slog.LevelVar // nil: not changed
	limiter  *limiting
	overload func(config.Overload) // applies changed overload settings
	statusOf atomic.Pointer[fileStatus]

	mu   sync.Mutex // held while the file is read
	text []byte     // the text in use; nil: the text at the start
	seen []byte     // the text at the last read; nil: unreadable
}

// fileStatus is the result of the last read.
type fileStatus struct {
	at      time.Time // when the file in use was first seen
	refused error     // why the newest file is not in use, or nil
	restart []string  // fields that take effect only after a restart
}

func newConfigFile(l *limiting, opts Options) *configFile {
	c := &configFile{started: l.base.cfg, log: l.base.log, level: opts.Level, limiter: l, overload: l.base.overload.set}
	if opts.Sources != nil {
		c.sources = *opts.Sources
		c.sources.File = regular(opts.Sources.Path())
	}
	c.inUse.Store(c.started)
	c.statusOf.Store(&fileStatus{at: time.Now()})
	return c
}

// regular returns path if the file can be read again, otherwise an empty string. A pipe, such as
// <(…) of a shell, is empty after the first read. A missing file existed at the start and may come
// back.
func regular(path string) string {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// exists reports whether there is a file to follow.
func (c *configFile) exists() bool { return c.sources.File != "" }

func (c *configFile) status() fileStatus { return *c.statusOf.Load() }

// look reads the file and applies it if it has changed. A file that is being overwritten may be
// half written, and half a file can be valid. So look applies a file only if two reads in a row
// return the same text.
func (c *configFile) look(ctx context.Context) error { return c.read(ctx, false) }

// lookAtOnce is like look, but applies the file after one read, because an operator asked for it.
func (c *configFile) lookAtOnce(ctx context.Context) error {
	if !c.exists() {
		return nil
	}
	return c.read(ctx, true)
}

// read applies the file if needed. It returns the reason if the newest file is not in use. It logs
// each new reason, and every reason if an operator asked.
func (c *configFile) read(ctx context.Context, asked bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.status()
	now, err := c.next(ctx, before, asked)
	if ctx.Err() != nil { // the end of ctx may have caused err
		return err
	}
	now.refused = err
	c.statusOf.Store(&now)
	if err != nil && (asked || before.refused == nil || before.refused.Error() != err.Error()) {
		c.log.LogAttrs(ctx, slog.LevelError, "configuration file rejected; keeping the last valid one", slog.Any("error", err))
	}
	return err
}

// next returns the status after another read.
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

// same reports whether the file was read before and had the same text.
func same(text, before []byte) bool { return before != nil && bytes.Equal(text, before) }

// use validates a file as at startup, together with the changes by operators, and applies the
// fields that can change while the server runs.
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
		c.log.LogAttrs(ctx, slog.LevelInfo, "configuration file reloaded", slog.Any("changed", changed))
	}
	if len(now.restart) > 0 && len(changed) > 0 {
		c.log.LogAttrs(ctx, slog.LevelWarn, "configuration file changes need a restart; all other changes are applied",
			slog.Any("fields", now.restart))
	}
	return now, nil
}

// errEmptied refuses a file that sets nothing, for example only comments, if it would reset
// settings in use to their defaults. Most likely the file is still being written.
var errEmptied = errors.New("the configuration file is empty; write {} to set nothing")

// errorCodeField is the one live field below rate_limit that is not about limits.
const errorCodeField = "rate_limit.error_code"

// overloadField is the parent of the overload control settings, which are all live.
const overloadField = "overload"

// live lists the fields that take effect while the server runs, including the fields below them.
var live = []string{
	"admin_profiles", "drain_delay", "shutdown_timeout", "log.level", "log_users", "log_usernames",
	"rate_limit.mode", "rate_limit.instance_mode", "rate_limit.canary_percent", "rate_limit.default", "rate_limit.clients",
	errorCodeField, overloadField,
}

func isLive(path string) bool {
	return slices.ContainsFunc(live, func(field string) bool { return path == field || strings.HasPrefix(path, field+".") })
}

func isOfLimits(path string) bool {
	return isLive(path) && strings.HasPrefix(path, "rate_limit.") && path != errorCodeField
}

func isOfOverload(path string) bool { return strings.HasPrefix(path, overloadField+".") }

// limitedCode returns the OAuth error code of a 429.
func (c *configFile) limitedCode() oautherr.Code {
	return oautherr.Code(c.inUse.Load().RateLimit.ErrorCode)
}

// follow reads the file at once after each signal, until ctx ends.
func (c *configFile) follow(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			err := c.lookAtOnce(ctx)
			if !c.exists() {
				c.log.LogAttrs(ctx, slog.LevelInfo, "no configuration file to reload")
			} else if err == nil {
				c.log.LogAttrs(ctx, slog.LevelInfo, "configuration file unchanged", slog.String("file", c.sources.File))
			}
		}
	}
}

// show returns the status for operators.
func (c *configFile) show() adminapi.ConfigFile {
	st := c.status()
	out := adminapi.ConfigFile{ReadAt: st.at.UTC(), RestartNeeded: st.restart, ErrorCode: string(c.limitedCode())}
	if st.refused != nil {
		out.Error = firstProblem(st.refused)
	}
	return out
}

// firstProblem returns the first line of an error. A file may have a hundred problems, and each
// heartbeat stores the report of the instance. The log has all of them.
func firstProblem(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if more {
		first += fmt.Sprintf(" (and %d more)", 1+strings.Count(rest, "\n"))
	}
	return first
}

// rebase puts the limits of another configuration file below the changes by operators.
func (l *limiting) rebase(ctx context.Context, cfg *config.Config) error {
	if err := l.policies.Rebase(ctx, cfg.RateLimit.Settings, l.locksOut); err != nil {
		return err
	}
	l.logOverrides(ctx)
	l.warnOfShortCodes(ctx, cfg)
	return nil
}

// locksOut returns an error if new policies lock out an operator's client that the old ones do not,
// as for a change by an operator.
func (l *limiting) locksOut(before, after *clientcfg.PolicySnapshot) error {
	if err := lockout.Newly(l.base.clients.Directory(), before, after); err != nil {
		return fmt.Errorf("rate_limit: %w", err)
	}
	return nil
}
