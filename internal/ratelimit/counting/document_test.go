package counting

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestForeignDocuments: documents that this program cannot have written neither free nor harm a
// key.
func TestForeignDocuments(t *testing.T) {
	for _, tc := range []struct {
		name    string
		frames  []ratelimit.FrameCount
		foreign int
		known   int64
	}{
		{"negative", frame(60_000, -5, 59_940, 10), 1, 10},
		{"absurd", frame(60_000, 1<<62, 59_940, 10), 1, 10},
		{"far in the future", frame(60_000, 10, 70_000, 5, 1<<40, 5), 2, 10},
		{"the next frame already", frame(60_000, 10, 60_060, 5), 0, 15},
		{"as much as is counted", frame(60_000, ratelimit.MaxCount, 59_940, ratelimit.MaxCount), 0, 2 * ratelimit.MaxCount},
		{"not aligned", frame(60_007, 4, 60_000, 1), 0, 5},
		{"older than anything", frame(-1, 4, 0, 7, 60_000, 1), 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, perMinute(100))
			done := p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: tc.frames})
			check.Equal(t, "frames that make no sense", done.Foreign, tc.foreign)
			if u := p.c.Usage(p.now, p.k)[0]; u.Known != tc.known || u.Unflushed != 1 {
				t.Errorf("%+v, want %d known", u, tc.known)
			}
		})
	}
}

// TestNegativeCountIsMended: the limit holds although each read finds a negative count. The next
// write replaces it with the known count.
func TestNegativeCountIsMended(t *testing.T) {
	p := play(t, perMinute(5))
	p.take(1, ratelimit.Allowed)
	p.finish(p.begin(), Result{Status: Applied, Read: true, Document: &ratelimit.Document{Version: 1, Etag: 1, Mine: 10, Frame: 60_000, Frames: frame(60_000, 2)}})
	p.take(2, ratelimit.Allowed)
	bad := &ratelimit.Document{Version: 2, Etag: 2, Mine: 10, Frame: 60_000, Contended: true, Frames: frame(59_940, 1, 60_000, -50)}
	p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: bad})
	p.counts(3, 2, 5)
	p.take(1, ratelimit.Denied)
	task := p.begin()
	if !task.Versioned || !task.Rewrite || task.Version != 2 || !task.Read {
		t.Fatalf("the next write does not mend: %+v", task)
	}
	same(t, "the frames after it", frame(59_940, 1, 60_000, 4), task.Delta)
	p.finish(task, Result{Status: Applied, Read: true, Document: &ratelimit.Document{Version: 3, Etag: 7030, Mine: 20, Frame: 60_000, Frames: frame(59_940, 1, 60_000, 4)}})
	p.counts(5, 0, 5)
	p.take(1, ratelimit.Denied)
}

// TestDamagedDocumentIsMended: invalid frames are removed from the document.
func TestDamagedDocumentIsMended(t *testing.T) {
	p := play(t, perMinute(100))
	p.read(&ratelimit.Document{Version: 4, Etag: 4, Frame: 60_000, Damaged: true, Contended: true, Frames: frame(60_000, 3)})
	task := p.begin()
	if !task.Rewrite || !task.Versioned {
		t.Fatalf("%+v", task)
	}
	same(t, "the frames after it", frame(60_000, 4), task.Delta)
}

// TestOwnCountsNeverFall: counts written by this process stay known if the document loses them, and
// the loss is reported.
func TestOwnCountsNeverFall(t *testing.T) {
	p := play(t, perMinute(100))
	p.take(9, ratelimit.Allowed)
	p.read(nil)
	p.finish(p.begin(), Result{Status: Applied})
	p.take(1, ratelimit.Allowed)
	done := p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 4)}})
	check.Equal(t, "counts reported as lost", done.Lost, 6)
	p.counts(10, 1, 11)
	p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 2, Etag: 2, Frame: 60_000, Frames: frame(60_000, 40)}})
	p.counts(40, 1, 41)
	p.finish(p.begin(), Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 3, Etag: 3, Frame: 60_000, Frames: frame(60_000, 35)}})
	p.counts(35, 1, 36) // given back by others
}

// TestFrameLengthOfTheDocument: a document records its frame length, so a change of frames frees no
// key, even in a process that has just started.
func TestFrameLengthOfTheDocument(t *testing.T) {
	sixes := perMinute(200)
	sixes.Frames = 6
	for _, tc := range []struct {
		name     string
		limit    ratelimit.Limit
		doc      ratelimit.Document
		estimate int64 // with the request of the test
		want     []ratelimit.FrameCount
	}{
		{
			"minutes read as tens of seconds", sixes,
			ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 100)},
			101, frame(60_000, 101),
		},
		{
			"the minute before counts as of its end", sixes,
			ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(59_880, 7, 59_940, 100, 60_000, 1)},
			102, frame(59_930, 7, 59_990, 100, 60_000, 2),
		},
		{
			"tens of seconds read as minutes", perMinute(200),
			ratelimit.Document{Version: 1, Etag: 1, Frame: 10_000, Frames: frame(59_980, 5, 59_990, 6, 60_000, 7)},
			19, frame(59_940, 11, 60_000, 8),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, tc.limit)
			p.read(&tc.doc)
			check.Equal(t, "estimate", int64(p.c.Usage(p.now, p.k)[0].Estimate), tc.estimate)
			task := p.begin()
			if !task.Versioned || !task.Rewrite || task.Frame != tc.limit.Window.Milliseconds()/int64(tc.limit.Frames) {
				t.Fatalf("the next write does not convert: %+v", task)
			}
			same(t, "the frames after it", tc.want, task.Delta)
		})
	}
}

// afterRemoval returns the frames of a document without the removed ones. It must have them, with
// the counts that the removal states.
func afterRemoval(t *testing.T, frames, removed []ratelimit.FrameCount) []ratelimit.FrameCount {
	t.Helper()
	for _, f := range removed {
		i := slices.Index(frames, f)
		if i < 0 {
			t.Fatalf("removes %v, the document has %v", f, frames)
		}
		frames = slices.Delete(frames, i, i+1)
	}
	return frames
}

// TestRemoval: a frame or a writer is removed from a document only after this process has seen it
// unchanged for two windows. The write states the values that were seen.
func TestRemoval(t *testing.T) {
	p := play(t, perMinute(1000))
	silent := []ratelimit.WriterSeq{{Writer: "aa", Seq: 5}, {Writer: "bb", Seq: 6}}
	old := frame(59_000, 4, 59_060, 7)
	exchange := func() ratelimit.Removal {
		t.Helper()
		p.take(1, ratelimit.Allowed)
		task := p.begin()
		old = afterRemoval(t, old, task.Remove.Frames)
		now := p.now.UnixMilli() / 60_000 * 60
		p.finish(task, Result{Status: Applied, Read: true, Document: &ratelimit.Document{
			Version: 1, Etag: 1, Frame: 60_000, Mine: task.Pending, Contended: true, Silent: silent,
			Frames: append(slices.Clone(old), frame(now-60, 2, now, 3)...),
		}})
		return task.Remove
	}
	exchange()
	exchange()
	for n := range 6 { // two minutes, but a count changes in between
		p.pass(20 * time.Second)
		if n == 4 {
			old[1].Count++
		}
		same(t, "too early", ratelimit.Removal{}, exchange())
	}
	silentFor := exchange()
	same(t, "the writers have not changed", ratelimit.Removal{Writers: silent}, silentFor)
	silent = nil
	for n := 0; len(old) > 0; n++ {
		if n == 30 {
			t.Fatalf("after ten minutes the document still has %v", old)
		}
		before := len(old)
		if exchange(); len(old) < before && n < 3 {
			t.Errorf("%v went with the change a minute ago", old)
		}
		p.pass(20 * time.Second)
	}
}

// TestClockRemovesNothing: a clock that is stepped by hours does not make a frame old enough.
func TestClockRemovesNothing(t *testing.T) {
	p := play(t, perMinute(1000))
	p.pass(5 * time.Hour) // like a stepped wall clock, before anything was seen
	p.take(1, ratelimit.Allowed)
	p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Contended: true, Frames: frame(60_000, 61)})
	check.Equal(t, "removed", p.begin().Remove.Frames, nil)
}

// TestFutureFramesLeave: frames far in the future do not count. They are removed from the document
// once no process counts in them.
func TestFutureFramesLeave(t *testing.T) {
	p := play(t, perMinute(1000))
	future := frame(63_600, 8, 63_660, 9, 63_720, 10)
	exchange := func() {
		t.Helper()
		p.take(1, ratelimit.Allowed)
		task := p.begin()
		future = afterRemoval(t, future, task.Remove.Frames)
		now := p.now.UnixMilli() / 60_000 * 60
		p.finish(task, Result{Status: Applied, Read: true, Document: &ratelimit.Document{
			Version: 1, Etag: 1, Frame: 60_000, Contended: true, Mine: task.Pending, Frames: append(frame(now, 3), future...),
		}})
		if u := p.c.Usage(p.now, p.k)[0]; u.Known > 20 {
			t.Fatalf("frames an hour ahead count: %+v", u)
		}
		p.pass(20 * time.Second)
	}
	for range 30 { // the process with a clock an hour ahead still counts
		future[len(future)-1].Count++
		exchange()
	}
	check.Equal(t, "future frames after ten minutes", len(future), 1)
	for range 30 {
		exchange()
	}
	check.Equal(t, "future frames ten minutes after the end", len(future), 0)
}

// TestSurplusWriters: writers above the bound are removed at once, and their highest sequence is
// kept.
func TestSurplusWriters(t *testing.T) {
	p := play(t, perMinute(1000))
	surplus := []ratelimit.WriterSeq{{Writer: "aa", Seq: 5}, {Writer: "bb", Seq: 9}}
	p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Contended: true, Surplus: surplus})
	task := p.begin()
	same(t, "the removal", ratelimit.Removal{Writers: surplus}, task.Remove)
	check.Equal(t, "highest sequence that is removed", task.Pruned, 9)
}

// TestPrunedWriter: a pending write is not lost if its writer was removed in between.
func TestPrunedWriter(t *testing.T) {
	p := play(t, perMinute(1000))
	p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Contended: true})
	task := p.begin()
	p.finish(task, Result{}) // unknown
	again := p.begin()
	p.finish(again, Result{Status: Conflict, Read: true, Document: &ratelimit.Document{Version: 9, Etag: 9, Pruned: again.Seq, Frame: 60_000, Contended: true}})
	next := p.begin()
	if next.Seq <= again.Seq {
		t.Errorf("sent again as %d, which the document refuses up to %d", next.Seq, again.Seq)
	}
	same(t, "its delta", frame(60_000, 1), next.Delta)
}

// TestClone: if the own sequence in a document is ahead, a copy of this process wrote it. Counts
// that are certainly missing from the document are counted under a new name. Counts that may be in
// it are not counted twice.
func TestClone(t *testing.T) {
	for _, tc := range []struct {
		name      string
		unknown   bool // an earlier attempt has an unknown outcome
		unflushed int64
	}{
		{"its write was refused", false, 1},
		{"its write may have been applied", true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, perMinute(100))
			p.read(&ratelimit.Document{Version: 1, Etag: 1, Frame: 60_000, Contended: true})
			if tc.unknown {
				p.finish(p.begin(), Result{})
			}
			task := p.begin()
			done := p.finish(task, Result{Status: Conflict, Read: true, Document: &ratelimit.Document{
				Version: 2, Etag: 2, Frame: 60_000, Mine: task.Seq + 1, Contended: true, Frames: frame(60_000, 30),
			}})
			if !done.Clone {
				t.Error("the clone is not noticed")
			}
			p.counts(30, tc.unflushed, 30+tc.unflushed)
			if tc.unflushed > 0 {
				if next := p.begin(); next.Seq <= task.Seq {
					t.Errorf("sent again under the sequence %d, which is taken", next.Seq)
				}
			}
		})
	}
}

// TestNothingStaysBehind: observations of documents are dropped with their keys, including keys
// that were only read. So the same load again needs no more memory.
func TestNothingStaysBehind(t *testing.T) {
	p := play(t, perMinute(1000))
	load := func() (size int) {
		for i := range 500 {
			p.k = ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(i)}
			p.take(1, ratelimit.Allowed)
			p.read(&ratelimit.Document{
				Version: 1, Etag: 1, Frame: 10_000, Contended: true, Damaged: true, Silent: []ratelimit.WriterSeq{{Writer: "aa", Seq: 5}},
				Frames: frame(50_000, 4, 60_000, 1, 90_000, 2),
			})
		}
		p.pass(time.Hour)
		p.c.Sweep(p.now)
		for i := range p.c.shards {
			s := &p.c.shards[i]
			check.Equal(t, "repairs", len(s.repairs), 0)
			size += len(s.Extras)
		}
		return size
	}
	if first, second := load(), load(); first < 500 || second != first {
		t.Errorf("%d extras, then %d", first, second)
	}
	check.Equal(t, "keys", p.c.Len(), 0)
}
