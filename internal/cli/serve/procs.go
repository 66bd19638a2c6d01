package serve

import (
	"context"
	"log/slog"
	"runtime"
)

// raiseProcs sets GOMAXPROCS of this process to the value of [raisedProcs]. lookup is
// [os.LookupEnv].
func raiseProcs(ctx context.Context, held bool, lookup func(string) (string, bool), log *slog.Logger) {
	n := runtime.GOMAXPROCS(0)
	_, set := lookup("GOMAXPROCS")
	raised := raisedProcs(n, runtime.NumCPU(), set, held)
	if raised == n {
		return
	}
	runtime.GOMAXPROCS(raised)
	log.LogAttrs(ctx, slog.LevelDebug, "GOMAXPROCS raised for store commits or password hashing", slog.Int("from", n), slog.Int("to", raised))
}

// raisedProcs returns the GOMAXPROCS of a server. It is one more than the number of processors if
// work of the server holds a P for up to 10 ms: a commit of the embedded store, which waits in a
// system call, fdatasync, or a password that the server hashes itself. On a single processor,
// nothing else would run during that time.
//
// A value set in the environment is kept. A value below the number of processors is kept too: Go
// chooses it for a CPU quota, and a higher value would use up the quota sooner. Go rounds a quota
// up to at least two, so on one or two processors a quota is not visible here. One more is harmless
// there, because no more goroutines run at once than there are processors.
func raisedProcs(now, processors int, set, held bool) int {
	if set || !held || now != processors {
		return now
	}
	return now + 1
}
