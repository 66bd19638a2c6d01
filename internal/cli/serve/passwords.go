package serve

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/internal/overload/hashing"
	"oauth-server/internal/secret"
)

// hashSeparately makes password hashing run in processes of the lowest priority, if the
// configuration and the system allow it. Otherwise it logs the reason. closeAll ends these
// processes.
func hashSeparately(ctx context.Context, cfg *config.Config, opts *app.Options) (closeAll func()) {
	pool, err := openPool(cfg, opts.Quota, opts.Logger)
	if err != nil {
		opts.Logger.LogAttrs(ctx, slog.LevelInfo, "hashing passwords in the server process", slog.Any("reason", err))
		return func() {}
	}
	opts.Logger.LogAttrs(ctx, slog.LevelDebug, "hashing passwords in low-priority processes")
	opts.Separate = pool.Compute
	atOnce := secret.PasswordOptions{Concurrency: cfg.Passwords.Concurrency, Memory: opts.Memory}.AtOnce()
	restore := shareMemory(int64(atOnce) * hashing.Memory)
	return func() {
		pool.Close()
		restore()
	}
}

// hashesPasswords reports whether this process hashes the passwords of sign-ins itself. A gateway has
// no sign-ins.
func hashesPasswords(cfg *config.Config, opts *app.Options) bool {
	return opts.Separate == nil && !cfg.Gateway.Enabled()
}

// openPool opens the pool of hashing processes. The error says why there is no pool.
func openPool(cfg *config.Config, quota float64, log *slog.Logger) (*hashing.Pool, error) {
	if cfg.Passwords.Processes == config.ProcessesOff {
		return nil, fmt.Errorf("passwords.processes is %s", config.ProcessesOff)
	}
	if quota > 0 {
		return nil, fmt.Errorf("a CPU quota of %.3g processors throttles all processes alike", quota)
	}
	return hashing.Open(hashing.Options{Logger: log})
}

// shareMemory lowers the memory limit set by GOMEMLIMIT by the memory of the other processes, by
// half at most. The limit is derived from the control group's limit, less a reserve, and those
// processes are in the same group.
func shareMemory(others int64) (restore func()) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(limit - min(others, limit/2))
	return func() { debug.SetMemoryLimit(limit) }
}
