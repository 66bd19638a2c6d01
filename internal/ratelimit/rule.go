package ratelimit

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"weak"
)

// Rule is a limit prepared for decisions: times are int64 milliseconds.
type Rule struct {
	Limit
	Doc      string // name of the limit in its document ID; empty for the first limit of a policy
	WindowMS int64
	FrameMS  int64 // window / frames
	SoftAt   int64
	count    int   // frames that a counter keeps, see Kept
	LeadMS   int64 // how far the newest frame is ahead of the present one: 0, or one frame if the limit is strict
	Leases   bool  // admits from permits
}

// Limits is a compiled list of limits that apply together. It must not be changed. Equal lists
// share one *Limits while any policy has it.
type Limits struct {
	Rules       []Rule
	Number      uint32        // in the register
	plain       bool          // one sliding limit with one frame per window: see Effective.Plain
	Strict      bool          // a limit admits from permits
	grants      bool          // a limit counts only requests of certain grants
	predicts    *Limits       // the list for dry-run, see forDryRun; nil: this list
	policyField string        // value of the RateLimit-Policy field
	chains      *atomic.Int64 // number of counter chains under this list
}

// compile returns the list without a number, either for dry-run or for enforcement.
func compile(limits []Limit, dryRun bool) *Limits {
	ls := &Limits{Rules: make([]Rule, len(limits)), policyField: policyField(limits), chains: new(atomic.Int64)}
	for i, l := range limits {
		r := Rule{Limit: l, WindowMS: l.Window.Milliseconds(), SoftAt: l.softAt()}
		r.FrameMS = r.WindowMS / int64(l.Frames)
		r.count = l.Frames + 1
		if l.Strict {
			r.count, r.LeadMS, r.Leases = l.Frames+2, r.FrameMS, !dryRun
			ls.Strict = !dryRun
		}
		ls.grants = ls.grants || l.Grants != 0
		if i > 0 {
			r.Doc = l.Name
		}
		ls.Rules[i] = r
	}
	ls.plain = len(limits) == 1 && limits[0].Frames == 1 && limits[0].Algorithm == Sliding && !limits[0].Strict && limits[0].Grants == 0
	return ls
}

// forDryRun returns the list that dry-run and candidates count under. Its strict limits take no
// permits, because a request would have to wait for them. They decide at once from the known
// counts, as if permits always arrived. Do not call it on a list returned by LimitsOf.
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
	out := make([]Limit, len(ls.Rules))
	for i := range ls.Rules {
		out[i] = ls.Rules[i].Limit
	}
	return out
}

// Kept returns how many frames a counter keeps: the current frame, and enough older ones to cover
// a window. Under a strict limit it also keeps the next frame, so that it can take permits for it.
func (r *Rule) Kept() int { return r.count }

// NearFrames is how many frames fit into the hot record of a counter.
const NearFrames = 2

// IsFar reports whether the frames of a counter do not fit into its hot record.
func (r *Rule) IsFar() bool { return r.count > NearFrames }

// Newest returns the start of the newest frame that a counter keeps.
func (r *Rule) Newest(ms int64) int64 { return r.align(ms) + r.LeadMS }

// SameFrames reports whether counters under both rules keep the same frames and both use permits or
// neither does.
func (r *Rule) SameFrames(o *Rule) bool {
	return r.FrameMS == o.FrameMS && r.Frames == o.Frames && r.Strict == o.Strict && r.Leases == o.Leases
}

// align returns the start of the frame that contains the time. Both are in milliseconds since the
// epoch.
func (r *Rule) align(ms int64) int64 { return alignTo(ms, r.FrameMS) }

func alignTo(ms, frame int64) int64 {
	m := ms % frame
	if m < 0 {
		m += frame // before 1970
	}
	return ms - m
}

// FrameName returns the name of a frame in a document: its start since the epoch, in seconds if
// frames are whole seconds, and in milliseconds otherwise.
func FrameName(start, frame int64) int64 {
	if frame%1000 == 0 {
		return start / 1000
	}
	return start
}

// MaxSlots is the largest number of frames that a counter keeps.
const MaxSlots = MaxFrames + 2

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

// CeilSeconds rounds milliseconds up to seconds.
func CeilSeconds(ms int64) int64 { return (ms + 999) / 1000 }

// register holds the lists of limits that policies or counters use, by number. Counters refer to a
// list by its number, so the garbage collector has no pointers to follow. Unused lists are dropped
// by [SweepLimits], and when the register has doubled since the last cleanup. Their numbers are
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

// NewLimits returns the compiled list, from the register if it has an equal one.
func NewLimits(limits []Limit) *Limits {
	register.mu.Lock()
	defer register.mu.Unlock()
	ls := registerLimits(limits, false)
	if ls.Strict && ls.predicts == nil { // new, so no other goroutine has it yet
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
		ls.Number = register.free[n-1]
		register.free = register.free[:n-1]
		all[ls.Number] = ls
		return
	}
	ls.Number = uint32(len(all)) //nolint:gosec // four billion lists do not fit into memory
	all = append(all, ls)
	register.all.Store(&all)
}

// SweepLimits drops unused lists, unless there are few lists in total.
func SweepLimits() {
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
			all[r.list.Number] = nil
			register.free = append(register.free, r.list.Number)
			delete(register.byText, text)
		}
	}
	register.dropAt = 2 * len(register.byText)
}

// LimitsOf returns the list with the number.
func LimitsOf(number uint32) *Limits { return (*register.all.Load())[number] }

// Counts reports whether any limit of the list counts requests of the grant.
func (ls *Limits) Counts(grant Grants) bool {
	return ls != nil && (!ls.grants || ls.Skip(grant) != ls.Every())
}

// Every returns a mask with a bit for each limit of the list.
func (ls *Limits) Every() uint16 { return 1<<len(ls.Rules) - 1 }

// Skip returns a mask of the limits that do not count requests of the grant.
func (ls *Limits) Skip(grant Grants) (skip uint16) {
	if !ls.grants {
		return 0
	}
	for i := range ls.Rules {
		if !ls.Rules[i].Grants.Count(grant) {
			skip |= 1 << i
		}
	}
	return skip
}

// Find returns the index of the limit with a name, or -1.
func (ls *Limits) Find(name string) int {
	return slices.IndexFunc(ls.Rules, func(r Rule) bool { return r.Name == name })
}

// EndOf returns the time at which the requests of a frame are assumed to have arrived when the
// length of frames changes: the end of the frame, or now if that is earlier. So a change never
// frees a key early.
func EndOf(start, length, ms int64) int64 {
	if start > ms {
		return start
	}
	return min(start+length-1, ms)
}

// Index returns the index of the frame that contains a time, and whether the counter has that
// frame. Frame 0 starts at newest. A later time belongs to frame 0.
func (r *Rule) Index(newest, at int64) (int, bool) {
	j := max((newest-r.align(at))/r.FrameMS, 0)
	return int(j), j < int64(r.Kept())
}

// SameFrames reports whether two times are in the same frame of every limit.
func (ls *Limits) SameFrames(a, b int64) bool {
	for i := range ls.Rules {
		if r := &ls.Rules[i]; r.align(a) != r.align(b) {
			return false
		}
	}
	return true
}

// Hold notes that a chain of counters is under the list, which keeps the list in the register.
func (ls *Limits) Hold() { ls.chains.Add(1) }

// Release undoes Hold.
func (ls *Limits) Release() { ls.chains.Add(-1) }

// noLimits is the list of a key that does not exist.
var noLimits = &Limits{}
