package heapfloor

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

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
	percent, limit := debug.SetGCPercent(usual), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	runtime.GC()
}

// knobs returns the current settings of the collector.
func knobs() settings {
	return settings{int(read("/gc/gogc:percent")), int64(read("/gc/gomemlimit:bytes"))}
}

// settled waits until the settings follow the last collection.
func settled(t *testing.T, what string, ok func(settings) bool) {
	t.Helper()
	for range 200 {
		runtime.GC() // the last collection may have begun before the settings followed the one before it
		for range 20 {
			if ok(knobs()) {
				return
			}
			<-time.After(time.Millisecond)
		}
	}
	t.Fatalf("%s: still %+v", what, knobs())
}

// TestSmallHeapIsCollectedSeldom makes half a GiB of garbage besides 2 MiB of live objects. On an
// idle machine that takes over 90 collections without a floor, and 8 or 9 with a floor of 64 MiB.
// On a busy machine the number without a floor depends on how much is allocated during collections.
func TestSmallHeapIsCollectedSeldom(t *testing.T) {
	unset(t)
	hold(t, 2)
	runtime.GC()
	without := waste(512)
	k := Choice{Floor: 64 * mib}.Keep()
	defer k.Stop()
	with := waste(512)
	t.Logf("%d collections without a floor, %d with", without, with)
	if with < 1 || with > 24 {
		t.Errorf("%d collections with a floor, want 8 to 24", with)
	}
}

// TestGoal: a collection is due at the floor, or when the heap has doubled.
func TestGoal(t *testing.T) {
	unset(t)
	for _, tt := range []struct {
		name        string
		held, floor int // MiB
		above       int
		from, to    int // of the next goal
	}{
		{"hardly anything", 1, 64, 100, 62, 70},
		{"a little", 16, 64, 100, 62, 70},
		{"half of the floor", 31, 64, 100, 62, 70},
		{"half of the floor, with less above", 31, 64, 50, 62, 70},
		{"above the floor", 48, 16, 100, 96, 106},
		{"above the floor, with less", 48, 16, 50, 72, 82},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hold(t, tt.held)
			k := newKeeper(Choice{Floor: int64(tt.floor) * mib}, tt.above)
			defer k.Stop()
			runtime.GC()
			k.adjust()
			goal := int(read("/gc/heap/goal:bytes") / mib)
			if goal < tt.from || goal > tt.to {
				t.Errorf("with %d MiB live and a floor of %d the goal is %d MiB, want %d to %d", tt.held, tt.floor, goal, tt.from, tt.to)
			}
		})
	}
}

// TestLargeHeapIsCollectedAsEver: above the floor, collections are the same as in a process without
// a floor, whatever is allocated.
func TestLargeHeapIsCollectedAsEver(t *testing.T) {
	unset(t)
	hold(t, 48)
	k := Choice{Floor: 16 * mib}.Keep()
	defer k.Stop()
	asEver := settings{usual, math.MaxInt64}
	settled(t, "above the floor", func(s settings) bool { return s == asEver })
	for range 20 {
		waste(16)
		check.Equal(t, "settings", knobs(), asEver)
	}
}

// TestSuddenGrowthIsBounded: until GOGC is set again, the memory limit keeps the heap from growing
// by a GOGC meant for a smaller heap.
func TestSuddenGrowthIsBounded(t *testing.T) {
	unset(t)
	const floor = 32 * mib
	k := newKeeper(Choice{Floor: floor}, usual)
	defer k.Stop()
	held = nil
	debug.FreeOSMemory() // the limit includes the current size of the heap
	k.adjust()
	if s := knobs(); s.percent < 400 {
		t.Fatalf("GOGC=%d for a small heap", s.percent)
	}
	hold(t, 24)
	runtime.GC() // without a new setting afterwards
	if goal := read("/gc/heap/goal:bytes"); goal > 2*floor*5/4 {
		t.Errorf("with 24 MiB live the goal is %d MiB, above twice the floor of 32", goal/mib)
	}
	k.adjust()
	check.Equal(t, "settings above half of the floor", knobs(), (settings{usual, math.MaxInt64}))
}

// TestFollowsTheHeap: the settings follow every collection, down and up.
func TestFollowsTheHeap(t *testing.T) {
	unset(t)
	k := Choice{Floor: 32 * mib}.Keep()
	defer k.Stop()
	for range 3 {
		hold(t, 24)
		runtime.GC()
		settled(t, "with 24 MiB", func(s settings) bool { return s == settings{usual, math.MaxInt64} })
		hold(t, 2)
		runtime.GC()
		settled(t, "with 2 MiB", func(s settings) bool { return s.percent > 2*usual && s.limit < math.MaxInt64 })
	}
}

// TestMemoryLimitIsNotRaised: a memory limit from the environment still applies.
func TestMemoryLimitIsNotRaised(t *testing.T) {
	unset(t)
	for _, tt := range []struct {
		name  string
		limit int64
		holds bool // all the time
	}{{"a low one", 40 * mib, true}, {"a high one", 40 << 30, false}} {
		t.Run(tt.name, func(t *testing.T) {
			debug.SetMemoryLimit(tt.limit)
			defer debug.SetMemoryLimit(math.MaxInt64)
			k := newKeeper(Choice{Floor: 64 * mib}, usual)
			k.adjust()
			if s := knobs(); s.limit > tt.limit || (s.limit == tt.limit) != tt.holds {
				t.Errorf("the limit is %d MiB, that of the environment %d", s.limit/mib, tt.limit/mib)
			}
			k.Stop()
			check.Equal(t, "limit afterwards", knobs().limit, tt.limit)
		})
	}
}

func TestStopPutsBackWhatWasSet(t *testing.T) {
	unset(t)
	debug.SetGCPercent(150)
	debug.SetMemoryLimit(1 << 40)
	before := knobs()
	k := Choice{Floor: 64 * mib}.Keep()
	if knobs() == before {
		t.Error("nothing was set")
	}
	k.Stop()
	runtime.GC()
	waste(64)
	check.Equal(t, "settings", knobs(), before)
	k.Stop() // does nothing the second time
	check.Equal(t, "settings", knobs(), before)
}

func TestNoFloorLeavesTheCollectorAlone(t *testing.T) {
	unset(t)
	before := knobs()
	k := Choice{From: "GOGC"}.Keep()
	runtime.GC()
	check.Equal(t, "settings", knobs(), before)
	k.Stop()
}
