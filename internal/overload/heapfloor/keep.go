package heapfloor

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// usual is the GOGC of a process without a floor. It also applies to a heap above the floor unless
// [Choice.KeepAbove] sets another.
const usual = 100

// The floor is raised after this many calls of [Keeper.Raise] within this time. It is lowered when
// there were fewer calls for the same time.
const (
	burst    = 8
	burstFor = 2 * time.Second
	// few is the number of processors up to which the floor is raised. With more, more than two
	// passwords are checked at once. They hold more than half of a floor live, and leave processors
	// free.
	few = 4
)

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
	few    int

	mu      sync.Mutex
	now     settings
	stopped bool
	samples []metrics.Sample
	calls   int              // number of calls of Raise
	recent  [burst]time.Time // times of the last calls
	lower   *time.Timer      // nil: the floor is not raised
	procs   int              // GOMAXPROCS before it was raised; 0: not raised
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
	k := &Keeper{Choice: c, above: above, few: few, stopped: c.Floor == 0, samples: []metrics.Sample{
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
	k.follow()
	return true
}

// follow is adjust with k.mu held.
func (k *Keeper) follow() {
	floor := k.Floor
	if k.lower != nil {
		floor = k.Raised
	}
	metrics.Read(k.samples)
	want := settings{percent: k.percentFor(floor, k.value(liveHeap), k.value(stacks)+k.value(globals)), limit: k.before.limit}
	if want.percent > k.above {
		want.limit = min(want.limit, k.guard(floor))
	}
	k.set(want)
}

// Raise must be called before work that makes much garbage and keeps a processor busy. While there
// is much such work and there are few processors, the floor is the raised one. GOMAXPROCS is then
// one above the number of processors, so that the work does not take a P from other goroutines. A
// GOMAXPROCS below that number is not changed: it was set explicitly, or follows a limit of
// processor time, which more threads would use up sooner.
func (k *Keeper) Raise() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || k.Raised <= k.Floor {
		return
	}
	now := time.Now()
	oldest := &k.recent[k.calls%burst]
	often := now.Sub(*oldest) < burstFor
	*oldest = now
	k.calls++
	switch {
	case !often:
	case k.lower != nil:
		k.lower.Reset(burstFor)
	case min(runtime.GOMAXPROCS(0), runtime.NumCPU()) > k.few: // serve may have raised GOMAXPROCS
	default:
		k.lower = time.AfterFunc(burstFor, k.lowered)
		k.follow()
		if n := runtime.GOMAXPROCS(0); n == runtime.NumCPU() {
			k.procs = n
			runtime.GOMAXPROCS(n + 1)
		}
	}
}

// lowerProcs undoes the change of GOMAXPROCS by Raise.
func (k *Keeper) lowerProcs() {
	switch {
	case k.procs == 0:
	case os.Getenv("GOMAXPROCS") == "":
		runtime.SetDefaultGOMAXPROCS() // it follows changes of the machine again
	default:
		runtime.GOMAXPROCS(k.procs)
	}
	k.procs = 0
}

// lowered undoes Raise and returns the memory to the system. Without much garbage an idle server
// would keep the memory until the next collection, and most of it even longer.
func (k *Keeper) lowered() {
	if k.normal() {
		debug.FreeOSMemory()
	}
}

// normal restores the floor and GOMAXPROCS from before Raise. It returns false after Stop.
func (k *Keeper) normal() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return false
	}
	k.lower = nil
	k.lowerProcs()
	k.follow()
	return true
}

// guard returns the memory limit. Under it, the heap can grow to at most one floor ([Choice].Floor)
// above the present floor, or to its current size if that is larger: a lower limit would make the
// collector run all the time. guard adds an eighth, because the collector stays a little below a
// limit.
func (k *Keeper) guard(present int64) int64 {
	heap := k.value(objects) + k.value(free)
	rest := k.value(total) - k.value(released) - heap
	return rest + max(k.Floor+present, heap)*9/8
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
	k.lowerProcs()
	if k.lower != nil {
		k.lower.Stop()
	}
}

// percentFor returns the GOGC that lets the heap grow to the floor. It never returns less than the
// GOGC above the floor. The next goal is live + (live + roots) * GOGC / 100, or 4 MiB * GOGC / 100
// if that is more.
func (k *Keeper) percentFor(floor, live, roots int64) int {
	most := floor * usual / goMinimum
	if live+roots <= 0 {
		return int(most)
	}
	return int(min(max((floor-live)*100/(live+roots), int64(k.above)), most))
}
