package counting

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

const minute = 60_000_000 // milliseconds; the start of a minute, named 60000

// player acts as the syncer of one key.
type player struct {
	t   *testing.T
	c   *Counters
	y   *Sync
	k   ratelimit.Key
	eff *ratelimit.Effective
	now time.Time
	seq int64

	woken chan struct{}
}

// play returns counters with one request of a key, and its syncer.
func play(t *testing.T, limits ...ratelimit.Limit) *player {
	t.Helper()
	c, k, eff := single(limits...)
	p := &player{t: t, c: c, k: k, eff: eff, now: at(minute), woken: make(chan struct{}, 1)}
	p.y = c.Sync(SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second, Wake: func() {
		select {
		case p.woken <- struct{}{}:
		default: // already woken
		}
	}})
	p.take(1, ratelimit.Allowed)
	return p
}

func (p *player) take(n int64, want ratelimit.Outcome) {
	p.t.Helper()
	if d := p.c.Take(p.now, p.k, p.eff, n); d.Outcome != want {
		p.t.Fatalf("%d requests at %v: %s, want %s", n, p.now.UnixMilli()-minute, d.Outcome, want)
	}
}

func (p *player) pass(d time.Duration) { p.now = p.now.Add(d) }

// begin begins an exchange of the first counter of the key now, regardless of its plan.
func (p *player) begin() Task {
	p.t.Helper()
	p.seq += 10
	task, ok := p.y.Begin(p.now, p.y.Of(p.k)[0].Ticket, p.seq)
	if !ok {
		p.t.Fatal("the ticket is not good")
	}
	return task
}

func (p *player) finish(task Task, r Result) Finished {
	if r.NewEtag == 0 {
		r.NewEtag = 7000 + p.seq
	}
	return p.y.Finish(p.now, &task, r)
}

// read gives the counter a document.
func (p *player) read(d *ratelimit.Document) Finished {
	p.t.Helper()
	task := p.begin()
	if task.Seq != 0 {
		p.t.Fatalf("the exchange writes %+v", task.Write)
	}
	return p.finish(task, Result{Read: true, Document: d})
}

// counts checks g, the unflushed count, and the estimate.
func (p *player) counts(g, unflushed, estimate int64) {
	p.t.Helper()
	us := p.c.Usage(p.now, p.k)
	if len(us) == 0 {
		us = []ratelimit.Usage{{}}
	}
	if u := us[0]; u.Known != g || u.Unflushed != unflushed || int64(u.Estimate) != estimate {
		p.t.Errorf("g %d, unflushed %d, estimate %v; want %d, %d, %d", u.Known, u.Unflushed, u.Estimate, g, unflushed, estimate)
	}
}

func frame(pairs ...int64) (list []ratelimit.FrameCount) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, ratelimit.FrameCount{Name: pairs[i], Count: pairs[i+1]})
	}
	return list
}

// TestFirstContact: the document of a new key is read at once if the requests of this process are
// many for the limit, or in absolute numbers. Otherwise it is read together with others. The counts
// are written in the same exchange only if other processes could need them.
func TestFirstContact(t *testing.T) {
	for _, tc := range []struct {
		name            string
		limit           int64
		instances       int
		requests        int64 // after the first
		urgent, written bool
	}{
		{"one request, far from the limit", 100, 10, 0, false, false},
		{"two", 100, 10, 1, false, false},
		{"three", 100, 10, 2, true, true},
		{"three, with a high limit", 1_000_000, 10, 2, true, false},
		{"a limit as small as the cluster", 10, 10, 1, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, perMinute(tc.limit))
			p.y.SetInstances(tc.instances)
			for range tc.requests {
				p.take(1, ratelimit.Allowed)
			}
			woken := false
			select {
			case <-p.woken:
				woken = true
			default:
			}
			wait := time.Second
			if tc.urgent {
				wait = gatherReads * time.Millisecond
			}
			plans := p.y.Due(p.now, nil)
			last := plans[len(plans)-1] // the only one with a valid ticket
			if woken != tc.urgent || last.In != wait || last.Lazy == tc.urgent {
				t.Fatalf("woken: %t, plans %+v", woken, plans)
			}
			task, ok := p.y.Begin(p.now, last.Ticket, 1)
			if !ok || !task.Read || (task.Seq != 0) != tc.written || task.Versioned {
				t.Fatalf("task %+v, %t", task, ok)
			}
			p.take(1, ratelimit.Allowed)
			check.Equal(t, "plans while an exchange is under way", len(p.y.Due(p.now, nil)), 0)
			p.finish(task, Result{Status: Applied, Read: true, Document: &ratelimit.Document{Version: 7, Etag: 8, Frame: 60_000, Writers: 3, Frames: frame(60_000, 4)}})
			p.take(1, ratelimit.Allowed)
		})
	}
}

// TestDue: counts wait until they could matter to other processes.
func TestDue(t *testing.T) {
	p := play(t, perMinute(100))
	p.y.SetInstances(4)
	p.read(nil)
	p.finish(p.begin(), Result{Status: Applied})
	p.y.Due(p.now, nil)
	for n := 1; n <= 8; n++ {
		p.take(1, ratelimit.Allowed)
		plans := p.y.Due(p.now, nil)
		switch n {
		case 1:
			if len(plans) != 1 || !plans[0].Lazy || plans[0].In < time.Second {
				t.Errorf("the first request is planned as %+v", plans)
			}
		case 6: // 4 x 4 x 6 is no longer less than the 93 that remain
			if len(plans) != 1 || plans[0].Lazy || plans[0].In != 0 {
				t.Errorf("the sixth request is planned as %+v", plans)
			}
			<-p.woken
		default:
			check.Equal(t, fmt.Sprint("plans for request ", n), len(plans), 0)
		}
	}
}

// TestPendingWriteStays: sequence and delta stay the same until the outcome is known.
func TestPendingWriteStays(t *testing.T) {
	p := play(t, perMinute(100))
	p.read(&ratelimit.Document{Version: 3, Etag: 4, Frame: 60_000})
	first := p.begin()
	same(t, "the first attempt", Write{
		Seq: 20, Versioned: true, Version: 3, Etag: 4, Frame: 60_000,
		Delta: frame(60_000, 1), Expire: at(minute + 3*60_000),
	}, first.Write)
	if first.Read {
		t.Error("a versioned write needs no read")
	}
	p.take(5, ratelimit.Allowed)
	done := p.finish(first, Result{Status: Unknown})
	if !done.Pending || !done.Planned || done.Next.In != firstRetry*time.Millisecond {
		t.Errorf("after an unknown outcome: %+v", done)
	}
	p.counts(0, 6, 6)

	again := p.begin()
	same(t, "the second attempt", Write{Seq: 20, Frame: 60_000, Delta: frame(60_000, 1), Expire: first.Expire}, again.Write)
	if !again.Read {
		t.Error("the second attempt does not read")
	}
	done = p.finish(again, Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 9, Etag: 9, Mine: 15, Frame: 60_000, Frames: frame(60_000, 50)}})
	if done.Pending || done.Next.In != 0 {
		t.Errorf("after a conflict: %+v", done)
	}
	p.counts(50, 6, 56)

	third := p.begin()
	check.Equal(t, "sequence of the third attempt", third.Seq, 20)
	same(t, "the delta", first.Delta, third.Delta)
	done = p.finish(third, Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 10, Etag: 10, Mine: 20, Frame: 60_000, Frames: frame(60_000, 51)}})
	if done.Pending {
		t.Errorf("the document has it: %+v", done)
	}
	p.counts(51, 5, 56)
	next := p.begin()
	check.Equal(t, "sequence of the next write", next.Seq, p.seq)
	same(t, "the next delta", frame(60_000, 5), next.Delta)
}

// TestOutcomes: the effect of each outcome of a write on the counts, with and without a document.
func TestOutcomes(t *testing.T) {
	doc := func(mine, count int64) *ratelimit.Document {
		return &ratelimit.Document{Version: 10, Etag: 11, Frame: 60_000, Mine: mine, Contended: true, Writers: 2, Frames: frame(60_000, count)}
	}
	for _, tc := range []struct {
		name         string
		result       Result
		g, unflushed int64
		pending      bool // the next exchange sends the same sequence
		reads        bool // the next exchange reads before it sends again
		in           time.Duration
	}{
		{"applied, read after it", Result{Status: Applied, Read: true, Document: doc(20, 31)}, 31, 0, false, false, 0},
		{"applied, read before it", Result{Status: Applied, Read: true, Document: doc(0, 30)}, 31, 0, false, false, 0},
		{"applied, not read", Result{Status: Applied}, 11, 0, false, true, 0},
		{"applied, there was no document", Result{Status: Applied, Read: true}, 1, 0, false, false, 0},
		{"conflict, applied before", Result{Status: Conflict, Read: true, Document: doc(20, 31)}, 31, 0, false, false, 0},
		{"conflict, not applied", Result{Status: Conflict, Read: true, Document: doc(0, 30)}, 30, 1, true, false, 0},
		{"conflict, not read", Result{Status: Conflict}, 10, 1, true, true, firstRetry * time.Millisecond},
		{"unknown, read: it is there", Result{Read: true, Document: doc(20, 31)}, 31, 0, false, false, 0},
		{"unknown, read: not there yet", Result{Read: true, Document: doc(0, 30)}, 30, 1, true, false, firstRetry * time.Millisecond},
		{"unknown, not read", Result{}, 10, 1, true, false, firstRetry * time.Millisecond},
		{"refused for good", Result{Status: Rejected, Read: true, Document: doc(0, 30)}, 30, 1, true, false, refusedWait},
		{"its sequence was pruned", Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 10, Etag: 11, Frame: 60_000, Pruned: 25, Frames: frame(60_000, 30)}}, 30, 1, false, false, 10 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, perMinute(1000))
			p.read(&ratelimit.Document{Version: 9, Etag: 9, Frame: 60_000, Contended: true, Writers: 2, Frames: frame(60_000, 10)})
			task := p.begin()
			if task.Versioned || !task.Read || task.Seq != 20 {
				t.Fatalf("the write of a contended counter: %+v", task)
			}
			done := p.finish(task, tc.result)
			p.counts(tc.g, tc.unflushed, tc.g+tc.unflushed)
			if tc.unflushed > 0 && done.Next.In != tc.in {
				t.Errorf("the next exchange is in %v, want %v", done.Next.In, tc.in)
			}
			if next := p.begin(); next.Pending == 20 != tc.pending || tc.reads != (next.Read && next.Seq == 0) && tc.unflushed > 0 {
				t.Errorf("the next exchange: %+v", next)
			}
		})
	}
}

// TestReadBeforeTheSecondResend: if the outcome is still unknown after a second attempt, the
// document is read before a third.
func TestReadBeforeTheSecondResend(t *testing.T) {
	p := play(t, perMinute(100))
	p.read(nil)
	p.finish(p.begin(), Result{})
	wait := time.Duration(0)
	for try := range 12 {
		task := p.begin()
		reads := try > 0 && try%2 == 1
		check.Equal(t, fmt.Sprint("only reads in try ", try), task.Seq == 0, reads)
		if reads {
			p.finish(task, Result{Read: true})
			continue
		}
		done := p.finish(task, Result{})
		if done.Next.In <= wait && done.Next.In != 5*time.Second {
			t.Errorf("try %d waits for %v after %v", try, done.Next.In, wait)
		}
		wait = done.Next.In
	}
	p.counts(0, 1, 1)
}

// TestConflictsBackOff: writes back off if the document refuses all of them.
func TestConflictsBackOff(t *testing.T) {
	p := play(t, perMinute(100))
	p.read(nil)
	var waits []time.Duration
	for range 12 {
		done := p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000}})
		waits = append(waits, done.Next.In)
	}
	same(t, "waits in milliseconds", []time.Duration{0, 0, 25, 50, 100, 200, 400, 800, 1600, 3200, 5000, 5000}, inMillis(waits))
}

func inMillis(ds []time.Duration) (out []time.Duration) {
	for _, d := range ds {
		out = append(out, d/time.Millisecond)
	}
	return out
}

// TestTickets: a counter that is planned again is begun once, and never while it is busy.
func TestTickets(t *testing.T) {
	p := play(t, perMinute(5))
	old := p.y.Of(p.k)[0].Ticket
	good := p.y.Of(p.k)[0].Ticket
	if _, ok := p.y.Begin(p.now, old, 1); ok {
		t.Error("an old ticket is good")
	}
	task, ok := p.y.Begin(p.now, good, 1)
	if !ok {
		t.Fatal("the latest ticket is not good")
	}
	if _, ok := p.y.Begin(p.now, good, 2); ok || len(p.y.Of(p.k)) != 0 {
		t.Error("begun while it is busy")
	}
	done := p.finish(task, Result{Read: true})
	if _, ok := p.y.Begin(p.now, good, 3); ok {
		t.Error("a used ticket is good")
	}
	if _, ok := p.y.Begin(p.now, done.Next.Ticket, 4); !ok {
		t.Error("the next ticket is not good")
	}
	if _, ok := p.y.Begin(p.now, Ticket{}, 5); ok {
		t.Error("the zero ticket is good")
	}
}

// TestGoneCounter: an exchange with a counter that was removed from memory changes nothing, not
// even the key that took its place.
func TestGoneCounter(t *testing.T) {
	p := play(t, perMinute(5))
	task := p.begin()
	if !p.c.Reset(p.k) {
		t.Fatal("the key is not in memory")
	}
	p.take(2, ratelimit.Allowed)
	check.Equal(t, "finished", p.finish(task, Result{Status: Applied, Read: true, Document: &ratelimit.Document{Version: 1, Frames: frame(60_000, 5)}}), (Finished{}))
	p.counts(0, 2, 2)
}

// TestDeniedKeyIsLeftAlone: the document of a key that cannot become free is read only when it is
// about to become free.
func TestDeniedKeyIsLeftAlone(t *testing.T) {
	p := play(t, perMinute(3))
	p.take(2, ratelimit.Allowed)
	p.finish(p.begin(), Result{Status: Applied, Read: true})
	p.take(1, ratelimit.Denied)
	plans := p.y.Due(p.now, nil)
	if len(plans) != 1 || plans[0].In < 59*time.Second || plans[0].In > 61*time.Second {
		t.Fatalf("a denied key is planned as %+v", plans)
	}
	for range 1000 {
		p.pass(50 * time.Millisecond)
		p.take(1, ratelimit.Denied)
		check.Equal(t, "plans of a denied key", len(p.y.Due(p.now, nil)), 0)
	}
}

// TestUnflushed counts the requests that the store does not have, and plans their exchanges.
func TestUnflushed(t *testing.T) {
	p := play(t, perMinute(100), ratelimit.NewLimit("per-hour", 100, time.Hour))
	p.take(2, ratelimit.Allowed)
	p.c.Take(p.now, ratelimit.Key{ClientID: "client", Username: "other"}, p.eff, 4)
	task := p.begin()
	plans := 0
	u := p.y.Unflushed(p.now, func(Plan) { plans++ })
	same(t, "unflushed", Unflushed{Counters: 4, Requests: 14}, u)
	check.Equal(t, "counters planned, all but the busy one,", plans, 3)
	p.finish(task, Result{Read: true})
	p.y.SetFinal()
	for _, k := range []ratelimit.Key{p.k, {ClientID: "client", Username: "other"}} {
		for _, plan := range p.y.Of(k) {
			task, _ := p.y.Begin(p.now, plan.Ticket, 1)
			done := p.y.Finish(p.now, &task, Result{Status: Applied, Read: task.Read, NewEtag: 1})
			for done.Planned && task.Seq == 0 {
				task, _ = p.y.Begin(p.now, done.Next.Ticket, 1)
				done = p.y.Finish(p.now, &task, Result{Status: Applied, Read: task.Read, NewEtag: 1})
			}
			if done.Planned {
				t.Errorf("still planned: %+v", done)
			}
		}
	}
	same(t, "unflushed", Unflushed{}, p.y.Unflushed(p.now, nil))
}
