package ratelimit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"weak"
)

// register holds the lists of limits that policies or counters have, by number. Counters refer to a list
// by its number, so that the garbage collector has no pointer to follow. A list that neither has is
// dropped, by [Counters.Sweep] or when there are twice as many as were left the last time, and its number
// is used again.
var register struct {
	mu     sync.Mutex
	byText map[string]registered
	all    atomic.Pointer[[]*Limits]
	free   []uint32 // numbers below the length of all
	dropAt int      // how many lists
}

// registered is a list and the copy of it that policies have. Only with the copy can a chain of counters
// be put under the list. So once the copy is gone, the number of chains only falls.
type registered struct {
	list *Limits
	copy weak.Pointer[Limits]
}

// leastDropAt is how many lists are kept without looking for those that nothing has.
const leastDropAt = 64

// newLimits returns the compiled list, from the register if it is there.
func newLimits(limits []Limit) *Limits {
	register.mu.Lock()
	defer register.mu.Unlock()
	ls := registerLimits(limits, false)
	if ls.strict && ls.predicts == nil { // new, so nobody else has it yet
		ls.predicts = registerLimits(limits, true)
	}
	return ls
}

// registerLimits returns a list for dry-run or to be enforced. The mutex of the register must be held.
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

// number gives a list a number. The mutex of the register must be held. No one reads at a number that
// is free, so its place may be written to.
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

// sweepLimits drops the lists that nothing has, unless there are few at all.
func sweepLimits() {
	register.mu.Lock()
	defer register.mu.Unlock()
	if len(register.byText) > leastDropAt {
		dropLimits()
	}
}

// dropLimits drops the lists that no policy and no counter has. The mutex of the register must be held.
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
