package ratelimit

import (
	"testing"
	"time"
)

// TestChangeDuringExchange: counts survive when a limit is changed, moved or removed during an
// exchange.
func TestChangeDuringExchange(t *testing.T) {
	minutes, seconds := perMinute(100), NewLimit("per-second", 50, time.Second)
	shorter := minutes
	shorter.Frames = 6
	for _, tc := range []struct {
		name   string
		limits []Limit
		held   bool // the exchange ends with the counter it began with
	}{
		{"the same again", []Limit{minutes, seconds}, true},
		{"shorter frames", []Limit{shorter, seconds}, true},
		{"another order", []Limit{seconds, minutes}, false},
		{"one removed", []Limit{minutes}, false},
		{"one added", []Limit{minutes, seconds, NewLimit("per-hour", 1000, time.Hour)}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, minutes, seconds)
			p.read(&Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 10)})
			task := p.begin()
			p.take(1, Allowed)
			_, _, p.eff = single(tc.limits...)
			p.take(1, Allowed)
			if done := p.finish(task, Result{Status: Applied}); done.Planned != tc.held {
				t.Errorf("finished %+v", done)
			}
			p.take(1, Allowed)
			for _, u := range p.c.Usage(p.now, p.k) {
				if u.Limit.Name == "per-minute" && u.Estimate != 14 {
					t.Errorf("%+v, want an estimate of 14", u)
				}
			}
		})
	}
}

// TestChangedFramesAreReadFirst: if the frames of a limit change during a write, the outcome of the
// write does not make the counter treat the document as one with the new frames.
func TestChangedFramesAreReadFirst(t *testing.T) {
	sixes := perMinute(100)
	sixes.Frames = 6
	p := play(t, perMinute(100))
	p.read(&Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 10)})
	task := p.begin()
	_, _, p.eff = single(sixes)
	p.take(1, Allowed)
	p.finish(task, Result{Status: Applied})
	next := p.begin()
	if next.Versioned || !next.Read {
		t.Fatalf("the next exchange: %+v", next)
	}
	p.finish(next, Result{Status: Conflict, Read: true, Document: &Document{Version: 2, Etag: 2, Frame: 60_000, Frames: frame(60_000, 11)}})
	p.counts(11, 1, 12)
	last := p.begin()
	if !last.Rewrite || last.Frame != 10_000 {
		t.Fatalf("the exchange after it: %+v", last)
	}
	same(t, "the frames after it", frame(60_000, 12), last.Delta)
}

// TestPendingWriteSurvivesAMove: if a limit moves within the policy during a write, and keeps its
// document, the write is neither lost nor repeated.
func TestPendingWriteSurvivesAMove(t *testing.T) {
	minutes := perMinute(100)
	p := play(t, minutes)
	p.read(&Document{Version: 1, Etag: 1, Frame: 60_000})
	task := p.begin()
	_, _, p.eff = single(minutes, NewLimit("per-hour", 1000, time.Hour))
	p.take(1, Allowed)
	p.finish(task, Result{Status: Applied}) // its counter no longer exists
	again := p.begin()
	if again.Seq != 0 || again.Pending != task.Seq {
		t.Fatalf("the exchange after it does not look first: %+v", again)
	}
	p.finish(again, Result{Read: true, Document: &Document{Version: 2, Etag: 2, Frame: 60_000, Mine: task.Seq, Frames: frame(60_000, 1)}})
	p.counts(1, 1, 2)
}

// TestMovedLimitIsNotFreed: a limit that moves to another document keeps its counts, although that
// document does not exist yet.
func TestMovedLimitIsNotFreed(t *testing.T) {
	minutes, seconds := perMinute(5), NewLimit("per-second", 50, time.Second)
	p := play(t, minutes)
	p.take(4, Allowed)
	p.finish(p.begin(), Result{Status: Applied, Read: true})
	_, _, p.eff = single(seconds, minutes)
	p.take(1, Denied)
	for _, plan := range p.y.Due(p.now, nil) {
		if task, ok := p.y.Begin(p.now, plan.Ticket, 100); ok { // fails for an earlier plan of the same counter
			p.y.Finish(p.now, &task, Result{Status: Applied, Read: true})
		}
	}
	p.take(1, Denied)
}

// TestChangedLimitsArePlannedAgain: when the limits of a key change, its waiting exchanges are
// planned again. This includes limits that do not count the request that finds the key.
func TestChangedLimitsArePlannedAgain(t *testing.T) {
	refreshes := NewLimit("refreshes", 100, 24*time.Hour)
	refreshes.Grants = GrantRefresh
	all, more := NewLimit("all", 100, 24*time.Hour), NewLimit("all", 1000, 24*time.Hour)
	unwritten := func(p *player) { p.finish(p.begin(), Result{Read: true}) }
	unanswered := func(p *player) {
		p.finish(p.begin(), Result{Read: true})
		p.finish(p.begin(), Result{Status: Unknown})
	}
	for _, tc := range []struct {
		name    string
		prepare func(*player)
		limits  []Limit
	}{
		{"counts", unwritten, []Limit{refreshes, more}},
		{"counts in another list", unwritten, []Limit{more, refreshes}},
		{"a write without an answer", unanswered, []Limit{refreshes, more}},
		{"such a write in another list", unanswered, []Limit{refreshes, more, NewLimit("further", 1, time.Minute)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, refreshes, all)
			tc.prepare(p)
			p.y.Due(p.now, nil)
			woken := false
			p.c.queue.options.Wake = func() { woken = true }
			p.under(tc.limits...)
			p.eff = p.eff.ForRequest(GrantPassword, "")
			p.take(1, Allowed)
			if !woken {
				t.Error("the syncer is not woken")
			}
			for _, plan := range p.y.Due(p.now, nil) {
				if task, ok := p.y.Begin(p.now, plan.Ticket, 1000); ok && task.Limit.Name == refreshes.Name {
					return
				}
			}
			t.Error("no exchange of the refreshes")
		})
	}
}

// TestFrameNames: seconds if frames are whole seconds, otherwise milliseconds.
func TestFrameNames(t *testing.T) {
	for _, tc := range []struct {
		window time.Duration
		frames int
		want   int64
	}{
		{time.Minute, 1, 1_622_211_780},
		{time.Minute, 4, 1_622_211_780},
		{time.Second, 1, 1_622_211_783},
		{time.Second, 10, 1_622_211_783_200},
		{3 * time.Second, 2, 1_622_211_783_000},
	} {
		l := NewLimit("l", 5, tc.window)
		l.Frames = tc.frames
		r := newLimits([]Limit{l}).rules[0]
		name := frameName(r.align(epoch), r.frame)
		if name != tc.want || FrameStart(name) != r.align(epoch) {
			t.Errorf("%v in %d frames: %d, which begins at %d", tc.window, tc.frames, name, FrameStart(name))
		}
	}
}
