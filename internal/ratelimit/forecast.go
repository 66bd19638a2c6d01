package ratelimit

import (
	"slices"
	"time"
)

// Forecast is when requests of a key will pass, one after another, if nothing else is counted: each is counted
// at the millisecond at which it passes, and so delays those behind it. It is a copy of the counters, which it
// does not change.
type Forecast struct {
	all    []frames
	at     int64 // when the latest request passed
	spread int64 // see Spread
}

// Forecast begins the forecast for a key. It is exact, to the millisecond, while this process is the only one
// that counts the key, and for limits that need no permits. The limits of a key that is not in memory under
// them are left out, and always those of its source and its total, whose room others take too.
func (c *Counters) Forecast(now time.Time, k Key, e *Effective) *Forecast {
	k = k.bounded()
	f := &Forecast{at: millis(now)}
	ls := e.For(k)
	if ls == nil {
		return f
	}
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := side{s, s.findShared(h, ls), ls, ls.skip(e.grant)}
	if o.first == 0 || s.hotOf(o.first).limits != ls.number {
		return f
	}
	others := []int64{} // by how many processes more each limit is counted
	for num, r := range o.applied() {
		var d Decision
		var one frames
		s.view(&one, num, r, f.at, &d)
		one.own()
		f.all, others = append(f.all, one), append(others, s.holders(s.hotOf(num))-1)
	}
	if len(f.all) > 0 {
		_, binding := retryAfter(f.all, f.at, 1)
		r := f.all[binding].rule
		f.spread = others[binding] * r.window / r.Requests
	}
	return f
}

// own makes f independent of its counter. Unused permits count as none.
func (f *frames) own() {
	f.slots = slices.Clone(f.slots)
	if f.lease != nil {
		f.slots[0].count(-f.lease.held[0])
		f.slots[1].count(-f.lease.held[1])
		f.lease = nil
	}
}

// Spread is the time over which processes spread what they admit when the limit has room again: each of them expects
// that at the same moment, for one request, and hears of the others' only after it. It is the time in which there is room
// for a request of each other process that counts the key; 0 if there is none.
func (f *Forecast) Spread() time.Duration { return time.Duration(f.spread) * time.Millisecond }

// Next returns when the next request will pass; not before the time that the forecast began with.
func (f *Forecast) Next() time.Time { return time.UnixMilli(f.next()) }

func (f *Forecast) next() int64 {
	if f.all == nil {
		return f.at
	}
	wait, _ := retryAfter(f.all, f.at, 1)
	return f.at + wait.Milliseconds()
}

// Admit counts the request that passes at Next.
func (f *Forecast) Admit() {
	f.at = f.next()
	for i := range f.all {
		f.all[i].admitAt(f.at)
	}
}

// admitAt counts one request at ms in frames that are no counter's.
func (f *frames) admitAt(ms int64) {
	r := f.rule
	start := r.newest(ms)
	if n := int(min((start-f.start)/r.frame, int64(len(f.slots)))); n > 0 {
		copy(f.slots[n:], f.slots)
		clear(f.slots[:n])
		f.start = start
		if r.Strict {
			f.sumStrict()
		} else {
			f.sum()
		}
	}
	if r.Strict {
		f.slots[1].count(1)
		f.whole++
		return
	}
	f.count(1)
}

// RefreshTime is how long what [Counters.Refresh] asks for usually takes.
func (c *Counters) RefreshTime() time.Duration {
	return time.Duration(c.all.leasing.trip.Load()+gatherReads) * time.Millisecond
}

// Refresh asks for what other processes have counted of a key. It reports false if nobody shares the counts, or none of
// the key is in memory.
func (c *Counters) Refresh(k Key, e *Effective) bool {
	k = k.bounded()
	ls := e.For(k)
	if !c.queue.attached || ls == nil {
		return false
	}
	s, h := c.lookup(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := side{s, s.findUnder(h, ls), ls, ls.skip(e.grant)}
	if o.first == 0 {
		return false
	}
	for num := range o.applied() {
		s.hotOf(num).flags |= stale
	}
	if o.requeue(&c.queue) {
		c.queue.wake()
	}
	return true
}
