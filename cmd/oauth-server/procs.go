package main

import (
	"context"
	"log/slog"
	"runtime"

	"oauth-server/internal/config"
)

// raiseProcs sets GOMAXPROCS one above the number of processors for a server with the embedded store. Each commit
// of that store waits in a system call, fdatasync, and Go takes the goroutine's place among those that run (its P)
// away from it only after up to 10 ms. On one processor nothing else runs in that time. A GOMAXPROCS of the
// environment, or one that follows from a quota of processor time, is kept: its value differs from that number.
// lookup is [os.LookupEnv].
func raiseProcs(ctx context.Context, cfg *config.Config, lookup func(string) (string, bool), log *slog.Logger) {
	n := runtime.GOMAXPROCS(0)
	if _, set := lookup("GOMAXPROCS"); set || cfg.Store.Embedded == nil || n != runtime.NumCPU() {
		return
	}
	runtime.GOMAXPROCS(n + 1)
	log.LogAttrs(ctx, slog.LevelDebug, "GOMAXPROCS raised for the commits of the embedded store", slog.Int("from", n), slog.Int("to", n+1))
}
