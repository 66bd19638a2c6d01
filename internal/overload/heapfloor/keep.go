package heapfloor

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// usual is the GOGC of a process without a floor. It also applies to a heap above the floor unless
// [Choice.KeepAbove] sets another.
const usual = 100

// Keep lets the heap grow to the floor before a collection is due, until [Keeper.Stop] is called. Call
// it once per process: it changes GOGC and the memory limit.
func (c Choice) Keep() *Keeper { return c.KeepAbove(usual) }

// KeepAbove is [Choice.Keep] with another GOGC than 100 for a heap above the floor. Use a lower one
// for a process with large objects without pointers: a collection then costs little however many
// there are.
func (c Choice) KeepAbove(gogc int) *Keeper {
	k := newKeeper(c, gogc)
	k.collected()
	return k
}

// Keeper sets GOGC and the memory limit after each collection.
type Keeper struct {
	Choice
	before settings
	above  int // GOGC above the floor

	mu      sync.Mutex
	now     settings
	stopped bool
	samples []metrics.Sample
}

// settings are the two settings of the collector.
type settings struct {
	percent int   // GOGC
	limit   int64 // bytes
}

// The metrics that are read, by their index in keeper.samples.
const (
	liveHeap = iota // marked by the last collection
	stacks
	globals
	total // all memory of the Go runtime
	released
	objects // live and dead
	free    // of the heap
)

func newKeeper(c Choice, above int) *Keeper {
	k := &Keeper{Choice: c, above: above, stopped: c.Floor == 0, samples: []metrics.Sample{
		liveHeap: {Name: "/gc/heap/live:bytes"},
		stacks:   {Name: "/gc/scan/stack:bytes"},
		globals:  {Name: "/gc/scan/globals:bytes"},
		total:    {Name: "/memory/classes/total:bytes"},
		released: {Name: "/memory/classes/heap/released:bytes"},
		objects:  {Name: "/memory/classes/heap/objects:bytes"},
		free:     {Name: "/memory/classes/heap/free:bytes"},
	}}
	if k.stopped {
		return k
	}
	k.before = settings{percent: debug.SetGCPercent(usual), limit: debug.SetMemoryLimit(-1)}
	k.now = settings{percent: usual, limit: k.before.limit}
	return k
}

// sentinel becomes unreachable as soon as it is made, so the next collection finds it. It holds a
// pointer, because otherwise it would share its memory block with other objects.
type sentinel struct{ _ *Keeper }

// collected runs after each collection. It adjusts the settings and arranges to run again after the
// next one.
func (k *Keeper) collected() {
	if k.adjust() {
		runtime.AddCleanup(&sentinel{}, (*Keeper).collected, k)
	}
}

// adjust sets GOGC and the memory limit according to the last collection. It returns false after
// Stop.
func (k *Keeper) adjust() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return false
	}
	metrics.Read(k.samples)
	want := settings{percent: k.percentFor(k.value(liveHeap), k.value(stacks)+k.value(globals)), limit: k.before.limit}
	if want.percent > k.above {
		want.limit = min(want.limit, k.guard())
	}
	k.set(want)
	return true
}

// guard returns the memory limit. Under it, the heap can grow to at most twice the floor, or to its
// current size if that is larger: a lower limit would make the collector run all the time. guard
// adds an eighth, because the collector stays a little below a limit.
func (k *Keeper) guard() int64 {
	heap := k.value(objects) + k.value(free)
	rest := k.value(total) - k.value(released) - heap
	return rest + max(2*k.Floor, heap)*9/8
}

func (k *Keeper) value(i int) int64 { return int64(k.samples[i].Value.Uint64()) } //nolint:gosec // bytes of memory

func (k *Keeper) set(want settings) {
	if want.percent != k.now.percent {
		debug.SetGCPercent(want.percent)
	}
	if want.limit != k.now.limit {
		debug.SetMemoryLimit(want.limit)
	}
	k.now = want
}

// Stop restores the previous settings.
func (k *Keeper) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	k.set(k.before)
	k.stopped = true
}

// percentFor returns the GOGC that lets the heap grow to the floor. It never returns less than the
// GOGC above the floor. The next goal is live + (live + roots) * GOGC / 100, or 4 MiB * GOGC / 100
// if that is more.
func (k *Keeper) percentFor(live, roots int64) int {
	most := k.Floor * usual / goMinimum
	if live+roots <= 0 {
		return int(most)
	}
	return int(min(max((k.Floor-live)*100/(live+roots), int64(k.above)), most))
}
