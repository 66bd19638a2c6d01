package ratelimit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"weak"
)

// rule is a limit prepared for decisions: times are int64 milliseconds.
type rule struct {
	Limit
	doc    string // name of the limit in its document ID; empty for the first limit of a policy
	window int64
	frame  int64 // window / frames
	softAt int64
	count  int   // frames that a counter keeps, see frames
	lead   int64 // how far the newest frame is ahead of the present one: 0, or one frame if the limit is strict
	leases bool  // admits from permits
}

// Limits is a compiled list of limits that apply together. It must not be changed. Equal lists
// share one *Limits while any policy has it.
type Limits struct {
	rules       []rule
	number      uint32        // in the register
	plain       bool          // one sliding limit with one frame per window: see decidePlain
	strict      bool          // a limit admits from permits
	grants      bool          // a limit counts only requests of certain grants
	predicts    *Limits       // the list for dry-run, see forDryRun; nil: this list
	policyField string        // value of the RateLimit-Policy field
	chains      *atomic.Int64 // number of counter chains under this list
}

// compile returns the list without a number, either for dry-run or for enforcement.
func compile(limits []Limit, dryRun bool) *Limits {
	ls := &Limits{rules: make([]rule, len(limits)), policyField: fields.policy(limits), chains: new(atomic.Int64)}
	for i, l := range limits {
		r := rule{Limit: l, window: l.Window.Milliseconds(), softAt: l.softAt()}
		r.frame = r.window / int64(l.Frames)
		r.count = l.Frames + 1
		if l.Strict {
			r.count, r.lead, r.leases = l.Frames+2, r.frame, !dryRun
			ls.strict = !dryRun
		}
		ls.grants = ls.grants || l.Grants != 0
		if i > 0 {
			r.doc = l.Name
		}
		ls.rules[i] = r
	}
	ls.plain = len(limits) == 1 && limits[0].Frames == 1 && limits[0].Algorithm == Sliding && !limits[0].Strict && limits[0].Grants == 0
	return ls
}

// forDryRun returns the list that dry-run and candidates count under. Its strict limits take no
// permits, because a request would have to wait for them. They decide at once from the known
// counts, as if permits always arrived. Do not call it on a list returned by limitsOf.
func (ls *Limits) forDryRun() *Limits {
	if ls.predicts == nil {
		return ls
	}
	return ls.predicts
}

// All returns the limits, in the order of the policy; nil if there is no list.
func (ls *Limits) All() []Limit {
	if ls == nil {
		return nil
	}
	out := make([]Limit, len(ls.rules))
	for i := range ls.rules {
		out[i] = ls.rules[i].Limit
	}
	return out
}

// frames returns how many frames a counter keeps: the current frame, and enough older ones to cover
// a window. Under a strict limit it also keeps the next frame, so that it can take permits for it.
func (r *rule) frames() int { return r.count }

// isFar reports whether the frames of a counter do not fit into its hot record.
func (r *rule) isFar() bool { return r.count > len(hot{}.near) }

// newest returns the start of the newest frame that a counter keeps.
func (r *rule) newest(ms int64) int64 { return r.align(ms) + r.lead }

// sameFrames reports whether counters under both rules keep the same frames and both use permits or
// neither does.
func (r *rule) sameFrames(o *rule) bool {
	return r.frame == o.frame && r.Frames == o.Frames && r.Strict == o.Strict && r.leases == o.leases
}

// align returns the start of the frame that contains the time. Both are in milliseconds since the
// epoch.
func (r *rule) align(ms int64) int64 { return alignTo(ms, r.frame) }

func alignTo(ms, frame int64) int64 {
	m := ms % frame
	if m < 0 {
		m += frame // before 1970
	}
	return ms - m
}

// frameName returns the name of a frame in a document: its start since the epoch, in seconds if
// frames are whole seconds, and in milliseconds otherwise.
func frameName(start, frame int64) int64 {
	if frame%1000 == 0 {
		return start / 1000
	}
	return start
}

// maxSlots is the largest number of frames that a counter keeps.
const maxSlots = MaxFrames + 2

// firstMillisName is the smallest name in milliseconds: March 1973. In seconds it would be the year
// 5138.
const firstMillisName = 100_000_000_000

// FrameStart returns the start of the frame with that name in a document, in milliseconds since the
// epoch.
func FrameStart(name int64) int64 {
	if name < firstMillisName {
		return name * 1000
	}
	return name
}

// ceilSeconds rounds milliseconds up to seconds.
func ceilSeconds(ms int64) int64 { return (ms + 999) / 1000 }

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
