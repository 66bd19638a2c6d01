package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/traffic"
)

// crowd yields requests of many users of some clients, in turn or at random.
type crowd struct {
	clients, users int // users of each client
	left           int
	random         *rand.Rand // nil: in turn
	every          time.Duration
	names, ids     []string
	n              int
}

func newCrowd(clients, users, requests int, random *rand.Rand) *crowd {
	c := &crowd{clients: clients, users: users, left: requests, random: random, every: time.Millisecond}
	for i := range clients {
		c.ids = append(c.ids, fmt.Sprintf("client-%06d", i))
	}
	for i := range users {
		c.names = append(c.names, fmt.Sprintf("user-%07d@example.com", i))
	}
	return c
}

func (c *crowd) Next(r *traffic.Request) bool {
	if c.left == 0 {
		return false
	}
	c.left--
	c.n++
	i := c.n % (c.clients * c.users)
	if c.random != nil {
		i = c.random.IntN(c.clients * c.users)
	}
	*r = traffic.Request{
		At: testworld.Noon.Add(time.Duration(c.n) * c.every), Client: c.ids[i%c.clients], User: c.names[i/c.clients], Grant: "refresh_token",
	}
	return true
}

func (*crowd) Answer(*traffic.Request, traffic.Answer) {}
func (*crowd) Err() error                              { return nil }

// BenchmarkReplay measures the cost of a request. 10,000 users of 100 clients send requests, and
// some are denied.
func BenchmarkReplay(b *testing.B) {
	for _, trials := range []int{0, 3} {
		b.Run(fmt.Sprint("trials-", trials), func(b *testing.B) {
			o := simulate.Options{Policies: limited(20)}
			for i := range trials {
				o.Trials = append(o.Trials, simulate.TrialOf("trial", perMinute(int64(10 + i))[0]))
			}
			_, err := simulate.Run(b.Context(), newCrowd(100, 100, b.N, rand.New(rand.NewPCG(1, 2))), o)
			check.OK(b, err)
		})
	}
}

// BenchmarkMillionKeys measures the memory for a million keys of 1,000 clients, all of them in
// their windows at once.
func BenchmarkMillionKeys(b *testing.B) {
	for _, clients := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint("clients-", clients), func(b *testing.B) {
			for b.Loop() {
				c := newCrowd(clients, 1_000_000/clients, 1_000_000, nil)
				c.every = 50 * time.Microsecond
				debug.FreeOSMemory()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var most uint64
				o := simulate.Options{Policies: limited(20), MaxKeys: 2_000_000, Progress: func(p simulate.Progress) {
					if p.Requests&(1<<16-1) == 0 {
						runtime.ReadMemStats(&after)
						most = max(most, after.HeapInuse-before.HeapInuse)
					}
				}}
				_, err := simulate.Run(b.Context(), c, o)
				check.OK(b, err)
				b.ReportMetric(float64(most)/1e6, "MB")
			}
		})
	}
}
