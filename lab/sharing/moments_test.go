package sharing_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

// BenchmarkColdStart starts three instances while a limit of 200 an hour is used up, which only the database knows. Each is asked
// over some connections, which send the next request a millisecond after an answer: over counts the admitted ones of all.
func BenchmarkColdStart(b *testing.B) {
	const limit, instances = 200, 3
	k := ratelimit.Key{ClientID: "client", Username: "user"}
	for _, connections := range []int{1, 2, 16} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			for b.Loop() {
				db := newDatabase(b)
				before := newOurs(b, db.open(b, db.uri), limit, time.Hour)
				for range limit {
					before.take(k)
				}
				before.stop()
				var over atomic.Int64
				var asking sync.WaitGroup
				all := make([]*ours, instances)
				for i := range all {
					all[i] = newOurs(b, db.open(b, db.uri), limit, time.Hour)
				}
				for _, o := range all {
					for range connections {
						asking.Go(func() {
							for began := time.Now(); time.Since(began) < time.Second; <-time.After(time.Millisecond) {
								if o.take(k) {
									over.Add(1)
								}
							}
						})
					}
				}
				asking.Wait()
				for _, o := range all {
					o.stop()
				}
				b.ReportMetric(float64(over.Load()), "over")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkStop stops an instance that has just admitted one request of each of 2,000 users, and writes all of them.
func BenchmarkStop(b *testing.B) {
	const users = 2000
	for b.Loop() {
		db := newDatabase(b)
		p := newProxy(b, db.uri)
		o := newOurs(b, db.open(b, p.URI), 100, time.Hour)
		for i := range users {
			o.take(ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(i)})
		}
		began := time.Now()
		o.stop()
		b.ReportMetric(time.Since(began).Seconds(), "s/stop")
		b.ReportMetric(0, "ns/op")
		if t := trafficOf(p); t.updates != users {
			b.Fatalf("%d updates", t.updates)
		}
	}
}
