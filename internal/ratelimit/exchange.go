package ratelimit

import (
	"math"
	"slices"
	"time"
)

// CounterID names the document of a counter.
type CounterID struct {
	ClientID string
	Username string
	Limit    string // empty for the first limit of a policy
}

// FrameCount is the count of one frame.
type FrameCount struct {
	Name  int64 // as it stands in the document; see [FrameStart]
	Count int64
}

// Document is a counter as the database has it.
type Document struct {
	Version, Etag int64 // 0 if there is no document
	Mine          int64 // highest flush sequence of this process that was applied, 0 if none
	Writers       int   // instances to be reckoned with, this one included; 0 if not known
	Shared        bool  // others wrote it lately
	Frames        []FrameCount
}

// Write is one write of a counter, to be applied exactly once.
type Write struct {
	ID            CounterID
	Limit         Limit
	Version, Etag int64 // of the document that it is based on
	Seq           int64
	Delta         []FrameCount
	Expire        time.Time     // when nothing of the document matters any more
	Tries         int           // how often it was refused
	Age           time.Duration // of what is known, as in [View]
	Contended     bool          // others write too: Version and Etag are likely to be out of date
}

// View is a counter as the syncer looks at it.
type View struct {
	ID        CounterID
	Limit     Limit
	Known     int64         // counts known to be in the database, g
	Unflushed int64         // counts not known to be there, i, with those of a pending write
	Headroom  int64         // requests until the limit
	Synced    bool          // Known was right once
	Age       time.Duration // of Known: since the latest exchange began that made it right
	Recent    int           // exchanges lately: one is forgotten in a 300th of the window, or in 10 ms
	Writers   int
	Idle      time.Duration // since the key was last asked for here
	FreeIn    time.Duration // until one request passes, by what is known here; 0 if one would now
	Urgent    bool          // what is not flushed could matter to others, or somebody was denied
	Busy      bool          // an exchange is under way
	Pending   bool          // the outcome of a write is not known
	Stale     bool          // Known needs to be read again
	Resolve   bool          // the document is to be read before the pending write is tried again
	Asked     bool          // a request was denied since Known was last right
}

// pendingWrite is what a write took up. Neither seq nor a delta that still matters
// changes until the outcome is known.
type pendingWrite struct {
	seq   int64
	delta []FrameCount
	tries int
}

// extras is what only some counters have.
type extras struct {
	pending *pendingWrite
	until   int64 // how long what is known here outweighs less in the document: a limit was changed
}

func (c *Counter) extra() *extras {
	if c.extras == nil {
		c.extras = &extras{}
	}
	return c.extras
}

func (c *Counter) pending() *pendingWrite {
	if c.extras == nil {
		return nil
	}
	return c.extras.pending
}

// setPending makes p the pending write, or none if it is nil, and gives back
// memory that nothing needs.
func (c *Counter) setPending(p *pendingWrite) {
	switch {
	case p != nil:
		c.extra().pending = p
	case c.extras == nil:
	case c.extras.until <= c.at:
		c.extras = nil
	default:
		c.extras.pending = nil
	}
}

func (c *Counter) rule() *rule {
	for i := range c.entry.limits.rules {
		if c.entry.at(i) == c {
			return &c.entry.limits.rules[i]
		}
	}
	return nil // cannot be: an entry has as many counters as limits
}

// held runs f with the counter under its lock and brought to the time now. It
// reports false, and does nothing, if the counter is no longer in memory.
func (cs *Counters) held(x *Counter, now time.Time, f func(r *rule, ms int64)) bool {
	s := x.entry.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.entry.gone {
		return false
	}
	r := x.rule()
	f(r, x.observe(r, cs.millis(now)))
	return true
}

// Ticket admits one begin of an exchange. Only the latest of a counter is good,
// so that a counter which is scheduled anew is not begun twice.
type Ticket uint16

// Look shows a counter and draws the next ticket for it. False if it is no
// longer in memory.
func (cs *Counters) Look(x *Counter, now time.Time) (v View, t Ticket, ok bool) {
	ok = cs.held(x, now, func(r *rule, ms int64) {
		v = x.view(r, ms)
		x.sync.ticket++
		t = Ticket(x.sync.ticket)
	})
	return v, t, ok
}

// begin makes the counter busy if the ticket is good.
func (c *Counter) begin(t Ticket, ms int64) bool {
	if c.sync.state == busy || t != Ticket(c.sync.ticket) {
		return false
	}
	c.sync.recent = uint8(min(c.recent(ms)+1, math.MaxUint8) & 0xff)
	c.sync.state, c.sync.beganAt = busy, ms
	return true
}

// recent is how many exchanges there were lately: each is forgotten after a
// 300th of the window, but not in less than 10 ms.
func (c *Counter) recent(ms int64) int64 {
	forgotten := max(ms-c.sync.beganAt, 0) / max(c.rule().window/300, 10)
	return max(int64(c.sync.recent)-forgotten, 0)
}

func (c *Counter) view(r *rule, ms int64) View {
	v := View{
		ID: c.id(r), Limit: r.Limit, Known: c.known(), Unflushed: c.unflushed(),
		Headroom: max(r.Requests-c.floor(r, ms), 0), Writers: int(c.sync.writers),
		Idle:   time.Duration(max(ms-c.entry.seen, 0)) * time.Millisecond,
		Urgent: c.sync.state == urgent, Busy: c.sync.state == busy,
		Pending: c.pending() != nil, Stale: c.sync.flags.has(stale), Resolve: c.sync.flags.has(resolve), Asked: c.sync.flags.has(asked),
	}
	if v.Headroom == 0 {
		v.FreeIn = time.Duration(c.firstBelow(r, ms, r.Requests)-ms) * time.Millisecond
	}
	v.Synced, v.Age, v.Recent = c.sync.syncedAt != 0, c.age(ms), int(c.recent(ms))
	return v
}

// age is how long ago the latest exchange began that made g right; 0 if there
// was none.
func (c *Counter) age(ms int64) time.Duration {
	if c.sync.syncedAt == 0 {
		return 0
	}
	return time.Duration(max(ms-c.sync.syncedAt, 0)) * time.Millisecond
}

func (c *Counter) id(r *rule) CounterID {
	k := c.entry.name()
	return CounterID{ClientID: k.ClientID, Username: k.Username, Limit: r.doc}
}

// BeginWrite takes up what was counted since the last write, or the pending
// write again, unchanged, if there is one. seq must be larger than that of any
// write before. True makes the counter busy until [Counters.Release]. A write without a
// Delta has nothing to do and is to be released at once; false says that the ticket is
// no longer good or the counter no longer in memory.
func (cs *Counters) BeginWrite(x *Counter, now time.Time, t Ticket, seq int64) (w Write, ok bool) {
	cs.held(x, now, func(r *rule, ms int64) {
		if ok = x.begin(t, ms); !ok {
			return
		}
		p := x.takeUp(r, seq)
		if p == nil {
			return
		}
		w = Write{
			ID: x.id(r), Limit: r.Limit, Version: x.sync.version, Etag: x.sync.etag,
			Seq: p.seq, Delta: slices.Clone(p.delta), Tries: p.tries,
			Expire:    time.UnixMilli(x.start + r.frame + r.window + max(r.window, time.Minute.Milliseconds())),
			Contended: x.sync.flags.has(stale|shared) || x.sync.lost > 0, Age: x.age(ms),
		}
		x.sync.lost -= min(x.sync.lost, 1)
	})
	return w, ok
}

// takeUp makes the pending write, or thins out the one there is. Nil if nothing is
// left to be written.
func (c *Counter) takeUp(r *rule, seq int64) *pendingWrite {
	p := c.pending()
	if p == nil {
		p = &pendingWrite{seq: seq}
		slots := c.slots()
		for j := range slots {
			if n := slots[j].i; n > 0 {
				p.delta = append(p.delta, FrameCount{r.frameName(c.start - int64(j)*r.frame), int64(n)})
				slots[j].p, slots[j].i = n, 0
			}
		}
	} else {
		p.delta = slices.DeleteFunc(p.delta, func(f FrameCount) bool {
			_, ok := c.index(r, FrameStart(f.Name))
			return !ok
		})
	}
	if len(p.delta) == 0 {
		p = nil
	}
	c.setPending(p)
	return p
}

// BeginRead makes the counter busy until [Counters.Release], and shows it.
// False if the ticket is no longer good or the counter no longer in memory.
func (cs *Counters) BeginRead(x *Counter, now time.Time, t Ticket) (v View, ok bool) {
	cs.held(x, now, func(r *rule, ms int64) {
		ok = x.begin(t, ms)
		v = x.view(r, ms)
	})
	return v, ok
}

// Applied says that the pending write was applied to the document that it was
// based on, which made it version and etag: everything is known.
func (cs *Counters) Applied(x *Counter, now time.Time, version, etag int64) {
	cs.held(x, now, func(*rule, int64) {
		x.settle()
		x.sync.version, x.sync.etag = version, etag
		x.refreshed()
	})
}

// Refused says that the condition of the pending write did not hold. If that
// was the version, the write can be tried again without; if it was blind, it
// had been applied before, which the document has to confirm.
func (cs *Counters) Refused(x *Counter, now time.Time, blind bool) {
	cs.held(x, now, func(*rule, int64) {
		if x.pending() == nil {
			return // the document has confirmed it meanwhile
		}
		x.sync.lost = min(x.sync.lost+lostMore, lostMax)
		x.sync.flags |= stale
		x.sync.flags.set(resolve, blind)
	})
}

// A conflict makes the next lostMore writes unconditional, lostMax at most,
// before one is tried again that saves the read.
const (
	lostMore = 4
	lostMax  = 16
)

// AppliedBlind says that the pending write was applied to the document as it
// happened to be, and made its etag. What else is in it has to be read, unless
// it was merged while the write was under way.
func (cs *Counters) AppliedBlind(x *Counter, now time.Time, etag int64, merged bool) {
	cs.held(x, now, func(*rule, int64) {
		if merged && x.pending() == nil {
			return // the merged document had it
		}
		x.settle()
		x.sync.version++ // if nobody was quicker; otherwise the next write finds out
		x.sync.etag = etag
		x.sync.flags.set(stale, !merged)
	})
}

func (c *Counter) settle() {
	slots := c.slots()
	for j := range slots {
		slots[j].settle()
	}
	c.setPending(nil)
}

// refreshed says that g is right as of the begin of the exchange.
func (c *Counter) refreshed() {
	c.sync.syncedAt = max(c.sync.beganAt, 1)
	c.sync.flags.set(asked|stale|resolve, false)
}

// Merged is what a document told.
type Merged struct {
	Applied bool  // the pending write, if there was one, is in it
	Foreign int   // frames that nobody of us can have written: negative, or far in the future
	Lost    int64 // counts that were known to be in the document, still matter, and are no longer there
}

// Merge takes over what the database has. A pending write is over if the
// document says that it was applied, and otherwise counts as refused once more.
func (cs *Counters) Merge(x *Counter, now time.Time, doc Document) (m Merged) {
	cs.held(x, now, func(r *rule, ms int64) {
		m.Foreign, m.Lost = x.replaceKnown(r, ms, doc.Frames)
		x.sync.version, x.sync.etag = doc.Version, doc.Etag
		x.sync.flags.set(shared, doc.Shared)
		x.sync.writers = uint16(min(max(doc.Writers, 0), 10_000))
		x.refreshed()
		p := x.pending()
		switch {
		case p == nil:
			m.Applied = true
		case doc.Mine >= p.seq:
			for j := range x.slots() {
				x.slots()[j].p = 0
			}
			x.setPending(nil)
			m.Applied = true
		default:
			p.tries++
		}
	})
	return m
}

// maxSkew is how far ahead, beyond a window, an instance may be whose clock was not yet
// measured. What it wrote counts as of now.
const maxSkew = 60_000

// replaceKnown sets g to what the document has, and returns how many of its
// frames make no sense, and how many counts are missing.
func (c *Counter) replaceKnown(r *rule, ms int64, frames []FrameCount) (foreign int, lost int64) {
	for _, f := range frames { // the newest first: it decides which frames there are
		if s := r.align(FrameStart(f.Name)); s > c.start && s-ms <= r.window && f.Count > 0 {
			c.shift(r, s)
		}
	}
	before := slices.Clone(c.slots())
	for j := range c.slots() {
		c.slots()[j].g = 0
	}
	for _, f := range frames {
		start := FrameStart(f.Name)
		j, ok := c.index(r, start)
		switch {
		case f.Count < 0 || start-ms > r.window+maxSkew:
			foreign++
		case ok:
			c.slots()[j].addG(f.Count)
		}
	}
	changed := c.extras != nil && ms < c.extras.until
	for j := range before {
		s := &c.slots()[j]
		switch {
		case s.g >= before[j].g:
		case changed:
			s.g = before[j].g
		default:
			lost += int64(before[j].g - s.g)
		}
	}
	return foreign, lost
}

// Need is what a counter waits for.
type Need uint8

// The needs, in the order of urgency.
const (
	NeedsNothing Need = iota
	NeedsWrite        // some time
	NeedsSync         // as soon as its spacing allows: a write, or a read if there is nothing to write
)

// Release ends what [Counters.BeginWrite] or [Counters.BeginRead] began. Where
// the counter needs more, the caller keeps it; otherwise it is told again by [Counters.Collect].
func (cs *Counters) Release(x *Counter, now time.Time) (need Need) {
	cs.held(x, now, func(r *rule, ms int64) {
		x.sync.state = cs.urgency(x, r.Requests-x.floor(r, ms))
		if x.pending() != nil || x.sync.flags.has(stale) {
			x.sync.state = urgent
		}
		need = Need(x.sync.state)
	})
	return need
}
