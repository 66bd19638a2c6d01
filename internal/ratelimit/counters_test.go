package ratelimit

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExactUnderConcurrency: with a limit of L, any number of goroutines get
// exactly L, with one limit and with several, while the syncer's operations run.
func TestExactUnderConcurrency(t *testing.T) {
	for _, limits := range [][]Limit{
		{NewLimit("one", 1000, time.Minute)},
		{NewLimit("wide", 5000, time.Hour), NewLimit("narrow", 777, time.Minute)},
	} {
		c, k, eff := single(limits...)
		c.Attach()
		want := limits[len(limits)-1].Requests
		var admitted atomic.Int64
		var takers, syncer sync.WaitGroup
		stop := make(chan struct{})
		syncer.Go(func() {
			for {
				settle(c, at(epoch))
				c.Sweep(at(epoch))
				c.Top(at(epoch), 3)
				select {
				case <-stop:
					return
				case <-c.Wake():
				default:
				}
			}
		})
		for range 8 {
			takers.Go(func() {
				for range 300 {
					if d := c.Take(at(epoch), k, eff, 1); d.Outcome == Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		takers.Wait()
		close(stop)
		syncer.Wait()
		require.Equal(t, want, admitted.Load())
		settle(c, at(epoch))
		for _, u := range c.Usage(at(epoch), k) {
			require.Equal(t, want, u.Known+u.Unflushed, "%s", u.Limit.Name)
		}
	}
}

// TestSeveralLimits: all must pass, then all count; a denied one costs nothing anywhere.
func TestSeveralLimits(t *testing.T) {
	c, k, eff := single(NewLimit("per-minute", 3, time.Minute), NewLimit("per-second", 2, time.Second))
	now := at(60_000_000) // the start of a minute
	require.EqualValues(t, 2, admittedNow(c, now, k, eff))
	d := c.Take(now, k, eff, 1)
	require.Equal(t, Denied, d.Outcome)
	b, _ := d.BindingLimit()
	require.Equal(t, "per-second", b.Limit.Name)
	require.Equal(t, 1001*time.Millisecond, d.RetryAfter, "the two leave the window from the next second on")
	require.EqualValues(t, 2, d.RetryAfterSeconds())

	now = now.Add(2 * time.Second)
	require.EqualValues(t, 1, admittedNow(c, now, k, eff))
	d = c.Take(now, k, eff, 1)
	b, _ = d.BindingLimit()
	require.Equal(t, "per-minute", b.Limit.Name)
	require.Equal(t, 58*time.Second+time.Millisecond, d.RetryAfter)
}

// TestFloodStaysBounded: names without end neither exceed the memory nor free
// who is limited, whether or not a syncer writes them.
func TestFloodStaysBounded(t *testing.T) {
	const flood = 200_000
	for _, flushed := range []bool{false, true} {
		t.Run("flushed="+strconv.FormatBool(flushed), func(t *testing.T) {
			_, limited, eff := single(NewLimit("per-minute", 2, time.Minute))
			c := NewCounters(1000)
			c.Attach()
			now := at(epoch)
			require.EqualValues(t, 2, admittedNow(c, now, limited, eff))
			for i := range flood {
				c.Take(now, Key{"client", "u" + strconv.Itoa(i)}, eff, 1)
				if flushed && i%50 == 0 {
					settle(c, now)
				}
				if i%1000 == 0 {
					require.LessOrEqual(t, c.Len(), 1000)
					d := c.Take(now, limited, eff, 1)
					require.Equal(t, Denied, d.Outcome)
				}
			}
			st := c.Stats()
			require.Equal(t, flushed, st.Evicted > 0)
			require.Equal(t, !flushed, st.Overflowed > flood/2)
		})
	}
}

// TestOverflowKeepsTheLimit: where there is no room, new keys share counters:
// each gets at most its limit, and what it used up there is not forgotten when
// there is room again.
func TestOverflowKeepsTheLimit(t *testing.T) {
	_, _, eff := single(NewLimit("per-minute", 5, time.Minute))
	c := NewCounters(10)
	now := at(epoch)
	for i := range 10 {
		c.Take(now, Key{"client", strconv.Itoa(i)}, eff, 1)
	}
	late := Key{"client", "late"}
	require.LessOrEqual(t, admittedNow(c, now, late, eff), int64(5))
	require.Positive(t, c.Stats().Overflowed)
	require.Equal(t, 10, c.Len())

	require.True(t, c.Reset(Key{"client", "3"}))
	d := c.Take(now, late, eff, 1)
	require.Equal(t, Denied, d.Outcome, "room does not free it")

	now = now.Add(2 * time.Minute)
	require.Equal(t, 9, c.Sweep(now))
	require.EqualValues(t, 5, admittedNow(c, now, late, eff))
	require.Equal(t, 1, c.Len())
}

// TestOverfull: more policies at once than a shard has shared counters.
func TestOverfull(t *testing.T) {
	c := NewCounters(1)
	now := at(epoch)
	last := Decision{}
	for i := range sharedPerShard + 2 {
		_, k, eff := single(NewLimit("l"+strconv.Itoa(i), 5, time.Minute))
		k.Username = strconv.Itoa(i)
		last = c.Take(now, k, eff, 1)
		require.Equal(t, i > sharedPerShard, last.Outcome == Denied)
	}
	require.Equal(t, time.Minute, last.RetryAfter)
	_, limit := last.Headers()
	require.Equal(t, `"l9";r=0;t=60`, limit)
}

// TestSweep drops what was idle for two windows, and nothing else.
func TestSweep(t *testing.T) {
	c, k, eff := single(NewLimit("per-minute", 5, time.Minute))
	c.Take(at(epoch), k, eff, 1)
	require.Zero(t, c.Sweep(at(epoch+119_999)))
	require.Equal(t, 1, c.Sweep(at(epoch+120_000)))
	require.Zero(t, c.Len())
	require.EqualValues(t, 1, c.Stats().Expired)
}

// TestLongNames: a name of any length is counted, in bounded memory, apart from others.
func TestLongNames(t *testing.T) {
	c, _, eff := single(NewLimit("per-minute", 1, time.Minute))
	long := strings.Repeat("x", 100_000)
	for _, k := range []Key{{"client", long}, {"client", long + "y"}, {long, ""}, {long, long}} {
		require.EqualValues(t, 1, admittedNow(c, at(epoch), k, eff))
	}
	for _, u := range c.Top(at(epoch), 10) {
		require.LessOrEqual(t, len(u.Key.ClientID)+len(u.Key.Username), maxKeySize)
	}
}

// TestKeysDoNotRunIntoEachOther: the border between both names counts.
func TestKeysDoNotRunIntoEachOther(t *testing.T) {
	c, _, eff := single(NewLimit("per-minute", 1, time.Minute))
	for _, k := range []Key{{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}} {
		require.EqualValues(t, 1, admittedNow(c, at(epoch), k, eff), "%v", k)
	}
	require.Equal(t, 4, c.Len())
}

// TestEqualHashes: keys that collide are still different keys.
func TestEqualHashes(t *testing.T) {
	c, _, eff := single(NewLimit("per-minute", 1, time.Minute))
	s := &c.shards[0]
	var all []*entry
	for i := range 3 {
		e := newEntry(s, Key{"client", strconv.Itoa(i)}, eff.User, epoch)
		s.insert(42, e)
		all = append(all, e)
	}
	for _, i := range []int{1, 2, 0} { // the middle, the head, the last
		require.Same(t, all[i], s.find(42, all[i].name()))
		s.remove(42, all[i])
		require.Nil(t, s.find(42, all[i].name()))
	}
	require.Empty(t, s.entries)
}

func TestUsageAndTop(t *testing.T) {
	c, _, eff := single(NewLimit("per-minute", 10, time.Minute))
	now := at(60_000_000)
	for user, n := range map[string]int64{"low": 1, "full": 10, "half": 5} {
		c.Take(now, Key{"shop", user}, eff, n)
	}
	c.Take(now, Key{"other", "x"}, eff, 7)

	top := c.Top(now, 2)
	require.Equal(t, []string{"full", "x"}, []string{top[0].Key.Username, top[1].Key.Username})
	require.Equal(t, 60*time.Second+time.Millisecond, top[0].FreeIn)
	require.Zero(t, top[1].FreeIn)
	require.Len(t, c.ClientUsage(now, "shop", 10), 3)
	require.Len(t, c.ClientUsage(now, "shop", 1), 1)
	require.Empty(t, c.ClientUsage(now, "nobody", 10))
	require.Empty(t, c.Top(now, -1))

	require.Equal(t, 3, c.ResetClient("shop"))
	require.False(t, c.Reset(Key{"shop", "low"}))
	require.Empty(t, c.Usage(now, Key{"shop", "full"}))
	require.EqualValues(t, 10, admittedNow(c, now, Key{"shop", "full"}, eff))
}

func TestOffset(t *testing.T) {
	c, k, eff := single(Limit{"minute", 1, time.Minute, 1, Fixed, 1})
	now := at(59_999_000) // a second before the next minute
	require.EqualValues(t, 1, admittedNow(c, now, k, eff))
	d := c.Take(now, k, eff, 1)
	require.Equal(t, time.Second, d.RetryAfter)
	c.SetOffset(2 * time.Second) // the database is there already
	require.EqualValues(t, 1, admittedNow(c, now, k, eff))
	d = c.Take(now, k, eff, 1)
	require.Equal(t, 59*time.Second, d.RetryAfter)
}
