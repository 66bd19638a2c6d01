package heapfloor

import (
	"math"
	"runtime"
	"runtime/debug"
)

// Keep lets the heap grow to the floor before a collection is due, until the returned function is
// called. It sets GOGC: 100 is Go's own. Use a lower one for a process with large objects without
// pointers: a collection then costs little however many there are.
func (c Choice) Keep(gogc int) (stop func()) {
	if c.Floor == 0 {
		return func() {}
	}
	ballast := make([]byte, c.Floor*100/int64(100+gogc))
	untouched(ballast)
	percent, limit := debug.SetGCPercent(gogc), debug.SetMemoryLimit(-1)
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit + int64(len(ballast))) // it counts the ballast
	}
	return func() {
		runtime.KeepAlive(ballast)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
