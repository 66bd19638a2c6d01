package decision

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ample is a limit that is not reached: every request is admitted, which costs more than to deny it.
var ample = quota{Requests: 1_000_000_000, Window: time.Hour}

// How keys are chosen.
const (
	oneKey    = "one"    // the same one, by all
	warmKeys  = "warm"   // a thousand in turn, which stay in the cache
	randomKey = "random" // any of all
)

// BenchmarkDecision is one decision. With -cpu 1,2, ns/op is the time between two decisions of all processors.
func BenchmarkDecision(b *testing.B) {
	for _, m := range inMemory() {
		for _, all := range []struct {
			keys    int
			choices []string
		}{{100_000, []string{oneKey}}, {1_000_000, []string{warmKeys, randomKey}}} {
			b.Run(fmt.Sprintf("limiter=%s/keys=%d", m.Name, all.keys), func(b *testing.B) {
				l := filled(b, m, all.keys, 1)
				for _, choice := range all.choices {
					b.Run("choice="+choice, func(b *testing.B) { decide(b, l, all.keys, choice) })
				}
			})
		}
	}
}

// BenchmarkDecisionInRedis is a decision by asking Redis, over loopback. The callers wait for each answer; Redis may
// use the processor that they do not.
func BenchmarkDecisionInRedis(b *testing.B) {
	const keys = 100_000
	address := startRedis(b)
	m := inRedis(address)
	b.Run(fmt.Sprintf("limiter=%s/keys=%d", m.Name, keys), func(b *testing.B) {
		l := filled(b, m, keys, 64)
		b.Run("choice="+oneKey, func(b *testing.B) { decide(b, l, keys, oneKey) })
	})
}

// filled returns a limiter that knows all keys.
func filled(b *testing.B, m maker, keys, callers int) limiter {
	b.Helper()
	l, err := m.New(ample, keys)
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, l)
	fill(b, l, keys, callers)
	return l
}

// fill sends the first request of each key.
func fill(b *testing.B, l limiter, keys, callers int) {
	b.Helper()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for n := caller; n < keys; n += callers {
				if !l.Allow(keyOf(n)) {
					b.Errorf("the first request of key %d is denied", n)
				}
			}
		})
	}
	wg.Wait()
	if l.Settle != nil {
		l.Settle()
	}
}

func decide(b *testing.B, l limiter, keys int, choice string) {
	b.Helper()
	const warm = 1000
	var callers, denied atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		k, caller := newKey(), callers.Add(1)
		random := rand.New(rand.NewPCG(uint64(caller), 1))
		first, next := int(caller)*warm, 0
		for pb.Next() {
			n := 0
			switch choice {
			case warmKeys:
				n = first + next
				if next++; next == warm {
					next = 0
				}
			case randomKey:
				n = random.IntN(keys)
			}
			if !l.Allow(k.Number(n)) {
				denied.Add(1)
			}
		}
	})
	if n := denied.Load(); n > 0 { // throttled gives up after ten tries to change one key
		b.ReportMetric(100*float64(n)/float64(b.N), "denied-%")
	}
}

// BenchmarkMemory fills a limiter with a million keys. B/key is what it holds then, with the keys. While one
// caller asks for random keys, the garbage collector runs a few times: gc-pause-µs is the longest pause, and gc-ms
// the processor time of one run.
func BenchmarkMemory(b *testing.B) {
	const keys, collections = 1_000_000, 3
	for _, m := range inMemory() {
		b.Run("limiter="+m.Name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				l, err := m.New(ample, keys)
				if err != nil {
					b.Fatal(err)
				}
				fill(b, l, keys, 1)
				b.ReportMetric(float64(heap()-before)/keys, "B/key")
				stop := asking(l, keys)
				was := readCollector()
				for range collections {
					runtime.GC()
				}
				now := readCollector()
				stop()
				b.ReportMetric(now.longestSince(was).Seconds()*1e6, "gc-pause-µs")
				b.ReportMetric(1000*(now.processor-was.processor)/collections, "gc-ms")
				b.ReportMetric(0, "ns/op")
				closeAfter(b, l)
				runtime.KeepAlive(l)
			}
		})
	}
}

// asking asks for random keys until stop is called.
func asking(l limiter, keys int) (stop func()) {
	var ended atomic.Bool
	var asks sync.WaitGroup
	asks.Go(func() {
		random, k := rand.New(rand.NewPCG(1, 2)), newKey()
		for !ended.Load() {
			l.Allow(k.Number(random.IntN(keys)))
		}
	})
	return func() {
		ended.Store(true)
		asks.Wait()
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// collector is what the garbage collector has done by now.
type collector struct {
	pauses    metrics.Float64Histogram
	processor float64 // seconds
}

func readCollector() collector {
	samples := []metrics.Sample{
		{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
	}
	metrics.Read(samples)
	h := samples[0].Value.Float64Histogram()
	return collector{*h, samples[1].Value.Float64() - samples[2].Value.Float64()} // idle processors mark as well
}

// longestSince returns the upper bound of the longest pause after was.
func (c *collector) longestSince(was collector) time.Duration {
	for i := len(c.pauses.Counts) - 1; i >= 0; i-- {
		if c.pauses.Counts[i] > was.pauses.Counts[i] {
			return time.Duration(c.pauses.Buckets[i+1] * float64(time.Second))
		}
	}
	return 0
}
