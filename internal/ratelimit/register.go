package ratelimit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"weak"
)

// register holds the lists of limits that policies or counters use, by number. Counters refer to a
// list by its number, so the garbage collector has no pointers to follow. Unused lists are dropped
// by [Counters.Sweep], and when the register has doubled since the last cleanup. Their numbers are
// reused.
var register struct {
	mu     sync.Mutex
	byText map[string]registered
	all    atomic.Pointer[[]*Limits]
	free   []uint32 // numbers below the length of all
	dropAt int      // number of lists at which to drop unused ones
}

// registered is a list, and the copy of it that policies use. A chain of counters can be put under
// the list only with the copy. So once the copy is garbage-collected, the number of chains only
// falls.
type registered struct {
	list *Limits
	copy weak.Pointer[Limits]
}

// leastDropAt is how many lists are kept before unused ones are dropped.
const leastDropAt = 64

// newLimits returns the compiled list, from the register if it has an equal one.
func newLimits(limits []Limit) *Limits {
	register.mu.Lock()
	defer register.mu.Unlock()
	ls := registerLimits(limits, false)
	if ls.strict && ls.predicts == nil { // new, so no other goroutine has it yet
		ls.predicts = registerLimits(limits, true)
	}
	return ls
}

// registerLimits returns a list for dry-run or for enforcement. The mutex of the register must be
// held.
func registerLimits(limits []Limit, dryRun bool) *Limits {
	text := fmt.Sprintf("%t %+v", dryRun, limits)
	known, ok := register.byText[text]
	if ls := known.copy.Value(); ls != nil {
		return ls
	}
	if !ok {
		if len(register.byText) >= max(register.dropAt, leastDropAt) {
			dropLimits()
		}
		known.list = compile(limits, dryRun)
		number(known.list)
	}
	ls := new(Limits)
	*ls = *known.list
	known.copy = weak.Make(ls)
	if register.byText == nil {
		register.byText = map[string]registered{}
	}
	register.byText[text] = known
	return ls
}

// number assigns a number to a list. The mutex of the register must be held. A free number has no
// readers, so its entry may be overwritten.
func number(ls *Limits) {
	all := []*Limits{nil} // no list has the number 0
	if known := register.all.Load(); known != nil {
		all = *known
	}
	if n := len(register.free); n > 0 {
		ls.number = register.free[n-1]
		register.free = register.free[:n-1]
		all[ls.number] = ls
		return
	}
	ls.number = uint32(len(all)) //nolint:gosec // four billion lists do not fit into memory
	all = append(all, ls)
	register.all.Store(&all)
}

// sweepLimits drops unused lists, unless there are few lists in total.
func sweepLimits() {
	register.mu.Lock()
	defer register.mu.Unlock()
	if len(register.byText) > leastDropAt {
		dropLimits()
	}
}

// dropLimits drops the lists that no policy and no counter uses. The mutex of the register must be
// held.
func dropLimits() {
	all := *register.all.Load()
	for text, r := range register.byText {
		if r.copy.Value() == nil && r.list.chains.Load() == 0 {
			all[r.list.number] = nil
			register.free = append(register.free, r.list.number)
			delete(register.byText, text)
		}
	}
	register.dropAt = 2 * len(register.byText)
}

// limitsOf returns the list with the number.
func limitsOf(number uint32) *Limits { return (*register.all.Load())[number] }
