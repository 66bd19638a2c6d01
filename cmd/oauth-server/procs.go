package main

import (
	"context"
	"log/slog"
	"runtime"

	"oauth-server/internal/config"
)

// raiseProcs sets GOMAXPROCS as [raisedProcs] says for this process. lookup is [os.LookupEnv].
func raiseProcs(ctx context.Context, cfg *config.Config, lookup func(string) (string, bool), log *slog.Logger) {
	n := runtime.GOMAXPROCS(0)
	_, set := lookup("GOMAXPROCS")
	raised := raisedProcs(n, runtime.NumCPU(), set, cfg.Store.Embedded != nil)
	if raised == n {
		return
	}
	runtime.GOMAXPROCS(raised)
	log.LogAttrs(ctx, slog.LevelDebug, "GOMAXPROCS raised for the commits of the embedded store", slog.Int("from", n), slog.Int("to", raised))
}

// raisedProcs returns the GOMAXPROCS of a server: with the embedded store, one above the number of processors. Each commit
// of that store waits in a system call, fdatasync, and Go takes the goroutine's place among those that run (its P)
// away from it only after up to 10 ms. On one processor nothing else runs in that time. A value that the environment sets
// stays.
//
// So does one below the number of processors, as Go chooses for a quota of processor time: with more, the quota would be used
// up sooner. Go rounds a quota up, to two at least, so on one or two processors it never shows. There one more is no
// harm: no more goroutines run at once than there are processors.
func raisedProcs(now, processors int, set, embedded bool) int {
	if set || !embedded || now != processors {
		return now
	}
	return now + 1
}
