package counting

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

// million is how many keys the benchmarks hold in memory.
const million = 1_000_000

var (
	crowdOnce sync.Once
	crowdKeys []ratelimit.Key
	crowd     *Counters
	crowdFor  *ratelimit.Effective
)

// crowded returns counters with a million keys of 1,000 clients in memory.
func crowded(tb testing.TB) (*Counters, []ratelimit.Key, *ratelimit.Effective) {
	tb.Helper()
	crowdOnce.Do(func() {
		_, _, crowdFor = single(ratelimit.NewLimit("per-minute", ratelimit.MaxRequests, time.Minute))
		crowdKeys = make([]ratelimit.Key, million)
		for i := range crowdKeys {
			crowdKeys[i] = ratelimit.Key{ClientID: "client-" + strconv.Itoa(i%1000), Username: "user-" + strconv.Itoa(i)}
		}
		crowd = NewCounters(2 * million)
		attach(crowd)
		for _, k := range crowdKeys {
			crowd.Take(at(epoch), k, crowdFor, 1)
		}
		settle(crowd, at(epoch))
	})
	return crowd, crowdKeys, crowdFor
}

// syncs maps counters to their Sync, for tests that act as a syncer.
var syncs sync.Map

// attach gives counters a syncer that is idle until a test calls it.
func attach(c *Counters) *Sync {
	y := c.Sync(SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second})
	syncs.Store(c, y)
	return y
}

// settle acts as a syncer with writes that are applied at once, and returns how many writes it
// made. The first exchange of a counter may only read; settle then makes another one.
func settle(c *Counters, now time.Time) (n int) {
	v, _ := syncs.Load(c)
	y, _ := v.(*Sync)
	for i, p := range y.Due(now, nil) {
		for round := range 2 {
			task, ok := y.Begin(now, p.Ticket, int64(2*i+round+1))
			if !ok {
				break
			}
			done := y.Finish(now, &task, Result{Read: task.Read, Status: Applied, NewEtag: 1})
			if task.Seq != 0 {
				n++
			}
			if task.Seq != 0 || !done.Planned {
				break
			}
			p = done.Next
		}
	}
	return n
}

// BenchmarkTake measures one decision with a million keys in memory.
func BenchmarkTake(b *testing.B) {
	c, keys, eff := crowded(b)
	now := at(epoch + 30_000)
	b.Run("warm key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Take(now, keys[4711], eff, 1)
		}
	})
	b.Run("any of a thousand keys", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			c.Take(now, keys[i*997%million], eff, 1)
			if i++; i == 1000 {
				i = 0
			}
		}
	})
	b.Run("any of all keys", func(b *testing.B) {
		b.ReportAllocs()
		r := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			c.Take(now, keys[r.IntN(million)], eff, 1)
		}
	})
	b.Run("denied", func(b *testing.B) {
		d, k, eff := single(ratelimit.NewLimit("per-minute", 1, time.Minute))
		d.Take(now, k, eff, 1)
		b.ReportAllocs()
		for b.Loop() {
			d.Take(now, k, eff, 1)
		}
	})
	b.Run("three limits", func(b *testing.B) {
		d, k, eff := single(
			ratelimit.NewLimit("per-second", ratelimit.MaxRequests, time.Second),
			ratelimit.NewLimit("per-minute", ratelimit.MaxRequests, time.Minute),
			ratelimit.NewLimit("per-hour", ratelimit.MaxRequests, time.Hour))
		b.ReportAllocs()
		for b.Loop() {
			d.Take(now, k, eff, 1)
		}
	})
}

// BenchmarkTakeCores measures the throughput of one core and of two, on different keys and on the
// same key. ns/op is the time between two decisions of all cores together.
func BenchmarkTakeCores(b *testing.B) {
	c, keys, eff := crowded(b)
	now := at(epoch + 30_000)
	for _, cores := range []int{1, 2} {
		for _, same := range []bool{false, true} {
			b.Run(fmt.Sprintf("cores=%d/same=%t", cores, same), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				var worker atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					first := int(worker.Add(1)) * 1000
					i := 0
					for pb.Next() {
						k := keys[0]
						if !same {
							k = keys[first+i]
							if i++; i == 100 {
								i = 0
							}
						}
						c.Take(now, k, eff, 1)
					}
				})
			})
		}
	}
}

// BenchmarkMemory measures the memory of a counter, including its key.
func BenchmarkMemory(b *testing.B) {
	keys := make([]string, million)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%011d", i)
	}
	clients := make([]string, 1000)
	for i := range clients {
		clients[i] = fmt.Sprintf("client-%09d", i)
	}
	_, _, eff := single(ratelimit.NewLimit("per-minute", 100, time.Minute))
	for b.Loop() {
		before := heap()
		c := NewCounters(million)
		attach(c)
		for i, user := range keys {
			c.Take(at(epoch), ratelimit.Key{ClientID: clients[i%1000], Username: user}, eff, 1)
		}
		settle(c, at(epoch))
		b.ReportMetric(float64(heap()-before)/float64(c.Len()), "B/counter")
		runtime.KeepAlive(c)
	}
	runtime.KeepAlive(keys)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkDrain measures decisions while 100,000 dirty keys are drained, and without other load.
func BenchmarkDrain(b *testing.B) {
	c, keys, eff := crowded(b)
	now := at(epoch + 30_000)
	for b.Loop() {
		for _, k := range keys[:100_000] {
			c.Take(now, k, eff, 1)
		}
		quiet := percentile99(c, keys, eff, now, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			settle(c, now)
		}()
		loaded := percentile99(c, keys, eff, now, done)
		<-done
		b.ReportMetric(float64(quiet), "quiet-p99-ns")
		b.ReportMetric(float64(loaded), "draining-p99-ns")
		b.ReportMetric(float64(loaded)/float64(max(quiet, 1)), "ratio")
	}
}

// percentile99 times single decisions until done, or 200,000 of them.
func percentile99(c *Counters, keys []ratelimit.Key, eff *ratelimit.Effective, now time.Time, done <-chan struct{}) time.Duration {
	took := make([]time.Duration, 0, 200_000)
	for len(took) < cap(took) {
		select {
		case <-done:
			if len(took) > 1000 {
				slices.Sort(took)
				return took[len(took)*99/100]
			}
		default:
		}
		k := keys[500_000+len(took)%1000]
		begin := time.Now()
		c.Take(now, k, eff, 1)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// BenchmarkFlood sends a new name with every request, under a client that is already limited. For
// ten million: -bench Flood -benchtime 10000000x
func BenchmarkFlood(b *testing.B) {
	const bound = 100_000
	_, limited, eff := single(ratelimit.NewLimit("per-minute", 10, time.Minute))
	c := NewCounters(bound)
	attach(c)
	now := at(epoch)
	c.Take(now, limited, eff, 10)
	before := heap()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Take(now, ratelimit.Key{ClientID: "client", Username: "flood-" + strconv.Itoa(i)}, eff, 1)
		if i%bound == 0 {
			settle(c, now) // the syncer roughly keeps up
		}
	}
	if d := c.Take(now, limited, eff, 1); !d.Rejected() || c.Len() > bound {
		b.Fatalf("limited client: %v; %d keys in memory", d.Outcome, c.Len())
	}
	b.ReportMetric(float64(c.Len()), "keys")
	b.ReportMetric((float64(heap())-float64(before))/1e6, "MB")
	runtime.KeepAlive(c)
}

// BenchmarkInsert measures the first decision on a key while the counters fill up to a million. It
// includes the growth of memory.
func BenchmarkInsert(b *testing.B) {
	_, keys, eff := crowded(b)
	now := at(epoch)
	var c *Counters
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%million == 0 {
			b.StopTimer()
			c = NewCounters(2 * million)
			attach(c)
			runtime.GC()
			b.StartTimer()
		}
		c.Take(now, keys[i%million], eff, 1)
	}
	runtime.KeepAlive(c)
}

// BenchmarkSweep drops a million idle keys. It measures the delay of concurrent decisions: the
// longest time that a shard is locked, and the longest pause of a garbage collection.
func BenchmarkSweep(b *testing.B) {
	_, keys, eff := crowded(b)
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
