package syncer_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// BenchmarkRequestPath times single decisions on 100,000 keys while the syncer works: with a
// database that answers at once, with one that takes 100 ms per call, and with none. The database
// must not slow the decisions down.
func BenchmarkRequestPath(b *testing.B) {
	for _, bm := range []struct {
		name     string
		took     time.Duration
		exchange func(context.Context, []exchange.Item) ([]exchange.Result, error)
	}{
		{"database=quick", 0, nil},
		{"database=100ms", 100 * time.Millisecond, nil},
		{"database=away", 100 * time.Millisecond, func(context.Context, []exchange.Item) ([]exchange.Result, error) { return nil, errNetwork }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p50, p99 := requestPath(b, &wrapped{took: bm.took, exchange: bm.exchange})
			b.ReportMetric(float64(p50), "p50-ns")
			b.ReportMetric(float64(p99), "p99-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// requestPath makes about 1,000 decisions each 10 ms for two seconds, which dirties every key
// twice.
func requestPath(b *testing.B, store *wrapped) (p50, p99 time.Duration) {
	b.Helper()
	const keys, perTick, ticks = 100_000, 1000, 200
	c, policy := counting.NewCounters(2*keys), policyOf(b, ratelimit.NewLimit("per-minute", 1000, time.Minute))
	s := syncer.New(c, store, store, syncer.DefaultConfig())
	s.Start(b.Context())
	b.Cleanup(s.Kill)
	names := make([]ratelimit.Key, keys)
	for i := range names {
		names[i] = keyOf(i)
		c.Take(time.Now(), names[i], policy, 1)
	}
	took := make([]time.Duration, 0, perTick*ticks*b.N)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	b.ResetTimer()
	for range b.N * ticks {
		<-tick.C
		for range perTick {
			k := names[len(took)%keys]
			began := time.Now()
			c.Take(began, k, policy, 1)
			took = append(took, time.Since(began))
		}
	}
	b.StopTimer()
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}
