package e2e

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkTokenBesideSlowDatabase is what client_credentials, which needs no store, notices of a database that is
// slow or away while refresh requests come at the same rate as before. The server is one process on a machine that it
// shares with the database and the clients. The three states take turns, and of each the quietest round counts, because
// what else the machine does is in the others. x-normal is the p99 divided by that with the database as it should be: at
// most 1.5.
//
//	go test -run '^$' -bench BesideSlowDatabase -benchtime 1x ./internal/e2e
func BenchmarkTokenBesideSlowDatabase(b *testing.B) {
	const rounds, requests, tokens = 4, 800, 100
	d := newDependent(b, dependentConfig, "20", tokens)
	states := []struct {
		name        string
		begin, over func()
		p50, p99    time.Duration
	}{
		{name: "normal", begin: func() {}, over: func() {}},
		{name: "slow", begin: func() { d.slow(slowCall) }, over: func() { d.slow(0) }},
		{name: "away", begin: d.proxy.Break, over: d.proxy.Restore},
	}
	b.ResetTimer()
	for range rounds {
		for i := range states {
			s := &states[i]
			s.begin()
			took := d.beside(requests)
			slices.Sort(took)
			if p99 := took[len(took)*99/100]; s.p99 == 0 || p99 < s.p99 {
				s.p50, s.p99 = took[len(took)/2], p99
			}
			s.over()
			<-time.After(3 * time.Second)
		}
	}
	b.StopTimer()
	for _, s := range states {
		b.ReportMetric(float64(s.p50.Microseconds())/1000, s.name+"-p50-ms")
		b.ReportMetric(float64(s.p99.Microseconds())/1000, s.name+"-p99-ms")
		b.ReportMetric(float64(s.p99)/float64(states[0].p99), s.name+"-x-normal")
	}
}

// beside returns how long n requests for client credentials take, one after the other, beside a hundred refresh
// requests a second, whether or not those are answered.
func (d *dependent) beside(n int) (took []time.Duration) {
	ctx, stop := context.WithCancel(d.tb.Context())
	free := make(chan int, len(d.tokens))
	for i := range d.tokens {
		free <- i
	}
	var clients sync.WaitGroup
	var refreshed, refused, skipped atomic.Int64
	refresh := func(i int) {
		if d.refresh(i).status == http.StatusOK {
			refreshed.Add(1)
		} else {
			refused.Add(1)
		}
		free <- i
	}
	clients.Go(func() {
		every(ctx, 10*time.Millisecond, func(int) {
			select {
			case i := <-free:
				clients.Go(func() { refresh(i) })
			default:
				skipped.Add(1)
			}
		})
	})
	<-time.After(2 * time.Second)
	for range n {
		began := time.Now()
		d.token("shop", url.Values{"grant_type": {"client_credentials"}}).requireStatus(d.tb, http.StatusOK)
		took = append(took, time.Since(began))
		<-time.After(2 * time.Millisecond)
	}
	stop()
	clients.Wait()
	d.tb.Logf("%d refreshed, %d refused, %d not sent", refreshed.Load(), refused.Load(), skipped.Load())
	return took
}
