package heapfloor

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"oauth-server/internal/check"
)

// The tests keep held alive, and not garbage.
var (
	held    [][]byte
	garbage []byte
)

// hold keeps n MiB alive, and releases everything else.
func hold(t *testing.T, n int) {
	t.Helper()
	held = nil
	for range n * 16 {
		held = append(held, make([]byte, mib/16))
	}
	t.Cleanup(func() { held = nil; runtime.GC() })
}

// waste allocates n MiB of garbage in small pieces, as a server does, and returns how many
// collections that took.
func waste(n int) (cycles uint64) {
	before := read("/gc/cycles/total:gc-cycles")
	for range n * 256 {
		garbage = make([]byte, 4096)
	}
	return read("/gc/cycles/total:gc-cycles") - before
}

func read(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// unset resets the collector to the settings of a process without a floor.
func unset(t *testing.T) {
	t.Helper()
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	runtime.GC()
}

// TestSmallHeapIsCollectedSeldom makes half a GiB of garbage besides 2 MiB of live objects. On an
// idle machine that takes over 90 collections without a floor, and 8 or 9 with a floor of 64 MiB.
// On a busy machine the number without a floor depends on how much is allocated during collections.
func TestSmallHeapIsCollectedSeldom(t *testing.T) {
	unset(t)
	hold(t, 2)
	runtime.GC()
	without := waste(512)
	defer Choice{Floor: 64 * mib}.Keep(100)()
	runtime.GC()
	with := waste(512)
	t.Logf("%d collections without a floor, %d with", without, with)
	if with < 1 || with > 24 {
		t.Errorf("%d collections with a floor, want 8 to 24", with)
	}
}

// TestGoal: a collection is due at the floor if hardly anything is live, and each live byte adds two,
// or less with a lower GOGC.
func TestGoal(t *testing.T) {
	unset(t)
	for _, tt := range []struct {
		held, floor int // MiB
		gogc        int
		from, to    int // of the next goal
	}{
		{1, 64, 100, 64, 74},
		{16, 64, 100, 94, 104},
		{1, 64, 50, 64, 72},
		{48, 16, 50, 86, 96},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			hold(t, tt.held)
			defer Choice{Floor: int64(tt.floor) * mib}.Keep(tt.gogc)()
			runtime.GC()
			goal := int(read("/gc/heap/goal:bytes") / mib)
			if goal < tt.from || goal > tt.to {
				t.Errorf("with %d MiB live and a floor of %d the goal is %d MiB, want %d to %d", tt.held, tt.floor, goal, tt.from, tt.to)
			}
		})
	}
}

// TestSettings: a memory limit from the environment applies to all but the ballast. Stop restores
// what was set. Without a floor nothing is changed.
func TestSettings(t *testing.T) {
	unset(t)
	for _, tt := range []struct{ floor, before, limit int64 }{
		{64 * mib, 1 << 40, 1<<40 + 32*mib},
		{64 * mib, math.MaxInt64, math.MaxInt64},
		{0, 1 << 40, 1 << 40},
	} {
		debug.SetMemoryLimit(tt.before)
		debug.SetGCPercent(150)
		stop := Choice{Floor: tt.floor}.Keep(100)
		check.Equal(t, "limit", debug.SetMemoryLimit(-1), tt.limit)
		stop()
		check.Equal(t, "limit afterwards", debug.SetMemoryLimit(-1), tt.before)
		check.Equal(t, "GOGC afterwards", debug.SetGCPercent(150), 150)
	}
}
