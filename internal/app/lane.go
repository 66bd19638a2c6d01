package app

import (
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// fileCalls is how many calls of requests are at the data file at once. It is what one of its commits takes: more
// writes would wait for the next in any case, and fewer would make commits smaller, hence each of them dearer.
const fileCalls = 1024

// laneOptions returns how calls of requests wait before the store. Of a database they get four fifths of the
// connections, so that what is shared between instances gets through whatever requests do. A file has no limit that
// follows the latency: that grows with the number of writes that share a commit, and so does the throughput.
func laneOptions(s store.Backend, mode ratelimit.Mode) lane.Options {
	pool := poolSize(s)
	if pool == 0 {
		return lane.Options{Max: fileCalls, Mode: mode}
	}
	most := max(pool*4/5, 1)
	return lane.Options{Max: most, Min: max(most/4, 1), Mode: mode}
}

// poolSize is how many connections a store opens at most; 0: it is a file.
func poolSize(s store.Backend) int {
	if pool, ok := s.(interface{ Connections() int }); ok {
		return pool.Connections()
	}
	return 0
}
