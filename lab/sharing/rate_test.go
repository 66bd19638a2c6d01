package sharing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/internal/overload/proctime"
	"oauth-server/internal/ratelimit"
	"oauth-server/lab/limiters"
	"oauth-server/lab/process"
)

// The load of BenchmarkRate: that many decisions per second, over as many keys as it takes for each to have its limit
// in a window.
const (
	decisions = 12_000
	window    = 5 * time.Second
	senders   = 8
	tick      = 10 * time.Millisecond
)

// BenchmarkRate is the processor time of a million decisions, of the process that asks and of the one that stores the
// counts: an exact log in a sorted set of Redis, two counters in Redis, and ours, with two instances that share their
// counts through MongoDB's stand-in, and with one on a file. Each key gets as many requests in a window as its limit admits, at an even rate.
func BenchmarkRate(b *testing.B) {
	p, address, err := process.Redis(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Stop() })
	db := newDatabase(b)
	standIn := process.Whole(standInPID(b, db.uri))
	idle := spend(b, standIn, func(int) bool { return true }) // what sending costs by itself
	for _, limit := range []int64{10, 100, 10_000} {
		keys := int(decisions * window.Seconds() / float64(limit))
		for _, m := range limiters.InRedis(address)[1:] {
			b.Run(fmt.Sprintf("limit=%d/store=%s", limit, m.Name), func(b *testing.B) {
				l, err := m.New(limiters.Limit{Requests: limit, Window: window}, keys)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = l.Close() }()
				names := make([]string, keys)
				for n := range names {
					names[n] = strconv.FormatInt(limit, 10) + limiters.KeyOf(n)
				}
				report(b, process.Threads(p.PID()), idle, func(n int) bool { return l.Allow(names[n%keys]) })
			})
		}
		b.Run(fmt.Sprintf("limit=%d/store=ours", limit), func(b *testing.B) {
			reportOurs(b, standIn, idle, limit, keys, db.open(b, db.uri), db.open(b, db.uri))
		})
		b.Run(fmt.Sprintf("limit=%d/store=ours-on-file", limit), func(b *testing.B) {
			file, err := app.OpenStore(b.Context(), config.Store{Embedded: &config.Embedded{Path: filepath.Join(b.TempDir(), "counters.db")}})
			if err != nil {
				b.Fatal(err)
			}
			none := func() (time.Duration, error) { return 0, nil } // the store is in the process that asks
			reportOurs(b, none, idle, limit, keys, file)
		})
	}
}

// reportOurs measures instances that share their counts; each request comes to the next of them.
func reportOurs(b *testing.B, store process.Reader, idle cost, limit int64, keys int, stores ...app.Store) {
	b.Helper()
	var all []*ours
	for _, s := range stores {
		all = append(all, newOurs(b, s, limit, window))
	}
	names := make([]ratelimit.Key, keys)
	for n := range names {
		names[n] = ratelimit.Key{ClientID: "client-" + strconv.FormatInt(limit, 10), Username: "user-" + strconv.Itoa(n)}
	}
	report(b, store, idle, func(n int) bool { return all[n/keys%len(all)].take(names[n%keys]) })
	for _, o := range all {
		o.stop()
	}
}

// cost is processor time for a million decisions, in seconds.
type cost struct{ client, store, admitted float64 }

func report(b *testing.B, store process.Reader, idle cost, decide func(n int) bool) {
	b.Helper()
	for b.Loop() {
		c := spend(b, store, decide)
		c.client -= idle.client
		b.ReportMetric(c.client, "client-s/M")
		b.ReportMetric(c.store, "store-s/M")
		b.ReportMetric(c.client+c.store, "s/M")
		b.ReportMetric(c.admitted, "admitted-%")
		b.ReportMetric(0, "ns/op")
	}
}

// spend sends decisions for two windows and measures the second, in which the first one counts.
func spend(b *testing.B, store process.Reader, decide func(n int) bool) cost {
	b.Helper()
	var sent, admitted atomic.Int64
	began := time.Now()
	var sending sync.WaitGroup
	for sender := range senders {
		sending.Go(func() {
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			n := sender
			for since := time.Duration(0); since < 2*window; {
				since = (<-ticker.C).Sub(began)
				for ; n < int(since.Seconds()*decisions); n += senders {
					sent.Add(1)
					if decide(n) {
						admitted.Add(1)
					}
				}
			}
		})
	}
	<-time.After(window)
	client, stored := used(b, store)
	n, passed := sent.Load(), admitted.Load()
	sending.Wait()
	clientThen, storedThen := used(b, store)
	n, passed = sent.Load()-n, admitted.Load()-passed
	millions := float64(n) / 1e6
	return cost{
		(clientThen - client).Seconds() / millions, (storedThen - stored).Seconds() / millions,
		100 * float64(passed) / float64(n),
	}
}

func used(b *testing.B, store process.Reader) (client, stored time.Duration) {
	b.Helper()
	client, err := proctime.Self()
	if err != nil {
		b.Fatal(err)
	}
	if stored, err = store(); err != nil {
		b.Fatal(err)
	}
	return client, stored
}

// standInPID returns the process of MongoDB's stand-in, which .ci/mongo-test-server has noted.
func standInPID(b *testing.B, uri string) int {
	b.Helper()
	text, err := os.ReadFile(os.TempDir() + "/mongo-test-server-" + uri[strings.LastIndex(uri, ":")+1:] + ".pid")
	if err != nil {
		b.Skipf("no stand-in that .ci/mongo-test-server has started: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		b.Fatal(err)
	}
	return pid
}
