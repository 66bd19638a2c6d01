package heapfloor

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// usual is the GOGC of a heap above the floor.
const usual = 100

// Keep lets the heap grow to the floor before a collection is due, until stop is called. Call it once
// per process: it changes GOGC and the memory limit.
func (c Choice) Keep() (stop func()) {
	if c.Floor == 0 {
		return func() {}
	}
	k := newKeeper(c.Floor)
	k.collected()
	return k.stop
}

// keeper sets GOGC and the memory limit after each collection.
type keeper struct {
	floor  int64
	before settings

	mu      sync.Mutex
	now     settings
	stopped bool
	samples []metrics.Sample
}

// settings are the two knobs of the collector.
type settings struct {
	percent int   // GOGC
	limit   int64 // bytes
}

// The figures that are read, by their index in keeper.samples.
const (
	liveHeap = iota // marked by the last collection
	stacks
	globals
	total // all memory of the Go runtime
	released
	objects // live and dead
	free    // of the heap
)

func newKeeper(floor int64) *keeper {
	k := &keeper{floor: floor, samples: []metrics.Sample{
		liveHeap: {Name: "/gc/heap/live:bytes"},
		stacks:   {Name: "/gc/scan/stack:bytes"},
		globals:  {Name: "/gc/scan/globals:bytes"},
		total:    {Name: "/memory/classes/total:bytes"},
		released: {Name: "/memory/classes/heap/released:bytes"},
		objects:  {Name: "/memory/classes/heap/objects:bytes"},
		free:     {Name: "/memory/classes/heap/free:bytes"},
	}}
	k.before = settings{percent: debug.SetGCPercent(usual), limit: debug.SetMemoryLimit(-1)}
	k.now = settings{percent: usual, limit: k.before.limit}
	return k
}

// sentinel is unreachable as soon as it is made, so the next collection finds it. It
// holds a pointer, or it would share its memory with others.
type sentinel struct{ _ *keeper }

// collected is called after each collection: it adjusts, and has itself called after the next.
func (k *keeper) collected() {
	if k.adjust() {
		runtime.AddCleanup(&sentinel{}, (*keeper).collected, k)
	}
}

// adjust sets GOGC and the memory limit by the last collection. It returns false after stop.
func (k *keeper) adjust() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return false
	}
	metrics.Read(k.samples)
	want := settings{percent: percentFor(k.floor, k.value(liveHeap), k.value(stacks)+k.value(globals)), limit: k.before.limit}
	if want.percent > usual {
		want.limit = min(want.limit, k.guard())
	}
	k.set(want)
	return true
}

// guard returns the memory limit under which the heap grows to twice the floor at most, or to what it
// has already: a limit below that would make the collector work all the time. An eighth is added, as
// the collector stays a little below a limit.
func (k *keeper) guard() int64 {
	heap := k.value(objects) + k.value(free)
	rest := k.value(total) - k.value(released) - heap
	return rest + max(2*k.floor, heap)*9/8
}

func (k *keeper) value(i int) int64 { return int64(k.samples[i].Value.Uint64()) } //nolint:gosec // bytes of memory

func (k *keeper) set(want settings) {
	if want.percent != k.now.percent {
		debug.SetGCPercent(want.percent)
	}
	if want.limit != k.now.limit {
		debug.SetMemoryLimit(want.limit)
	}
	k.now = want
}

// stop restores what was set before.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stopped {
		k.set(k.before)
		k.stopped = true
	}
}

// percentFor returns the GOGC with which the heap grows to the floor, but at least to
// twice what is live. The next goal is live + (live + roots) * GOGC / 100, or 4 MiB *
// GOGC / 100 if that is more.
func percentFor(floor, live, roots int64) int {
	most := floor * usual / goMinimum
	if live+roots <= 0 {
		return int(most)
	}
	return int(min(max((floor-live)*100/(live+roots), usual), most))
}
