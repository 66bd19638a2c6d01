package ratelimit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const minute = 60_000_000 // milliseconds; the start of a minute, named 60000

// attached returns counters with a syncer's view of one key.
func attached(t *testing.T, limits ...Limit) (*Counters, Key, *Effective, *Counter) {
	t.Helper()
	c, k, eff := single(limits...)
	c.Attach()
	d := c.Take(at(minute), k, eff, 1)
	require.Equal(t, Allowed, d.Outcome)
	due := c.Collect(nil)
	require.Len(t, due, len(limits))
	return c, k, eff, due[0]
}

// begin releases the counter if it is busy and begins a write; false if there
// is nothing to write.
func begin(c *Counters, x *Counter, now time.Time, seq int64) (Write, bool) {
	c.Release(x, now)
	_, ticket, _ := c.Look(x, now)
	w, ok := c.BeginWrite(x, now, ticket, seq)
	return w, ok && len(w.Delta) > 0
}

// TestFirstSeenIsUrgent: a key of which nothing is known is read at once.
func TestFirstSeenIsUrgent(t *testing.T) {
	c, k, eff, x := attached(t, NewLimit("per-minute", 100, time.Minute))
	select {
	case <-c.Wake():
	default:
		t.Fatal("not woken")
	}
	v, ticket, ok := c.Look(x, at(minute))
	require.True(t, ok)
	require.Empty(t, cmp.Diff(View{
		ID: CounterID{"client", "user", ""}, Limit: eff.User.All()[0], Unflushed: 1, Headroom: 99, Urgent: true,
	}, v))
	begun, ok := c.BeginRead(x, at(minute), ticket)
	require.True(t, ok)
	require.True(t, begun.Busy)
	require.Equal(t, v.ID, begun.ID)

	c.Take(at(minute), k, eff, 1)
	require.Empty(t, c.Collect(nil), "the syncer is at it already")

	m := c.Merge(x, at(minute), Document{Version: 7, Etag: 8, Writers: 3, Frames: []FrameCount{{60_000, 90}, {59_940, 3}}})
	require.Equal(t, Merged{Applied: true}, m)
	v, _, _ = c.Look(x, at(minute))
	require.EqualValues(t, 93, v.Known)
	require.EqualValues(t, 2, v.Unflushed)
	require.EqualValues(t, 100-95, v.Headroom)
	require.Equal(t, NeedsSync, c.Release(x, at(minute)), "2 x 4 x 3 writers is more than 5")
}

// TestDueRule: lazy until what is unwritten could matter to the other writers.
func TestDueRule(t *testing.T) {
	c, k, eff, x := attached(t, NewLimit("per-minute", 100, time.Minute))
	c.SetInstances(4)
	_, _ = begin(c, x, at(minute), 1)
	c.Applied(x, at(minute), 1, 1)
	require.Equal(t, NeedsNothing, c.Release(x, at(minute)))
	<-c.Wake()

	for n := 1; n <= 8; n++ {
		c.Take(at(minute), k, eff, 1)
		due := c.Collect(nil)
		switch n {
		case 1:
			require.Equal(t, []*Counter{x}, due, "told once that there is something")
		case 6: // 4 x 4 x 6 is no longer less than the 93 that remain
			require.Equal(t, []*Counter{x}, due, "told once more that it is urgent")
			<-c.Wake()
		default:
			require.Empty(t, due)
		}
	}
	require.Equal(t, NeedsSync, c.Release(x, at(minute)))
}

// TestPendingWriteNeverChanges: the same sequence and delta until the outcome is known.
func TestPendingWriteNeverChanges(t *testing.T) {
	c, k, eff, x := attached(t, NewLimit("per-minute", 100, time.Minute))
	c.Merge(x, at(minute), Document{Version: 3, Etag: 4})
	first, ok := begin(c, x, at(minute), 10)
	require.True(t, ok)
	require.Empty(t, cmp.Diff(Write{
		ID: CounterID{"client", "user", ""}, Limit: eff.User.All()[0], Version: 3, Etag: 4, Seq: 10,
		Delta: []FrameCount{{60_000, 1}}, Expire: at(minute + 3*60_000), Age: first.Age,
	}, first))

	c.Take(at(minute), k, eff, 5)
	c.Release(x, at(minute)) // unknown outcome
	again, ok := begin(c, x, at(minute), 11)
	require.True(t, ok)
	require.Empty(t, cmp.Diff(first, again))

	m := c.Merge(x, at(minute), Document{Version: 9, Etag: 9, Mine: 9, Frames: []FrameCount{{60_000, 50}}})
	require.False(t, m.Applied)
	require.EqualValues(t, 56, c.Usage(at(minute), k)[0].Estimate, "50 known, 1 pending, 5 in flight")
	third, _ := begin(c, x, at(minute), 12)
	require.Equal(t, 1, third.Tries)
	require.Equal(t, first.Delta, third.Delta)
	require.EqualValues(t, 10, third.Seq)

	m = c.Merge(x, at(minute), Document{Version: 10, Etag: 10, Mine: 10, Frames: []FrameCount{{60_000, 51}}})
	require.True(t, m.Applied)
	require.EqualValues(t, 56, c.Usage(at(minute), k)[0].Estimate, "nothing counted twice")
	next, _ := begin(c, x, at(minute), 13)
	require.Equal(t, []FrameCount{{60_000, 5}}, next.Delta)
	require.EqualValues(t, 13, next.Seq)
}

// TestBlindWrite: applied to a document that was not known; counted, and to be read.
func TestBlindWrite(t *testing.T) {
	c, k, _, x := attached(t, NewLimit("per-minute", 100, time.Minute))
	_, _ = begin(c, x, at(minute), 1)
	c.AppliedBlind(x, at(minute), 9, false)
	require.Equal(t, NeedsSync, c.Release(x, at(minute)))
	u := c.Usage(at(minute), k)[0]
	require.EqualValues(t, 1, u.Known)
	require.Zero(t, u.Unflushed)
	v, _, _ := c.Look(x, at(minute))
	require.True(t, v.Stale)
}

// TestDeadFrames: what no longer matters is not written.
func TestDeadFrames(t *testing.T) {
	c, k, eff, x := attached(t, NewLimit("per-minute", 100, time.Minute))
	_, ok := begin(c, x, at(minute), 1)
	require.True(t, ok)
	later := at(minute + 120_000)
	_, ok = begin(c, x, later, 2)
	require.False(t, ok, "the pending write has died")
	c.Take(later, k, eff, 1)
	w, ok := begin(c, x, later, 3)
	require.True(t, ok)
	require.EqualValues(t, 3, w.Seq)
	require.Equal(t, []FrameCount{{60_120, 1}}, w.Delta)
}

// TestForeignDocuments: what nobody of us wrote frees nobody and harms nothing.
func TestForeignDocuments(t *testing.T) {
	for _, tc := range []struct {
		name    string
		frames  []FrameCount
		foreign int
		known   int64
	}{
		{"negative", []FrameCount{{60_000, -5}, {59_940, 10}}, 1, 10},
		{"far in the future", []FrameCount{{60_000, 10}, {70_000, 5}, {1 << 40, 5}}, 2, 10},
		{"a fast clock", []FrameCount{{60_000, 10}, {60_120, 5}}, 0, 15},
		{"the next frame already", []FrameCount{{60_000, 10}, {60_060, 5}}, 0, 15},
		{"too many", []FrameCount{{60_000, 1 << 62}, {59_940, 1 << 62}}, 0, 2 * MaxCount},
		{"not aligned", []FrameCount{{60_007, 4}, {60_000, 1}}, 0, 5},
		{"in milliseconds", []FrameCount{{-1, 4}, {60_000, 1}}, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, k, _, x := attached(t, NewLimit("per-minute", 100, time.Minute))
			m := c.Merge(x, at(minute), Document{Version: 1, Etag: 1, Frames: tc.frames})
			require.Equal(t, tc.foreign, m.Foreign)
			u := c.Usage(at(minute), k)[0]
			require.Equal(t, tc.known, u.Known)
			require.EqualValues(t, 1, u.Unflushed)
		})
	}
}

// TestChangeDuringSync: counts survive that a limit is changed, moved or removed
// while the syncer is at it.
func TestChangeDuringSync(t *testing.T) {
	perMinute, perSecond := NewLimit("per-minute", 100, time.Minute), NewLimit("per-second", 50, time.Second)
	shorter := perMinute
	shorter.Frames = 6
	for _, tc := range []struct {
		name   string
		limits []Limit
		held   bool // the syncer's handle stays good
	}{
		{"the same again", []Limit{perMinute, perSecond}, true},
		{"shorter frames", []Limit{shorter, perSecond}, true},
		{"another order", []Limit{perSecond, perMinute}, false},
		{"one removed", []Limit{perMinute}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, k, eff, x := attached(t, perMinute, perSecond)
			c.Merge(x, at(minute), Document{Version: 1, Etag: 1, Frames: []FrameCount{{60_000, 10}}})
			_, _ = begin(c, x, at(minute), 1)
			c.Take(at(minute), k, eff, 1)
			_, _, changed := single(tc.limits...)
			c.Take(at(minute), k, changed, 1)

			_, _, ok := c.Look(x, at(minute))
			require.Equal(t, tc.held, ok)
			c.Applied(x, at(minute), 2, 2)
			c.Release(x, at(minute))
			for _, u := range c.Usage(at(minute), k) {
				if u.Limit.Name == "per-minute" {
					require.InDelta(t, 13, u.Estimate, 0)
				}
			}
		})
	}
}

// TestMovedLimitIsNotFreed: a limit that moves to another document is not
// forgotten because that document does not exist yet.
func TestMovedLimitIsNotFreed(t *testing.T) {
	perMinute, perSecond := NewLimit("per-minute", 5, time.Minute), NewLimit("per-second", 50, time.Second)
	c, k, eff, _ := attached(t, perMinute)
	require.EqualValues(t, 4, admittedNow(c, at(minute), k, eff))
	settle(c, at(minute))
	_, _, changed := single(perSecond, perMinute)
	d := c.Take(at(minute), k, changed, 1)
	require.Equal(t, Denied, d.Outcome)
	for _, x := range c.Collect(nil) {
		c.Merge(x, at(minute), Document{})
	}
	d = c.Take(at(minute), k, changed, 1)
	require.Equal(t, Denied, d.Outcome)
}

// TestGoneCounter: whoever holds a counter that left memory is told so.
func TestGoneCounter(t *testing.T) {
	c, k, _, x := attached(t, NewLimit("per-minute", 5, time.Minute))
	require.True(t, c.Reset(k))
	_, _, ok := c.Look(x, at(minute))
	require.False(t, ok)
	_, ok = c.BeginRead(x, at(minute), 0)
	require.False(t, ok)
	_, ok = begin(c, x, at(minute), 1)
	require.False(t, ok)
	require.Zero(t, c.Merge(x, at(minute), Document{Version: 1}))
	require.Equal(t, NeedsNothing, c.Release(x, at(minute)))
}

// TestFrameNames: seconds, and milliseconds where frames are not whole seconds.
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
		name := r.frameName(r.align(epoch))
		require.Equal(t, tc.want, name)
		require.Equal(t, r.align(epoch), FrameStart(name))
	}
}

// TestTickets: a counter that is scheduled anew is begun once, and never while
// it is busy.
func TestTickets(t *testing.T) {
	c, _, _, x := attached(t, NewLimit("per-minute", 5, time.Minute))
	_, old, _ := c.Look(x, at(minute))
	_, good, _ := c.Look(x, at(minute))
	_, ok := c.BeginWrite(x, at(minute), old, 1)
	require.False(t, ok)
	_, ok = c.BeginRead(x, at(minute), good)
	require.True(t, ok)
	_, ok = c.BeginWrite(x, at(minute), good, 1)
	require.False(t, ok, "busy")
	c.Release(x, at(minute))
	_, ok = c.BeginWrite(x, at(minute), good, 1)
	require.True(t, ok)
}

// TestContended: after a conflict the next writes are not conditional, for a while.
func TestContended(t *testing.T) {
	c, k, eff, x := attached(t, NewLimit("per-minute", 100, time.Minute))
	w, _ := begin(c, x, at(minute), 1)
	require.False(t, w.Contended)
	c.Refused(x, at(minute), false)
	v, _, _ := c.Look(x, at(minute))
	require.True(t, v.Stale && v.Pending)
	c.Merge(x, at(minute), Document{Version: 5, Etag: 5})
	for i := range lostMore + 1 {
		w, _ = begin(c, x, at(minute), int64(i+2))
		require.Equal(t, i < lostMore, w.Contended)
		c.Applied(x, at(minute), 1, 1)
		c.Take(at(minute), k, eff, 1)
	}
}
