package serve

import (
	"context"
	"log/slog"
	"runtime"

	"oauth-server/internal/config"
)

// raiseProcs sets GOMAXPROCS of this process to the value of [raisedProcs]. lookup is
// [os.LookupEnv].
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

// raisedProcs returns the GOMAXPROCS of a server. With the embedded store, it is one more than the
// number of processors: each commit of that store waits in a system call, fdatasync, and Go takes
// the goroutine's P away only after up to 10 ms. On a single processor, nothing else runs during
// that time.
//
// A value set in the environment is kept. A value below the number of processors is kept too: Go
// chooses it for a CPU quota, and a higher value would use up the quota sooner. Go rounds a quota
// up to at least two, so on one or two processors a quota is not visible here. One more is harmless
// there, because no more goroutines run at once than there are processors.
func raisedProcs(now, processors int, set, embedded bool) int {
	if set || !embedded || now != processors {
		return now
	}
	return now + 1
}
