package app

import (
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// fileCalls is the maximum number of concurrent calls of requests to the data file. It is the size
// of one commit. More writes would wait for the next commit anyway, and fewer would make each
// commit smaller and so more expensive per write.
const fileCalls = 1024

// storeQueueOptions returns the options of the queue before the store. With a database, requests get four
// fifths of the connections, so the exchanges between instances always get through. With a file,
// the limit does not adapt to the latency: the latency grows with the number of writes in a commit,
// and so does the throughput.
func storeQueueOptions(s store.Backend, mode ratelimit.Mode) storequeue.Options {
	pool := poolSize(s)
	if pool == 0 {
		return storequeue.Options{Max: fileCalls, Mode: mode}
	}
	most := max(pool*4/5, 1)
	return storequeue.Options{Max: most, Min: max(most/4, 1), Mode: mode}
}

// poolSize returns the maximum number of connections of a store, or 0 for a file.
func poolSize(s store.Backend) int {
	if pool, ok := s.(interface{ Connections() int }); ok {
		return pool.Connections()
	}
	return 0
}
