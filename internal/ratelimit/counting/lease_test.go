package counting

import (
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// tenant is a process that leases permits for one key, and the document of its counter.
type tenant struct {
	*player
	doc  ratelimit.Document
	next Finished // of the latest exchange
}

// leaseFrom returns a process with a strict limit and a clock uncertainty of 3 ms. The time is a
// tenth of a second into a minute, and no document exists.
func leaseFrom(t *testing.T, limits ...ratelimit.Limit) *tenant {
	t.Helper()
	c, k, eff := single(limits...)
	p := &player{t: t, c: c, y: c.Sync(SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second}), k: k, eff: eff, now: at(minute + 100)}
	p.y.SetUncertainty(p.now, 3*time.Millisecond)
	return &tenant{player: p}
}

// store applies the write of a task as a store does. It returns the result with the document as
// read before the write.
func (p *tenant) store(task *Task) Result {
	p.t.Helper()
	before := p.doc
	before.Frames = append([]ratelimit.FrameCount{}, p.doc.Frames...)
	res := Result{Read: task.Read, NewEtag: 1000 + task.Seq}
	if before.Version > 0 {
		res.Document = &before
	}
	if task.Seq == 0 {
		return res
	}
	if task.Versioned && (task.Version != p.doc.Version || task.Etag != p.doc.Etag) || !task.Versioned && p.doc.Mine >= task.Seq {
		res.Status = Conflict
		return res
	}
	res.Status = Applied
	for _, f := range task.Delta {
		p.doc.Frames = ratelimit.AddFrame(append([]ratelimit.FrameCount{}, p.doc.Frames...), f)
	}
	p.doc.Version, p.doc.Etag, p.doc.Mine, p.doc.Frame = p.doc.Version+1, res.NewEtag, task.Seq, task.Frame
	return res
}

// others makes another process take permits of a frame.
func (p *tenant) others(frame, n int64) {
	p.doc.Frames = ratelimit.AddFrame(append([]ratelimit.FrameCount{}, p.doc.Frames...), ratelimit.FrameCount{Name: frame, Count: n})
	p.doc.Version, p.doc.Etag, p.doc.Frame = p.doc.Version+1, p.doc.Etag+17, 1000
}

// counted returns the sum of the counts in the document.
func (p *tenant) counted() (n int64) {
	for _, f := range p.doc.Frames {
		n += f.Count
	}
	return n
}

// due begins the planned exchange, if there is one.
func (p *tenant) due() (Task, bool) {
	plans := p.y.Due(p.now, nil)
	if slices.ContainsFunc(plans, func(plan Plan) bool { return plan.Lease }) {
		plans = slices.DeleteFunc(plans, func(plan Plan) bool { return !plan.Lease }) // of a total
	}
	if len(plans) == 0 && p.next.Planned {
		plans = append(plans, p.next.Next)
	}
	if len(plans) == 0 {
		return Task{}, false
	}
	last := plans[len(plans)-1] // its ticket is valid
	p.pass(last.In)
	p.seq += 10
	return p.y.Begin(p.now, last.Ticket, p.seq)
}

// finish passes the outcome of a task to the counter.
func (p *tenant) finish(task Task, res Result) {
	p.next = p.player.finish(task, res)
}

// exchange makes the planned exchange.
func (p *tenant) exchange() {
	p.t.Helper()
	task, ok := p.due()
	if !ok {
		p.t.Fatal("no exchange is planned")
	}
	p.finish(task, p.store(&task))
}

// settle makes several planned exchanges.
func (p *tenant) settle() {
	p.t.Helper()
	for range 5 {
		if task, ok := p.due(); ok {
			p.finish(task, p.store(&task))
		}
	}
}

// held returns the unused permits of the first counter.
func (p *tenant) held() int64 {
	s, h := p.c.lookup(p.k)
	l := s.leaseOf(s.Find(h))
	return l.held[0] + l.held[1]
}

// TestPermitsAreCountedFirst: no request is admitted before the document has counted it. Requests
// that it has counted are admitted without another write.
func TestPermitsAreCountedFirst(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.take(1, ratelimit.Denied)
	task, ok := p.due()
	check.Equal(t, "an exchange", ok, true)
	check.Equal(t, "asked for", task.Delta, []ratelimit.FrameCount{{Name: 60_000, Count: 1}})
	check.Equal(t, "versioned", task.Versioned, true)
	res := p.store(&task)
	p.take(1, ratelimit.Denied)
	p.finish(task, res)
	p.take(1, ratelimit.Allowed)
	p.take(1, ratelimit.Denied)
	check.Equal(t, "counted", p.counted(), int64(1))
	check.Equal(t, "requests that the document does not have", p.y.Unflushed(p.now, nil).Requests, int64(0))
}

// TestPermitsBehindOthers: a write that conflicts with another process takes no permits. The next
// write takes only the remaining ones.
func TestPermitsBehindOthers(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.others(59_940, 9) // the oldest frame that is partly inside the window
	p.take(3, ratelimit.Denied)
	p.exchange()
	check.Equal(t, "held after a conflict", p.held(), int64(0))
	check.Equal(t, "counted", p.counted(), int64(9))
	p.take(3, ratelimit.Denied)
	p.take(1, ratelimit.Denied)
	p.exchange()
	check.Equal(t, "held", p.held(), int64(1))
	check.Equal(t, "counted", p.counted(), int64(10))
	p.take(1, ratelimit.Allowed)
	p.take(1, ratelimit.Denied)
	if _, ok := p.due(); ok {
		t.Error("a key at its limit asks for more")
	}
}

// TestUnknownLease: permits with a lost reply are not used before the document shows that they were
// taken. They are not taken twice.
func TestUnknownLease(t *testing.T) {
	for _, tc := range []struct {
		name    string
		applied bool
		others  int64 // taken by another process in between
		held    int64 // after the next read
		counted int64 // at the end
	}{
		{"applied", true, 0, 2, 2},
		{"applied, and others have written since", true, 3, 2, 5},
		{"not applied, and never will be", false, 3, 0, 7}, // for all four denied requests
		{"perhaps under way", false, 0, 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := leaseFrom(t, strictly(10, time.Minute))
			p.take(2, ratelimit.Denied)
			task, _ := p.due()
			if tc.applied {
				p.store(&task)
			}
			p.finish(task, Result{Status: Unknown})
			if tc.others > 0 {
				p.others(60_000, tc.others)
			}
			check.Equal(t, "held with no answer", p.held(), int64(0))
			p.take(2, ratelimit.Denied)
			read, ok := p.due()
			check.Equal(t, "only reads", ok && read.Seq == 0 && read.Read, true)
			p.finish(read, p.store(&read))
			check.Equal(t, "held after a read", p.held(), tc.held)
			if tc.held == 0 {
				again, _ := p.due()
				check.Equal(t, "sent again under its sequence", again.Seq == task.Seq, tc.others == 0)
				p.finish(again, p.store(&again))
			}
			p.take(2, ratelimit.Allowed)
			check.Equal(t, "counted", p.counted(), tc.counted)
		})
	}
}

// TestPermitsOfOneFrame: permits are used only while the present time, plus or minus its
// uncertainty, is in their frame. When the frame is over they are given back.
func TestPermitsOfOneFrame(t *testing.T) {
	for _, tc := range []struct {
		ms   int64
		want ratelimit.Outcome
	}{
		{100, ratelimit.Allowed},
		{995, ratelimit.Allowed}, // 3 ms of uncertainty, and up to 1 ms of rounding
		{997, ratelimit.Denied},
		{1000, ratelimit.Denied},
		{1500, ratelimit.Denied},
	} {
		p := leaseFrom(t, strictly(10, time.Minute))
		p.take(1, ratelimit.Denied)
		p.exchange()
		p.now = at(minute + tc.ms)
		p.take(1, tc.want)
	}
	p := leaseFrom(t, strictly(10, time.Minute))
	p.take(4, ratelimit.Denied)
	p.exchange()
	p.take(1, ratelimit.Allowed)
	p.now = at(minute + 1500)
	p.take(1, ratelimit.Denied)
	p.exchange()
	p.take(1, ratelimit.Allowed)
	check.Equal(t, "left of a frame that is over", p.doc.Frames, []ratelimit.FrameCount{{Name: 60_000, Count: 1}, {Name: 60_001, Count: 1}})
}

// TestPermitsAheadOfTheFrame: at the end of a frame permits are requested for the next frame. They
// are used once that has certainly begun.
func TestPermitsAheadOfTheFrame(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.now = at(minute + 992)
	p.take(1, ratelimit.Denied)
	task, _ := p.due()
	check.Equal(t, "asked for", task.Delta, []ratelimit.FrameCount{{Name: 60_001, Count: 1}})
	p.finish(task, p.store(&task))
	for _, tc := range []struct {
		ms   int64
		want ratelimit.Outcome
	}{{999, ratelimit.Denied}, {1003, ratelimit.Denied}, {1004, ratelimit.Allowed}, {1005, ratelimit.Denied}} {
		p.now = at(minute + tc.ms)
		p.take(1, tc.want)
	}
}

// TestUncertainClock: without the time of the store, permits are neither used nor requested.
func TestUncertainClock(t *testing.T) {
	c, k, eff := single(strictly(10, time.Minute))
	p := &tenant{player: &player{t: t, c: c, y: c.Sync(SyncOptions{Interval: time.Second}), k: k, eff: eff, now: at(minute + 100)}}
	for _, u := range []time.Duration{0, 500 * time.Millisecond, time.Duration(1<<63 - 1)} {
		if u != 0 {
			p.y.SetUncertainty(p.now, u)
		}
		d := p.c.Take(p.now, p.k, p.eff, 1)
		check.Equal(t, "outcome", d.Outcome, ratelimit.Denied)
		check.Equal(t, "outage", d.Outage, true)
		if task, ok := p.due(); ok && task.Seq != 0 {
			t.Errorf("uncertain by %v: asks for %v", u, task.Delta)
		}
	}
	p.y.SetUncertainty(p.now, 3*time.Millisecond)
	p.take(1, ratelimit.Denied)
	p.exchange()
	p.pass(100 * time.Millisecond)
	p.take(1, ratelimit.Allowed)
}

// TestIdlePermits: unused permits are given back before their frame ends if they matter to others,
// and at once when the process stops.
func TestIdlePermits(t *testing.T) {
	for _, final := range []bool{false, true} {
		p := leaseFrom(t, strictly(10, 10*time.Minute))
		p.take(4, ratelimit.Denied)
		p.exchange()
		check.Equal(t, "held", p.held(), int64(4))
		if final {
			p.y.SetFinal()
			p.next = Finished{}
			p.y.Unflushed(p.now, func(plan Plan) { p.next = Finished{Next: plan, Planned: true} })
		}
		p.exchange()
		check.Equal(t, "counted", p.counted(), int64(0))
		if p.now.UnixMilli() >= minute+9000 {
			t.Errorf("given back only after %d ms", p.now.UnixMilli()-minute)
		}
	}
}

// TestLostReplyOfPermitsGivenBack: they are given back once, and are not used in between.
func TestLostReplyOfPermitsGivenBack(t *testing.T) {
	p := leaseFrom(t, strictly(10, 10*time.Minute))
	p.take(4, ratelimit.Denied)
	p.exchange()
	task, _ := p.due()
	p.store(&task)
	p.finish(task, Result{Status: Unknown})
	p.take(1, ratelimit.Denied)
	for p.next.Planned && p.y.Unflushed(p.now, nil).Counters > 0 {
		if task, ok := p.due(); ok {
			p.finish(task, p.store(&task))
		}
	}
	check.Equal(t, "counted less what is held", p.counted()-p.held(), int64(0))
}

// TestChangedLimitDropsPermits: permits of other frames are never used.
func TestChangedLimitDropsPermits(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.take(4, ratelimit.Denied)
	p.exchange()
	check.Equal(t, "held", p.held(), int64(4))
	_, _, p.eff = single(strictly(10, 2*time.Minute))
	p.take(1, ratelimit.Denied)
	check.Equal(t, "held", p.held(), int64(0))
	check.Equal(t, "known", p.c.Usage(p.now, p.k)[0].Known, int64(4))
}

// TestRefundOfAPermit: a refunded permit can be used again in its frame, and is given back later.
// It is not moved to a frame in which nothing was admitted.
func TestRefundOfAPermit(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.take(1, ratelimit.Denied)
	p.exchange()
	p.take(1, ratelimit.Allowed)
	admitted := p.now
	p.others(60_001, 1) // the next frame
	p.take(2, ratelimit.Denied)
	for p.c.Usage(p.now, p.k)[0].Known < 2 { // until that is read
		p.exchange()
	}
	held := p.held()
	check.Equal(t, "one of the next frame", p.c.Refund(p.now, admitted.Add(time.Second), p.k, p.eff, 1), false)
	check.Equal(t, "held", p.held(), held)
	check.Equal(t, "one of this frame", p.c.Refund(p.now, admitted, p.k, p.eff, 1), true)
	check.Equal(t, "held", p.held(), held+1)
}

// TestNoRoomForPermits: a key without its own counters has no document, so nothing is admitted.
func TestNoRoomForPermits(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.c.all.maxKeys = 0
	for range 2 {
		d, waited := p.c.Await(t.Context(), p.now, p.k, p.eff, 1)
		if d.Outcome != ratelimit.Denied || waited != 0 || !d.Outage {
			t.Errorf("%+v after %v", d, waited)
		}
	}
}

// TestStrictEstimate: a frame counts in full while any part of it is inside the window. Without a
// syncer no permits are needed.
func TestStrictEstimate(t *testing.T) {
	t.Parallel()
	c, k, eff := single(strictly(2, time.Minute))
	take := func(ms int64, want ratelimit.Outcome) ratelimit.Decision {
		t.Helper()
		d := c.Take(at(minute+ms), k, eff, 1)
		check.Equal(t, "outcome", d.Outcome, want)
		return d
	}
	take(0, ratelimit.Allowed)
	take(500, ratelimit.Allowed)
	d := take(999, ratelimit.Denied)
	check.Equal(t, "RetryAfter", d.RetryAfter, 61*time.Second-999*time.Millisecond)
	take(60_999, ratelimit.Denied)
	take(61_000, ratelimit.Allowed)
	take(61_000, ratelimit.Allowed)
	take(61_001, ratelimit.Denied)
	check.Equal(t, "refund", c.Refund(at(minute+61_002), at(minute+61_000), k, eff, 1), true)
	take(61_003, ratelimit.Allowed)
}
