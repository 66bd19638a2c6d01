package counting

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestChangeDuringExchange: counts survive when a limit is changed, moved or removed during an
// exchange.
func TestChangeDuringExchange(t *testing.T) {
	minutes, seconds := perMinute(100), ratelimit.NewLimit("per-second", 50, time.Second)
	shorter := minutes
	shorter.Frames = 6
	for _, tc := range []struct {
		name   string
		limits []ratelimit.Limit
		held   bool // the exchange ends with the counter it began with
	}{
		{"the same again", []ratelimit.Limit{minutes, seconds}, true},
		{"shorter frames", []ratelimit.Limit{shorter, seconds}, true},
		{"another order", []ratelimit.Limit{seconds, minutes}, false},
		{"one removed", []ratelimit.Limit{minutes}, true},
		{"one added", []ratelimit.Limit{minutes, seconds, ratelimit.NewLimit("per-hour", 1000, time.Hour)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, minutes, seconds)
			p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 10)})
			task := p.begin()
			p.take(1, ratelimit.Allowed)
			_, _, p.eff = single(tc.limits...)
			p.take(1, ratelimit.Allowed)
			check.Equal(t, "planned again", p.finish(task, Result{Status: Applied}).Planned, tc.held)
			p.take(1, ratelimit.Allowed)
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
	p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 10)})
	task := p.begin()
	_, _, p.eff = single(sixes)
	p.take(1, ratelimit.Allowed)
	p.finish(task, Result{Status: Applied})
	next := p.begin()
	if next.Versioned || !next.Read {
		t.Fatalf("the next exchange: %+v", next)
	}
	p.finish(next, Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 2, Etag: 2, Frame: 60_000, Frames: frame(60_000, 11)}})
	p.counts(11, 1, 12)
	last := p.begin()
	if !last.Rewrite || last.Frame != 10_000 {
		t.Fatalf("the exchange after it: %+v", last)
	}
	same(t, "the frames after it", frame(60_000, 12), last.Delta)
}

// TestMovedLimitIsNotFreed: a limit that moves to another document keeps its counts, although that
// document does not exist yet.
func TestMovedLimitIsNotFreed(t *testing.T) {
	minutes, seconds := perMinute(5), ratelimit.NewLimit("per-second", 50, time.Second)
	p := play(t, minutes)
	p.take(4, ratelimit.Allowed)
	p.finish(p.begin(), Result{Status: Applied, Read: true})
	_, _, p.eff = single(seconds, minutes)
	p.take(1, ratelimit.Denied)
	for _, plan := range p.y.Due(p.now, nil) {
		if task, ok := p.y.Begin(p.now, plan.Ticket, 100); ok { // fails for an earlier plan of the same counter
			p.y.Finish(p.now, &task, Result{Status: Applied, Read: true})
		}
	}
	p.take(1, ratelimit.Denied)
}

// TestChangedLimitsArePlannedAgain: when the limits of a key change, its waiting exchanges are
// planned again. This includes limits that do not count the request that finds the key.
func TestChangedLimitsArePlannedAgain(t *testing.T) {
	refreshes := ratelimit.NewLimit("refreshes", 100, 24*time.Hour)
	refreshes.Grants = ratelimit.GrantRefresh
	all, more := ratelimit.NewLimit("all", 100, 24*time.Hour), ratelimit.NewLimit("all", 1000, 24*time.Hour)
	unwritten := func(p *player) { p.finish(p.begin(), Result{Read: true}) }
	unanswered := func(p *player) {
		p.finish(p.begin(), Result{Read: true})
		p.finish(p.begin(), Result{Status: Unknown})
	}
	for _, tc := range []struct {
		name    string
		prepare func(*player)
		limits  []ratelimit.Limit
	}{
		{"counts", unwritten, []ratelimit.Limit{refreshes, more}},
		{"counts in another list", unwritten, []ratelimit.Limit{more, refreshes}},
		{"a write without an answer", unanswered, []ratelimit.Limit{refreshes, more}},
		{"such a write in another list", unanswered, []ratelimit.Limit{refreshes, more, ratelimit.NewLimit("further", 1, time.Minute)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, refreshes, all)
			tc.prepare(p)
			p.y.Due(p.now, nil)
			woken := false
			p.c.queue.options.Wake = func() { woken = true }
			p.under(tc.limits...)
			p.eff = p.eff.ForRequest(ratelimit.GrantPassword, "")
			p.take(1, ratelimit.Allowed)
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
