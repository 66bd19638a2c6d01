package ratelimit

import (
	"cmp"
	"time"
)

// Usage is the state of one counter, for display.
type Usage struct {
	Key       Key
	Limit     Limit
	Known     int64         // confirmed by the store (g)
	Unflushed int64         // admitted here and not confirmed by the store: pending and unclaimed (i)
	Estimate  float64       // requests inside the window
	Remaining int64         // requests that would pass now
	FreeIn    time.Duration // until one request would pass; 0 if one would now
	LastSeen  time.Time     // last request in this process, in whole seconds, or zero
}

// Ratio returns the used share of the limit. It exceeds 1 after a limit was lowered.
func (u Usage) Ratio() float64 { return u.Estimate / float64(u.Limit.Requests) }

// ByRatio orders by Ratio, the highest first, then by names.
func ByRatio(a, b Usage) int {
	return cmp.Or(cmp.Compare(b.Ratio(), a.Ratio()), cmp.Compare(a.Key.ClientID, b.Key.ClientID),
		cmp.Compare(a.Key.Username, b.Key.Username), cmp.Compare(a.Limit.Name, b.Limit.Name))
}

// Usage returns the state of a counter for display.
func (f *Frames) Usage(r *Rule, ms int64) Usage {
	pending, unclaimed := SumUnflushed(f.Slots)
	u := Usage{
		Limit: r.Limit, Known: sumKnown(f.Slots), Unflushed: pending + unclaimed,
		Estimate: f.Estimate(r, ms), Remaining: max(r.Requests-f.Floor(r, ms), 0),
	}
	if u.Remaining == 0 {
		u.FreeIn = time.Duration(f.FirstBelow(r, ms, r.Requests)-ms) * time.Millisecond
	}
	return u
}

// StoredUsage returns the state of a counter from its document alone, for display. Use it for keys
// that only other processes have in memory. It returns false if ls is nil or has no limit with the
// name in id, or if all counts in the document are too old to matter.
func StoredUsage(now time.Time, id CounterID, ls *Limits, d *Document) (Usage, bool) {
	if ls == nil {
		return Usage{}, false
	}
	ms := Millis(now)
	for i := range ls.Rules {
		r := &ls.Rules[i]
		if r.Doc != id.Limit {
			continue
		}
		f := Frames{Slots: make([]Slot, r.Kept()), Start: r.Newest(ms), Instances: 1}
		var m Contents
		m.Read(r, f.Start, ms, d)
		for j := range f.Slots {
			f.Slots[j].Known = Clamp(m.Counts[j])
		}
		f.Sum(r)
		u := f.Usage(r, ms)
		u.Key = Key{ClientID: id.ClientID, Username: id.Username}
		return u, u.Known > 0
	}
	return Usage{}, false
}
