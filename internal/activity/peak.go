package activity

import "oauth-server/internal/ratelimit"

// Peak is the most that was inside one limit's window at once, over all keys
// of the client: the count after the request that reached it. Where a request
// was denied, or would have been, it is one more than the limit.
type Peak struct {
	Kind  Kind            `json:"kind"`
	Limit ratelimit.Limit `json:"limit"`
	Count int64           `json:"count"`
}

// Above reports whether a request would have been denied by the limit l. It
// can only tell for a limit of the same shape; ok is false for any other.
func (p Peak) Above(l ratelimit.Limit) (above, ok bool) {
	same := p.Limit
	same.Name, same.Requests, same.SoftRatio = l.Name, l.Requests, l.SoftRatio
	return p.Count > l.Requests, same == l
}

// maxPeaks bounds what is kept of one client: both its lists, at their longest.
const maxPeaks = 2 * ratelimit.MaxLimits

// peak is a Peak with its counts by slot.
type peak struct {
	kind   Kind
	limit  ratelimit.Limit
	counts [slots]struct {
		number int64
		count  int64
	}
}

// note raises the peaks of all limits that the decision was about.
func (c *client) note(n int64, kind Kind, d *ratelimit.Decision) {
	for _, st := range d.Limits() {
		p := c.peak(kind, st.Limit)
		if p == nil {
			continue
		}
		count := st.Limit.Requests - st.Remaining
		if st.Remaining == 0 && d.Outcome != ratelimit.Allowed {
			count++
		}
		at := &p.counts[((n%int64(slots))+int64(slots))%int64(slots)]
		if at.number != n {
			at.number, at.count = n, 0
		}
		at.count = max(at.count, count)
	}
}

// peak finds the peak of a limit. A limit that was changed since starts anew
// unless only its number was changed.
func (c *client) peak(kind Kind, l ratelimit.Limit) *peak {
	for i := range c.peaks {
		p := &c.peaks[i]
		if p.kind != kind || p.limit.Name != l.Name {
			continue
		}
		if p.limit != l {
			if _, ok := (Peak{Limit: p.limit}).Above(l); !ok {
				*p = peak{kind: kind}
			}
			p.limit = l
		}
		return p
	}
	if len(c.peaks) >= maxPeaks {
		return nil
	}
	c.peaks = append(c.peaks, peak{kind: kind, limit: l})
	return &c.peaks[len(c.peaks)-1]
}

// snapshot returns the peaks of the window.
func (c *client) snapshot(now int64) (out []Peak) {
	for i := range c.peaks {
		p := Peak{Kind: c.peaks[i].kind, Limit: c.peaks[i].limit}
		for _, s := range c.peaks[i].counts {
			if live(s.number, now) {
				p.Count = max(p.Count, s.count)
			}
		}
		if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}
