// Package decision_test measures one decision of limiters that hold a hundred thousand and a million keys.
//
// Our decision weights two frames, computes the next free time, and checks whether to share the count; half of its time
// reads the clock. On two processors ours locks while it finds the key and decides; go-limiter locks only the counter. Our memory of
// a key is two frames, the state of its exchange, the names and the index. throttled stores one time per key and never removes it.
// Our bytes per decision come from the list of counters that wait for a syncer, which this benchmark does not have.
package decision

import (
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/lab/process"
)

// startRedis returns the address of a Redis that runs as long as the test.
func startRedis(tb testing.TB) (address string) {
	tb.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") != "true" {
		tb.Skip(err)
	}
	free, err := process.FreeAddresses(tb.Context(), 1)
	if err != nil {
		tb.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free[0])
	p, err := process.Start(process.AnyCore, tb.TempDir(), "redis", "redis-server", "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--dir", tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
	if err := p.Await(tb.Context(), process.Listens(free[0])); err != nil {
		tb.Fatal(err)
	}
	return free[0]
}

// TestLimitersAdmitTheirLimit: what is measured does the same work. Each limiter admits exactly its limit, of one
// caller after the other and of several at once, and each key has a limit of its own.
func TestLimitersAdmitTheirLimit(t *testing.T) {
	t.Parallel()
	admitTheirLimit(t, inMemory())
}

// TestLimitersInRedisAdmitTheirLimit is the same with Redis.
func TestLimitersInRedisAdmitTheirLimit(t *testing.T) {
	t.Parallel()
	admitTheirLimit(t, []maker{inRedis(startRedis(t))})
}

func admitTheirLimit(t *testing.T, all []maker) {
	t.Helper()
	const limit = 100
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			l, err := m.New(quota{Requests: limit, Window: 10 * time.Hour}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			closeAfter(t, l)
			for n, callers := range []int{1, 4} {
				key := keyOf(n)
				l.Allow(key) // of several callers at once, only one may find no key
				if got := admitted(l, key, callers, 2*limit) + 1; got != limit {
					t.Errorf("%d callers: %d admitted, want %d", callers, got, limit)
				}
			}
		})
	}
}

// closeAfter closes a limiter when the test has ended.
func closeAfter(tb testing.TB, l limiter) {
	tb.Helper()
	if l.Close != nil {
		tb.Cleanup(func() {
			if err := l.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
}

// admitted sends n requests from each of the callers.
func admitted(l limiter, key string, callers, n int) int {
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range n {
				if l.Allow(key) {
					sum.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(sum.Load())
}

// TestKeys: a key written in place is that of its own string.
func TestKeys(t *testing.T) {
	t.Parallel()
	k := newKey()
	for n, want := range map[int]string{0: "client-000:user-0000000", 1_234_567: "client-567:user-1234567"} {
		if got, own := k.Number(n), keyOf(n); got != want || own != want {
			t.Errorf("key %d is %q, and %q as a string of its own, want %q", n, got, own, want)
		}
	}
}
