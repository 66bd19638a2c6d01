package counting

import (
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// Forecast predicts when successive requests of a key will pass if nothing else is counted. Each
// request is counted at the millisecond at which it passes, so it delays later ones. A Forecast
// works on a copy of the counters and never changes them.
type Forecast struct {
	all    []ratelimit.Frames
	at     int64 // when the latest request passed
	spread int64 // see Spread
}

// Forecast starts a forecast for a key. It is exact to the millisecond as long as no other process
// counts the key and its limits need no permits. It ignores limits for which the key is not in
// memory. It always ignores the limits of the source and the total, because other keys use them
// too.
func (c *Counters) Forecast(now time.Time, k ratelimit.Key, e *ratelimit.Effective) *Forecast {
	f := &Forecast{at: ratelimit.Millis(now)}
	var q request
	q.init(c, k, e.For(k), e.Own(), 1)
	p := &q.parts[0]
	if p.s == nil {
		return f
	}
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.find(0, f.at, false); p.first == 0 {
		return f
	}
	others := []int64{} // for each limit, how many other processes count it
	for num, r := range p.applied() {
		var d ratelimit.Decision
		var one ratelimit.Frames
		s.view(&one, num, r, f.at, &d)
		s.own(&one, num)
		f.all, others = append(f.all, one), append(others, s.holders(s.HotOf(num))-1)
	}
	if len(f.all) > 0 {
		_, binding := ratelimit.RetryAfter(f.all, f.at, 1)
		r := f.all[binding].Rule
		f.spread = others[binding] * r.WindowMS / r.Requests
	}
	return f
}

// own makes f independent of its counter. Unused permits are uncounted.
func (s *shard) own(f *ratelimit.Frames, num uint32) {
	f.Slots = slices.Clone(f.Slots)
	if f.Permits != nil {
		l := s.leases[num]
		f.Slots[0].Count(-l.held[0])
		f.Slots[1].Count(-l.held[1])
		f.Permits = nil
	}
}

// Spread returns the time over which processes should spread their requests once the limit has room
// again. All processes expect room for one request at the same moment, and learn about the others'
// requests only later. In the time Spread, the limit admits one request for each other process that
// counts the key. Spread is 0 if there is no other process.
func (f *Forecast) Spread() time.Duration { return time.Duration(f.spread) * time.Millisecond }

// Next returns when the next request will pass. It is not before the start of the forecast.
func (f *Forecast) Next() time.Time { return time.UnixMilli(f.next()) }

func (f *Forecast) next() int64 {
	if f.all == nil {
		return f.at
	}
	wait, _ := ratelimit.RetryAfter(f.all, f.at, 1)
	return f.at + wait.Milliseconds()
}

// Admit counts the request that passes at Next.
func (f *Forecast) Admit() {
	f.at = f.next()
	for i := range f.all {
		f.all[i].AdmitAt(f.at)
	}
}
