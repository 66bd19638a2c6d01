package counting

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// TestExactUnderConcurrency: with a limit of L, any number of goroutines get exactly L, with one
// limit and with several, while the operations of the syncer run.
func TestExactUnderConcurrency(t *testing.T) {
	for _, limits := range [][]ratelimit.Limit{
		{ratelimit.NewLimit("one", 1000, time.Minute)},
		{ratelimit.NewLimit("wide", 5000, time.Hour), ratelimit.NewLimit("narrow", 777, time.Minute)},
	} {
		c, k, eff := single(limits...)
		attach(c)
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
				default:
				}
			}
		})
		for range 8 {
			takers.Go(func() {
				for range 300 {
					if d := c.Take(at(epoch), k, eff, 1); d.Outcome == ratelimit.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		takers.Wait()
		close(stop)
		syncer.Wait()
		mustEqual(t, "admitted", want, admitted.Load())
		settle(c, at(epoch))
		for _, u := range c.Usage(at(epoch), k) {
			mustEqual(t, "counted by "+u.Limit.Name, want, u.Known+u.Unflushed)
		}
	}
}

// TestFloodStaysBounded: an endless stream of names neither exceeds the memory bound nor frees a
// limited key, with or without a syncer that writes them.
func TestFloodStaysBounded(t *testing.T) {
	const flood = 20_000
	for _, flushed := range []bool{false, true} {
		t.Run("flushed="+strconv.FormatBool(flushed), func(t *testing.T) {
			_, limited, eff := single(ratelimit.NewLimit("per-minute", 2, time.Minute))
			c := NewCounters(1000)
			attach(c)
			now := at(epoch)
			mustAdmit(t, 2, c, now, limited, eff)
			for i := range flood {
				c.Take(now, ratelimit.Key{ClientID: "client", Username: "u" + strconv.Itoa(i)}, eff, 1)
				if flushed && i%50 == 0 {
					settle(c, now)
				}
				if i%1000 == 0 {
					if n := c.Len(); n > 1000 {
						t.Fatalf("%d keys in memory, want 1000 at most", n)
					}
					d := c.Take(now, limited, eff, 1)
					mustEqual(t, "Outcome of the limited key", ratelimit.Denied, d.Outcome)
				}
			}
			st := c.Stats()
			mustEqual(t, "keys made room", flushed, st.Evicted > 0)
			mustEqual(t, "most keys overflowed", !flushed, st.Overflowed > flood/2)
		})
	}
}

// TestOverflowKeepsTheLimit: without room, new keys share counters. Each key gets at most its
// limit, and its use there still counts when there is room again.
func TestOverflowKeepsTheLimit(t *testing.T) {
	_, _, eff := single(ratelimit.NewLimit("per-minute", 5, time.Minute))
	c := NewCounters(10)
	now := at(epoch)
	for i := range 10 {
		c.Take(now, ratelimit.Key{ClientID: "client", Username: strconv.Itoa(i)}, eff, 1)
	}
	late := ratelimit.Key{ClientID: "client", Username: "late"}
	if n := admittedNow(c, now, late, eff); n > 5 {
		t.Fatalf("%d admitted by an overflow counter, want 5 at most", n)
	}
	if c.Stats().Overflowed == 0 {
		t.Fatal("no decision was made on an overflow counter")
	}
	mustEqual(t, "Len", 10, c.Len())

	mustEqual(t, "Reset", true, c.Reset(ratelimit.Key{ClientID: "client", Username: "3"}))
	d := c.Take(now, late, eff, 1)
	mustEqual(t, "Outcome when there is room", ratelimit.Denied, d.Outcome)
	mustEqual(t, "Len when it has counters of its own", 10, c.Len())

	now = now.Add(2*time.Minute + time.Second)
	mustEqual(t, "Sweep", 10, c.Sweep(now))
	mustAdmit(t, 5, c, now, late, eff)
	mustEqual(t, "Len", 1, c.Len())
}

// TestOverflowIsInherited: a key that used a part of its limit in an overflow counter has the rest
// when there is room. It has all of the limit if that use was long ago.
func TestOverflowIsInherited(t *testing.T) {
	_, _, eff := single(ratelimit.NewLimit("per-minute", 5, time.Minute))
	c := NewCounters(1)
	attach(c)
	now, first, late := at(epoch), ratelimit.Key{ClientID: "client", Username: "first"}, ratelimit.Key{ClientID: "client", Username: "late"}
	c.Take(now, first, eff, 1)
	c.Take(now, late, eff, 4)
	mustEqual(t, "Reset", true, c.Reset(first))
	mustAdmit(t, 1, c, now, late, eff)
	mustEqual(t, "writes, of what was admitted since,", 1, settle(c, now))
	mustAdmit(t, 0, c, now, late, eff) // the document does not have those counts, and frees none
	now = now.Add(2 * time.Minute)
	mustAdmit(t, 5, c, now, late, eff)
}

// TestOverflowPlaces: keys without room share eight counters of a shard, not one. Keys at other
// places are not denied when one counter is used up.
func TestOverflowPlaces(t *testing.T) {
	_, _, eff := single(ratelimit.NewLimit("per-minute", 5, time.Minute))
	c := NewCounters(1)
	c.Take(at(epoch), ratelimit.Key{ClientID: "client", Username: "the only one with room"}, eff, 1)
	admitted := map[uint64]int{}
	for i := range 1000 {
		k := ratelimit.Key{ClientID: "client", Username: "late-" + strconv.Itoa(i)}
		_, h := c.lookup(k)
		if d := c.Take(at(epoch), k, eff, 1); d.Outcome == ratelimit.Allowed {
			admitted[h.Lo%overflowPlaces]++
		}
	}
	for place := range uint64(overflowPlaces) {
		check.Equal(t, fmt.Sprint("admitted at place ", place), admitted[place], 5)
	}
}

// TestOverfull: more policies at once than a shard has overflow counters.
func TestOverfull(t *testing.T) {
	c := NewCounters(1)
	now := at(epoch)
	last := ratelimit.Decision{}
	for i := range maxOverflow + 2 {
		_, k, eff := single(ratelimit.NewLimit("l"+strconv.Itoa(i), 5, time.Minute))
		k.Username = strconv.Itoa(i)
		last = c.Take(now, k, eff, 1)
		mustEqual(t, "denied policy "+strconv.Itoa(i), i > maxOverflow, last.Outcome == ratelimit.Denied)
	}
	mustEqual(t, "RetryAfter", time.Minute, last.RetryAfter)
	_, limit := last.Headers()
	mustEqual(t, "RateLimit", `"l33";r=0;t=60`, limit)
	mustEqual(t, "Overflowed", maxOverflow+1, c.Stats().Overflowed)
	mustEqual(t, "Sweep", 1, c.Sweep(now.Add(3*time.Minute)))
	_, k, eff := single(ratelimit.NewLimit("another", 5, time.Minute))
	mustAdmit(t, 5, c, now.Add(3*time.Minute), k, eff) // idle overflow counters are reused
}

// TestSweep drops only keys that were idle for two windows.
func TestSweep(t *testing.T) {
	c, k, eff := single(ratelimit.NewLimit("per-minute", 5, time.Minute))
	c.Take(at(epoch), k, eff, 1)
	mustEqual(t, "Sweep", 0, c.Sweep(at(epoch+119_999)))
	mustEqual(t, "Sweep", 1, c.Sweep(at(epoch+121_000))) // the time of the last request is kept in seconds
	mustEqual(t, "Len", 0, c.Len())
	mustEqual(t, "Expired", 1, c.Stats().Expired)
}

// TestLongNames: names of any length are counted separately, in bounded memory.
func TestLongNames(t *testing.T) {
	c, _, eff := single(ratelimit.NewLimit("per-minute", 1, time.Minute))
	long := strings.Repeat("x", 100_000)
	for _, k := range []ratelimit.Key{{ClientID: "client", Username: long}, {ClientID: "client", Username: long + "y"}, {ClientID: long, Username: ""}, {ClientID: long, Username: long}} {
		mustAdmit(t, 1, c, at(epoch), k, eff)
	}
	for _, u := range c.Top(at(epoch), 10) {
		if n := len(u.Key.ClientID) + len(u.Key.Username); n > ratelimit.MaxKeySize {
			t.Errorf("a key of %d bytes is kept, want %d at most", n, ratelimit.MaxKeySize)
		}
	}
}

// TestKeysDoNotRunIntoEachOther: the boundary between the two names matters.
func TestKeysDoNotRunIntoEachOther(t *testing.T) {
	c, _, eff := single(ratelimit.NewLimit("per-minute", 1, time.Minute))
	for _, k := range []ratelimit.Key{{ClientID: "ab", Username: "c"}, {ClientID: "a", Username: "bc"}, {ClientID: "abc", Username: ""}, {ClientID: "", Username: "abc"}} {
		mustAdmit(t, 1, c, at(epoch), k, eff)
	}
	mustEqual(t, "Len", 4, c.Len())
}

// TestIndex: exactly the keys in memory are found, through any sequence of insertions and removals.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _, eff := single(ratelimit.NewLimit("a", 5, time.Minute), ratelimit.NewLimit("b", 5, time.Hour))
		s := &c.shards[0]
		there := map[ratelimit.Key]bool{}
		names := rapid.SliceOfNDistinct(rapid.StringN(0, 20, 60), 1, 200, rapid.ID[string]).Draw(t, "names")
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			k := ratelimit.Key{ClientID: "client", Username: rapid.SampledFrom(names).Draw(t, "name")}
			h := c.all.hashKey.Hash(k)
			num := s.Find(h)
			if there[k] != (num != 0) {
				t.Fatalf("%q is there: %t, found as %d", k, there[k], num)
			}
			if num == 0 {
				s.Insert(k, h, eff.User, epoch)
			} else {
				if s.Key(num) != k {
					t.Fatalf("found %q, want %q", s.Key(num), k)
				}
				s.remove(num)
			}
			there[k] = !there[k]
		}
		for k, is := range there {
			h := c.all.hashKey.Hash(k)
			if num := s.Find(h); is != (num != 0) {
				t.Fatalf("%q is there: %t, found as %d", k, is, num)
			}
		}
	})
}

func TestUsageAndTop(t *testing.T) {
	c, _, eff := single(ratelimit.NewLimit("per-minute", 10, time.Minute))
	now := at(60_000_000)
	for user, n := range map[string]int64{"low": 1, "full": 10, "half": 5} {
		c.Take(now, ratelimit.Key{ClientID: "shop", Username: user}, eff, n)
	}
	c.Take(now, ratelimit.Key{ClientID: "other", Username: "x"}, eff, 7)
	c.Take(now, ratelimit.Key{ClientID: ratelimit.Internal + "attempts", Username: "x"}, eff, 10) // belongs to no client

	top := c.Top(now, 2)
	mustEqual(t, "Top", [2]string{"full", "x"}, [2]string{top[0].Key.Username, top[1].Key.Username})
	mustEqual(t, "FreeIn of the full one", 60*time.Second+time.Millisecond, top[0].FreeIn)
	mustEqual(t, "FreeIn of the other", 0, top[1].FreeIn)
	mustEqual(t, "ClientUsage of three", 3, len(c.ClientUsage(now, "shop", 10)))
	mustEqual(t, "ClientUsage of one at most", 1, len(c.ClientUsage(now, "shop", 1)))
	mustEqual(t, "ClientUsage of another client", 0, len(c.ClientUsage(now, "unknown", 10)))
	mustEqual(t, "Top of -1", 0, len(c.Top(now, -1)))

	mustEqual(t, "ResetClient", 3, c.ResetClient("shop"))
	mustEqual(t, "Reset", false, c.Reset(ratelimit.Key{ClientID: "shop", Username: "low"}))
	mustEqual(t, "Usage after the reset", 0, len(c.Usage(now, ratelimit.Key{ClientID: "shop", Username: "full"})))
	mustAdmit(t, 10, c, now, ratelimit.Key{ClientID: "shop", Username: "full"}, eff)
}

// TestNumbersRunOut: when a shard has no numbers left it shares overflow counters. It accepts keys
// again when there is room.
func TestNumbersRunOut(t *testing.T) {
	c := NewCounters(100_000)
	limits := make([]ratelimit.Limit, ratelimit.MaxLimits)
	for i := range limits {
		limits[i] = ratelimit.NewLimit("l"+strconv.Itoa(i), 5, time.Minute)
	}
	_, _, eff := single(limits...)
	c.shards = c.shards[:1]
	c.shift = 64 // every key goes to this shard
	n := slab.MaxNumber/ratelimit.MaxLimits - maxOverflow
	for i := range n + 1000 {
		c.Take(at(epoch), ratelimit.Key{ClientID: "client", Username: strconv.Itoa(i)}, eff, 1)
	}
	if used := c.shards[0].Numbers; used > slab.MaxNumber+1 || c.Stats().Overflowed < 900 {
		t.Errorf("%d numbers, %+v", used, c.Stats())
	}
	for i := range n - 100 {
		k := ratelimit.Key{ClientID: "client", Username: strconv.Itoa(i)}
		if us := c.Usage(at(epoch), k); len(us) != ratelimit.MaxLimits || us[0].Unflushed != 1 {
			t.Fatalf("key %d: %+v", i, us)
		}
	}
	c.Sweep(at(epoch).Add(3 * time.Minute))
	if d := c.Take(at(epoch).Add(3*time.Minute), ratelimit.Key{ClientID: "client", Username: "new"}, eff, 1); d.Outcome != ratelimit.Allowed || c.Len() != 1 {
		t.Errorf("after a sweep: %v, %d keys", d.Outcome, c.Len())
	}
}
