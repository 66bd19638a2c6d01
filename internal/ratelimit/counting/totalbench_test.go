package counting

import (
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// withTotal returns limits with one limit for each user and a total.
func withTotal(tb testing.TB, user ratelimit.Limit, total ...ratelimit.Limit) *ratelimit.Effective {
	tb.Helper()
	p, err := ratelimit.Compile(ratelimit.Settings{
		Mode: ratelimit.Enforce, CanaryPercent: 100,
		Default: ratelimit.Policy{User: []ratelimit.Limit{user}, Client: []ratelimit.Limit{user}, Total: total},
	})
	check.OK(tb, err)
	return p.For("client")
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

// BenchmarkTakeTotalCores measures the throughput of one core and of two: for users of one client,
// with and without a total, and for one hot key.
func BenchmarkTakeTotalCores(b *testing.B) {
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
