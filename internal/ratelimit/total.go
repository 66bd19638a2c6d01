package ratelimit

import "time"

// A total counts a client over all its users. One decision has then two keys: that of the user or the client,
// and that of the total. It is made under the locks of both, which are taken in the order of their
// shards, so no goroutine ever sees one of them counted without the other.

// side is one of the two keys of a decision: its first counter, and what it is counted under. The lock of
// the shard must be held.
type side struct {
	s     *shard
	first uint32 // 0: none
	ls    *Limits
}

// totalOf finds the counters of a total.
type totalOf struct {
	c     *Counters
	shard *shard
	hash  hash
	key   Key
	ls    *Limits
}

// lookupBoth returns where a key is found, which is bounded, and the total of its client, under the name that
// was given.
func (c *Counters) lookupBoth(k Key, clientID string, ls *Limits) (s *shard, h hash, of totalOf) {
	of = totalOf{c: c, ls: ls, key: Key{ClientID: clientID, Username: TotalUser}.bounded()}
	if k.ClientID == of.key.ClientID {
		h, of.hash = c.all.hashKey.both(k)
	} else {
		h, of.hash = c.all.hashKey.hash(k), c.all.hashKey.hash(of.key)
	}
	of.shard = c.totalShard(of.hash)
	return &c.shards[h.hi>>c.shift], h, of
}

// enter returns the first counter of a key under the limits; 0 if there is no room for it.
func (s *shard) enter(k Key, h hash, ls *Limits, ms int64) uint32 {
	first := s.find(h)
	switch {
	case first == 0:
		return s.addKey(k, h, ls, ms)
	case s.hotOf(first).limits != ls.number:
		return s.change(first, h, ls, ms)
	}
	return first
}

// takeBoth is take for a client with a total. The clientID is that of k before it was bounded.
func (c *Counters) takeBoth(ms int64, k Key, clientID string, ls, total *Limits, n int64, d *Decision, wait bool) (w *waiter) {
	if n == 1 && ls.plain && total.plain && len(clientID) <= maxKeySize-len(TotalUser) && k.ClientID == clientID && c.takePlainBoth(ms, k, ls, total, d) {
		return nil
	}
	s, h, of := c.lookupBoth(k, clientID, total)
	s.mu.Lock()
	mine := side{s, s.enter(k, h, ls, ms), ls}
	if mine.first == 0 {
		s.mu.Unlock()
		denyNoRoom(ls, total, d)
		return nil
	}
	var wake bool
	if ls.strict {
		w, wake = mine.takeStrict(&of, ms, n, d, wait)
	} else {
		_, wake = mine.decideWith(&of, ms, n, d)
	}
	if c.queue.attached {
		wake = s.enqueue(&c.queue, mine.first, ls, d.status[:], d.Outcome) || wake
	}
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
	return w
}

// takePlainBoth is a fast path of takeBoth, where shard.decidePlain is one for both keys. Otherwise it reports
// false and changes nothing. The lock of the total is held for as little as that of a key without one.
func (c *Counters) takePlainBoth(ms int64, k Key, ls, total *Limits, d *Decision) bool {
	h, th := c.all.hashKey.both(k)
	s, t := &c.shards[h.hi>>c.shift], c.totalShard(th)
	s.mu.Lock()
	first := s.findUnder(h, ls)
	if first == 0 || !s.decidePlain(first, ls, ms, &d.status[0], &d.Soft) {
		s.mu.Unlock()
		return false
	}
	t.mu.Lock()
	whole := t.findUnder(th, total)
	if whole == 0 || !t.decidePlain(whole, total, ms, &d.status[1], &d.Soft) {
		t.mu.Unlock()
		s.hotOf(first).near[0].count(-1) // nothing else has seen it
		s.mu.Unlock()
		d.status[0], d.Soft = status{}, false
		return false
	}
	wake := c.queue.attached && t.enqueuePlain(&c.queue, whole, &d.status[1])
	t.mu.Unlock()
	wake = c.queue.attached && s.enqueuePlain(&c.queue, first, &d.status[0]) || wake
	s.mu.Unlock()
	if wake {
		c.queue.wake()
	}
	d.limits, d.total, d.Outcome = ls, total, Allowed
	if d.tighter(1) {
		d.Binding = 1
	}
	return true
}

// decideWith decides on n requests under the limits of a key and those of the total. It reports whether
// the total has room for them, and whether the syncer must be woken for it.
func (mine *side) decideWith(of *totalOf, ms, n int64, d *Decision) (room, wake bool) {
	t := of.shard
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := side{t, t.enter(of.key, of.hash, of.ls, ms), of.ls}
	if whole.first == 0 {
		denyNoRoom(mine.ls, of.ls, d)
		return false, false
	}
	room = decideSides(mine, &whole, ms, n, d)
	if q := &of.c.queue; q.attached {
		wake = t.enqueue(q, whole.first, whole.ls, d.status[len(mine.ls.rules):], d.Outcome)
	}
	return room, wake
}

// decideSides is shard.decide for two keys. It reports whether the second one has room.
func decideSides(mine, whole *side, ms, n int64, d *Decision) (room bool) {
	d.limits, d.total = mine.ls, whole.ls
	if d.count() <= 3 { // as in shard.decide
		var few [3]frames
		return d.decideOn(few[:d.count()], mine, whole, ms, n)
	}
	var all [maxDecided]frames
	return d.decideOn(all[:d.count()], mine, whole, ms, n)
}

// decideOn is decideSides with memory for the frames of all limits.
func (d *Decision) decideOn(all []frames, mine, whole *side, ms, n int64) (room bool) {
	m := len(mine.ls.rules)
	admit := mine.view(all[:m], ms, n, d)
	room = whole.view(all[m:], ms, n, d)
	d.settle(all, ms, n, admit && room)
	return room
}

// view is shard.viewAll. A key that is not there has no counts.
func (mine *side) view(all []frames, ms, n int64, d *Decision) bool {
	if mine.first != 0 {
		mine.s.hotOf(mine.first).seen = seconds(ms)
		return mine.s.viewAll(all, mine.first, mine.ls, ms, n, d)
	}
	admit := true
	for i := range all {
		r := &mine.ls.rules[i]
		all[i] = frames{rule: r, slots: make([]slot, r.frames()), start: r.newest(ms), instances: 1}
		admit = all[i].admits(r, n) && admit
	}
	return admit
}

// takeStrict is shard.takeStrict for a key with a total.
func (mine *side) takeStrict(of *totalOf, came, n int64, d *Decision, wait bool) (w *waiter, wake bool) {
	s, first, ls, ms := mine.s, mine.first, mine.ls, came
	if wait {
		ms = of.c.queue.present(came)
	}
	longest, wake := mine.decideStrict(of, ms, n, s.queued(first), d)
	if d.Outcome == Denied && longest == 0 {
		return nil, wake
	}
	return s.await(&waiter{n: n, since: ms, longest: longest, first: first, total: new(*of)}, ls, came, d, wait), wake
}

// decideStrict is shard.decideStrict for a key with a total. Nothing waits for room in that.
func (mine *side) decideStrict(of *totalOf, ms, n, ahead int64, d *Decision) (longest time.Duration, wake bool) {
	room, wake := mine.decideWith(of, ms, n, d)
	if room {
		longest = mine.s.mayWait(mine.first, mine.ls, ms, n, ahead, d)
	}
	return longest, wake
}

// giveBack takes back n requests of a total that were counted at the time at.
func (of *totalOf) giveBack(at, n int64) {
	t := of.shard
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.findUnder(of.hash, of.ls); first != 0 {
		t.refund(&of.c.queue, first, of.ls, at, at, n)
	}
}

// deniesWith is what [Counters.Denies] does for a client with a total, under the lock of the key. The key
// may be missing.
func (mine *side) deniesWith(of *totalOf, ms int64, denies bool, d *Decision) bool {
	t := of.shard
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := side{t, t.findUnder(of.hash, of.ls), of.ls}
	if denies = denies || whole.first != 0 && t.atLimit(whole.first, ms); denies {
		decideSides(mine, &whole, ms, 1, d)
	}
	return denies
}

// WithoutTotal returns e without its total.
func (e *Effective) WithoutTotal() *Effective {
	if e.Total == nil {
		return e
	}
	own := *e
	own.Total = nil
	return &own
}

// OnlyTotal returns what counts requests under [Key.Total] against the total of e, and against nothing else.
// There must be a total.
func (e *Effective) OnlyTotal() *Effective {
	return &Effective{User: e.Total, Client: e.Total, Mode: e.Mode, HideHeaders: e.HideHeaders, OverLimit: e.OverLimit}
}
