package counting

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

// under puts the key of the player under other limits.
func (p *player) under(limits ...ratelimit.Limit) {
	_, _, p.eff = single(limits...)
}

// TestMovedLimitAdds: the counts of a limit's previous document are added to the counts that others
// have written to its present document.
func TestMovedLimitAdds(t *testing.T) {
	a, b := ratelimit.NewLimit("a", 100, time.Minute), ratelimit.NewLimit("b", 1_000_000, time.Hour)
	p := play(t, a, b)
	p.take(79, ratelimit.Allowed)
	p.under(b, a)
	p.take(1, ratelimit.Allowed)
	known := func(limit string) int64 {
		for _, u := range p.c.Usage(p.now, p.k) {
			if u.Limit.Name == limit {
				return u.Known + u.Unflushed
			}
		}
		return 0
	}
	same(t, "of a before its document was read", int64(81), known("a"))
	for range 3 { // the same result for every read
		for _, plan := range p.y.Of(p.k) {
			task, _ := p.y.Begin(p.now, plan.Ticket, 0)
			p.finish(task, Result{Read: true, Document: &ratelimit.Document{
				Version: 1, Etag: 1, Frame: time.Minute.Milliseconds(), Frames: frame(60_000, 15),
			}})
		}
		same(t, "of a", int64(81+15), known("a"))
		same(t, "of b, whose document is in the frames of a", int64(81+15), known("b"))
	}
	p.pass(3 * time.Minute)
	p.take(1, ratelimit.Allowed)
	for _, plan := range p.y.Of(p.k) {
		task, _ := p.y.Begin(p.now, plan.Ticket, 0)
		p.finish(task, Result{Read: true})
	}
	same(t, "of a when that was long ago", int64(1), known("a"))
	same(t, "of b, whose window is longer", int64(82), known("b"))
}

// TestLongerWindowKeepsFrames: frames that were too old are kept when the limit gets a longer
// window with frames of the same length.
func TestLongerWindowKeepsFrames(t *testing.T) {
	p := play(t, perMinute(100))
	document := func() *ratelimit.Document {
		return &ratelimit.Document{Version: 5, Etag: 5, Frame: 60_000, Frames: frame(59_700, 50, 60_000, 0)}
	}
	p.read(document())
	for range 3 {
		p.pass(50 * time.Second)
		p.take(1, ratelimit.Allowed)
		p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: document()})
	}
	same(t, "removed before", frame(59_700, 50), p.repairs().remove.Frames)
	hour := ratelimit.NewLimit("per-minute", 100, time.Hour)
	hour.Frames = 60
	p.under(hour)
	p.take(1, ratelimit.Allowed)
	task := p.begin()
	if len(task.Delta) == 0 {
		t.Error("nothing is written")
	}
	same(t, "removed after", []ratelimit.FrameCount(nil), task.Remove.Frames)
}

// repairs returns the repairs for the document of the player's key.
func (p *player) repairs() *repairs {
	s, h := p.c.lookup(p.k)
	return s.repairs[s.Find(h)]
}

// TestFutureComesTrue: a frame that was far ahead is not removed once its time is near.
func TestFutureComesTrue(t *testing.T) {
	p := play(t, ratelimit.NewLimit("second", 1000, time.Second))
	const base = minute / 1000
	p.read(&ratelimit.Document{Version: 5, Etag: 5, Frame: 1000, Frames: frame(base+10, 3)})
	task := p.begin()
	ahead := func(version int64) *ratelimit.Document {
		return &ratelimit.Document{Version: version, Etag: 6, Mine: task.Seq, Frame: 1000, Frames: frame(base, 1, base+10, 3)}
	}
	p.finish(task, Result{Status: Applied, Read: true, Document: ahead(6)})
	p.pass(2500 * time.Millisecond)
	p.read(ahead(6))
	same(t, "to be removed", frame(base+10, 3), p.repairs().remove.Frames)
	p.pass(7600 * time.Millisecond)
	p.take(1, ratelimit.Allowed)
	task = p.begin()
	same(t, "delta", frame(base+10, 1), task.Delta)
	same(t, "removed", []ratelimit.FrameCount(nil), task.Remove.Frames)
}

// TestKnownStays: counts written by this process count in their frame, even if others have written
// to a later one.
func TestKnownStays(t *testing.T) {
	p := play(t, perMinute(1000))
	p.take(299, ratelimit.Allowed)
	p.finish(p.begin(), Result{Status: Applied, Read: true, Document: &ratelimit.Document{
		Version: 1, Etag: 1, Mine: 10, Frame: 60_000, Frames: frame(60_000, 300),
	}})
	p.pass(time.Minute)
	p.take(1, ratelimit.Allowed)
	p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: &ratelimit.Document{
		Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_060, 400),
	}})
	p.counts(700, 1, 701)
}

// TestRefusedStaysPending: a refused write is not treated as one with an unknown outcome because
// the next exchange only reads.
func TestRefusedStaysPending(t *testing.T) {
	p := play(t, perMinute(100))
	p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Contended: true})
	p.finish(p.begin(), Result{Status: Conflict}) // and no read
	task := p.begin()
	same(t, "sequence of the write", int64(0), task.Seq)
	done := p.finish(task, Result{Read: true, Document: &ratelimit.Document{
		Version: 2, Etag: 2, Frame: 60_000, Mine: 1 << 40, Contended: true, Frames: frame(60_000, 7),
	}})
	same(t, "clone", true, done.Clone)
	p.counts(7, 1, 8)
}

// TestClocksOfTwoProcessors: a time slightly before the latest one is treated as the latest.
func TestClocksOfTwoProcessors(t *testing.T) {
	p := play(t, perMinute(100))
	document := &ratelimit.Document{Version: 5, Etag: 5, Frame: 60_000, Frames: frame(59_700, 50)}
	p.read(document)
	p.pass(-2 * time.Millisecond)
	task := p.begin()
	same(t, "age", time.Duration(0), task.Age)
	p.finish(task, Result{Status: Conflict, Read: true, Document: document})
	same(t, "removed at once", []ratelimit.FrameCount(nil), p.begin().Remove.Frames)
}

// TestOverflowIsCutOff: during an outage, requests on an overflow counter cannot be shared.
func TestOverflowIsCutOff(t *testing.T) {
	limit := perMinute(100)
	limit.OnOutage = ratelimit.Deny
	_, _, eff := single(limit)
	c := NewCounters(1)
	y := attach(c)
	c.Take(at(minute), ratelimit.Key{ClientID: "client", Username: "first"}, eff, 1)
	y.Stalled()
	d := c.Take(at(minute), ratelimit.Key{ClientID: "client", Username: "late"}, eff, 1)
	same(t, "outcome", ratelimit.Denied, d.Outcome)
	same(t, "because of the outage", true, d.Outage)
}

// TestLongClientNames: a client is found by its name even if a long username caused its digest to
// be stored.
func TestLongClientNames(t *testing.T) {
	id := strings.Repeat("c", 150)
	_, _, eff := single(perMinute(10))
	c := NewCounters(100)
	now := at(minute)
	c.Take(now, ratelimit.Key{ClientID: id, Username: strings.Repeat("u", 150)}, eff, 1)
	c.Take(now, ratelimit.Key{ClientID: id, Username: "u"}, eff, 1)
	c.Take(now, ratelimit.Key{ClientID: "other", Username: "u"}, eff, 1)
	same(t, "counters of the client", 2, len(c.ClientUsage(now, id, 10)))
	same(t, "keys forgotten", 2, c.ResetClient(id))
	same(t, "keys left", 1, c.Len())
}
