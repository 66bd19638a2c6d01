package counting

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// BenchmarkDecide measures one decision of each kind on keys in memory that share their counts.
func BenchmarkDecide(b *testing.B) {
	now := at(epoch + 30_000)
	big := func(name string, frames int) ratelimit.Limit {
		l := ratelimit.NewLimit(name, ratelimit.MaxRequests, time.Minute)
		l.Frames = frames
		return l
	}
	strict := ratelimit.NewLimit("strict", ratelimit.MaxRequests, time.Minute)
	strict.MakeStrict()
	full := ratelimit.NewLimit("full", 1, time.Minute)
	user := ratelimit.Key{ClientID: "client-711", Username: "user-4711"}
	for _, tc := range []struct {
		name   string
		policy ratelimit.Policy
		k      ratelimit.Key
		source string
	}{
		{"user", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}}, user, ""},
		{"client", ratelimit.Policy{Client: []ratelimit.Limit{big("client", 1)}}, ratelimit.Key{ClientID: "client-711"}, ""},
		{"sixty frames", ratelimit.Policy{User: []ratelimit.Limit{big("user", 60)}}, user, ""},
		{"three limits", ratelimit.Policy{User: []ratelimit.Limit{big("a", 1), big("b", 1), big("c", 1)}}, user, ""},
		{"total", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}, Total: []ratelimit.Limit{big("total", 1)}}, user, ""},
		{"total frames", ratelimit.Policy{User: []ratelimit.Limit{big("user", 10)}, Total: []ratelimit.Limit{big("total", 10)}}, user, ""},
		{"source and total", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}, Source: []ratelimit.Limit{big("source", 1)}, Total: []ratelimit.Limit{big("total", 1)}}, user, "10.0.0.1"},
		{"denied", ratelimit.Policy{User: []ratelimit.Limit{full}}, user, ""},
		{"denied total", ratelimit.Policy{User: []ratelimit.Limit{big("user", 1)}, Total: []ratelimit.Limit{ratelimit.NewLimit("full", 1, time.Second)}}, user, ""},
		{"strict", ratelimit.Policy{User: []ratelimit.Limit{strict}}, user, ""},
	} {
		p := tc.policy
		if p.User == nil {
			p.User = []ratelimit.Limit{big("user", 1)}
		}
		if p.Client == nil {
			p.Client = []ratelimit.Limit{big("client", 1)}
		}
		compiled, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: p})
		check.OK(b, err)
		e := compiled.For("client-711").ForRequest(0, tc.source)
		c := NewCounters(0)
		y := attach(c)
		y.SetUncertainty(now, time.Millisecond)
		c.Take(now, tc.k, e, 1)
		settle(c, now)
		if p.User[0].Strict {
			s, h := c.lookup(tc.k)
			s.leaseOf(s.Find(h)).held[1] = 1 << 29
		}
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Take(now, tc.k, e, 1)
			}
		})
		b.Run("denies/"+tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Denies(now, tc.k, e)
			}
		})
	}
}

// settledTotal returns counters that share their counts, a key that is in memory with its total,
// and its limits without and with the total.
func settledTotal(b *testing.B) (c *Counters, k ratelimit.Key, without, with *ratelimit.Effective) {
	b.Helper()
	user := ratelimit.NewLimit("per-minute", ratelimit.MaxRequests, time.Minute)
	c, k = NewCounters(0), ratelimit.Key{ClientID: "client-711", Username: "user-4711"}
	without, with = withTotal(b, user), withTotal(b, user, ratelimit.NewLimit("total", ratelimit.MaxRequests, time.Minute))
	attach(c)
	c.Take(at(epoch+30_000), k, with, 1)
	settle(c, at(epoch+30_000))
	return c, k, without, with
}

// BenchmarkTakeCores measures the throughput of one core and of two: for users of one client,
// with and without a total, and for one hot key.
func BenchmarkTakeCores(b *testing.B) {
	c, _, without, with := settledTotal(b)
	now := at(epoch + 30_000)
	var keys [2][100]ratelimit.Key
	for i := range keys {
		for j := range keys[i] {
			keys[i][j] = ratelimit.Key{ClientID: "client-0", Username: "user-of-" + strconv.Itoa(i) + "-" + strconv.Itoa(j)}
		}
	}
	for _, cores := range []int{1, 2} {
		for _, kind := range []struct {
			name string
			*ratelimit.Effective
			users int
		}{{"hot key", without, 1}, {"users", without, 100}, {"users with total", with, 100}} {
			b.Run(fmt.Sprintf("cores=%d/%s", cores, kind.name), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				var worker atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					mine, i := &keys[0], 0
					if w := worker.Add(1); kind.users > 1 {
						mine = &keys[w%2]
					}
					for pb.Next() {
						c.Take(now, mine[i], kind.Effective, 1)
						if i++; i == kind.users {
							i = 0
						}
					}
				})
			})
		}
	}
}

// BenchmarkSweep drops a million idle keys. It measures the delay of concurrent decisions: the
// longest time that a shard is locked, and the longest pause of a garbage collection.
func BenchmarkSweep(b *testing.B) {
	const million = 1_000_000
	_, _, eff := single(ratelimit.NewLimit("per-minute", ratelimit.MaxRequests, time.Minute))
	keys := make([]ratelimit.Key, million)
	for i := range keys {
		keys[i] = ratelimit.Key{ClientID: "client-" + strconv.Itoa(i%1000), Username: "user-" + strconv.Itoa(i)}
	}
	for b.Loop() {
		c := NewCounters(2 * million)
		for _, k := range keys {
			c.Take(at(epoch), k, eff, 1)
		}
		begin := time.Now()
		if n := c.Sweep(at(epoch + 10_000)); n != 0 {
			b.Fatalf("%d dropped", n)
		}
		kept := time.Since(begin)
		var before, after debug.GCStats
		runtime.GC()
		debug.ReadGCStats(&before)
		runtime.GC()
		debug.ReadGCStats(&after)
		longest := slices.Max(after.Pause[:after.NumGC-before.NumGC])
		begin = time.Now()
		if n := c.Sweep(at(epoch + 300_000)); n != million {
			b.Fatalf("%d dropped", n)
		}
		dropped := time.Since(begin)
		shards := float64(len(c.shards))
		b.ReportMetric(float64(longest.Microseconds()), "gc-pause-µs")
		b.ReportMetric(float64(kept.Microseconds())/shards, "kept-µs/shard")
		b.ReportMetric(float64(dropped.Microseconds())/shards, "dropped-µs/shard")
	}
}
