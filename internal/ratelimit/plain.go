package ratelimit

// plain reports whether takePlain can decide under the list. It is inlined.
func (e *Effective) plain(ls *Limits) bool {
	return ls.plain && (e.Total == nil || e.Total.plain) && e.source == ""
}

// takePlain completes the decision of decidePlain on the own key. This is a fast path of take for one
// request under one plain limit, with or without a plain total. It takes half as long. takePlain
// unlocks the own key, or returns false and changes nothing if request.decide must decide.
func (c *Counters) takePlain(s *shard, first uint32, clientID string, ls, total *Limits, ms int64, d *Decision) bool {
	wake := false
	if total != nil {
		var ok bool
		if ok, wake = c.takePlainTotal(clientID, ls, total, ms, d); !ok {
			s.hotOf(first).near[0].count(-1)
			d.status[0], d.Soft = status{}, false
			return false
		}
	}
	wake = s.enqueuePlain(&c.queue, first, &d.status[0]) || wake
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
	d.limits, d.Outcome = ls, Allowed
	return true
}

// takePlainTotal decides under the total of a client. The lock of the total is held only as long as
// the lock of a single key, because all requests of the client need it.
func (c *Counters) takePlainTotal(clientID string, ls, total *Limits, ms int64, d *Decision) (ok, wake bool) {
	h := c.all.hashKey.hash(Key{clientID, TotalUser}.bounded())
	s := c.totalShard(h)
	s.mu.Lock()
	first := s.findUnder(h, total)
	if ok = first != 0 && s.decidePlain(first, total, ms, &d.status[1], &d.Soft); ok {
		wake = s.enqueuePlain(&c.queue, first, &d.status[1])
	}
	s.mu.Unlock()
	if d.total = total; ok && int64(d.status[1].remaining)*ls.rules[0].Requests < int64(d.status[0].remaining)*total.rules[0].Requests {
		d.Binding = 1
	}
	return ok, wake
}

// decidePlain is a fast path of decide. It handles one request of a key with one sliding limit and
// one frame per window, if the limit has room and counts are shared. It fills in st, and sets soft
// if the client should be warned. Otherwise it returns false and changes nothing.
func (s *shard) decidePlain(num uint32, ls *Limits, ms int64, st *status, soft *bool) bool {
	h, r := s.hotOf(num), &ls.rules[0]
	elapsed := ms - h.start
	if elapsed < 0 || elapsed >= r.frame || h.flags.has(failing) || s.all.outage.mode.Load() != sharing {
		return false
	}
	whole, oldest := h.near[0].total(1), h.near[1].total(1)
	used := whole + (r.frame-elapsed)*oldest/r.frame
	if used >= r.Requests {
		return false
	}
	h.near[0].count(1)
	h.seen = seconds(ms)
	whole++
	used++
	if used >= r.softAt {
		*soft = true
	}
	st.remaining = clamp(r.Requests - used)
	free := r.frame // from the frame's start, until the estimate falls below used
	if whole < used {
		free = shrunkBelow(oldest, used-whole, r.frame, elapsed)
	}
	if free >= r.frame { // after the next frame has begun; this one is then the oldest
		free = r.frame + shrunkBelow(whole, used, r.frame, 0)
	}
	st.reset = clamp(ceilSeconds(free - elapsed))
	return true
}

// enqueuePlain is enqueue after decidePlain.
func (s *shard) enqueuePlain(q *queue, num uint32, st *status) (wake bool) {
	h := s.hotOf(num)
	if !q.attached || h.state >= urgent || h.flags.has(pooled) {
		return false
	}
	u := lazy
	if h.flags.has(unsynced|stale) || s.matters(h, int64(h.near[0].unclaimed)+int64(h.near[1].unclaimed), int64(st.remaining)) {
		u = urgent
	}
	if u <= h.state {
		return false
	}
	h.state = u
	s.push(q, num)
	return u == urgent
}
