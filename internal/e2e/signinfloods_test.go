package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// manyFailures is a configuration for floods of wrong passwords that no limit of failures ends.
const manyFailures = `failed_attempts: { users: { per_address: 100000, per_name: 100000, per_name_daily: 100000, slow_after: 100000 } }
`

// wide is a flood of sign-ins with unknown usernames from many sources, each of which sends so often.
type wide struct {
	sources int
	source  func(i int) string
	every   time.Duration
}

var wideFloods = map[string]wide{
	"none":              {},
	"20 addresses":      {20, func(i int) string { return fmt.Sprintf("192.0.%d.1", i) }, time.Second / 2},
	"60 addresses":      {60, func(i int) string { return fmt.Sprintf("192.0.%d.1", i) }, time.Second / 2},
	"256 of an IPv6-56": {256, func(i int) string { return fmt.Sprintf("2001:db8:0:%x::1", i) }, 2 * time.Second},
}

// start sends until stop. A source does not wait for its answers.
func (f wide) start(s *server) (stop func()) {
	ctx, cancel := context.WithCancel(s.tb.Context())
	client := newHTTPClient(s.tb)
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = 1000 //nolint:forcetypeassert // newHTTPClient made it
	var senders sync.WaitGroup
	for i := range f.sources {
		senders.Go(func() {
			delay := time.NewTimer(f.every * time.Duration(i) / time.Duration(f.sources))
			defer delay.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-delay.C:
				}
				delay.Reset(f.every)
				name := fmt.Sprintf("stranger-%d-%d", i, n)
				senders.Go(func() { _, _ = s.signInStatus(client, s.signInRequest(ctx, f.source(i), name)) })
			}
		})
	}
	return func() { cancel(); senders.Wait() }
}

// BenchmarkSignInDuringWideFlood is how long a user waits to be signed in during a flood from many
// sources: from an address where the user has signed in before, and each time from a new one.
//
//	go test -run '^$' -bench SignInDuringWideFlood -benchtime 40x ./internal/e2e
func BenchmarkSignInDuringWideFlood(b *testing.B) {
	for name, flood := range wideFloods {
		for from, address := range map[string]func(i int) string{
			"known": func(int) string { return otherAddress },
			"new":   func(i int) string { return fmt.Sprintf("198.18.%d.1", i) },
		} {
			b.Run(strings.ReplaceAll(name, " ", "-")+"/"+from, func(b *testing.B) {
				s := start(b, unlimited+quiet+manySignIns+manyFailures)
				client := newHTTPClient(b)
				signIn := func(address string) bool {
					status, err := s.signInStatus(client, s.signInRequest(b.Context(), address, secondUser))
					return err == nil && status == http.StatusSeeOther
				}
				if !signIn(otherAddress) {
					b.Fatal("no sign-in without a flood")
				}
				stop := flood.start(s)
				defer stop()
				<-time.After(5 * time.Second) // until the queue is as long as it becomes
				pace := time.NewTicker(time.Second / 4)
				defer pace.Stop()
				var took []time.Duration
				b.ResetTimer()
				for i := range b.N {
					<-pace.C
					began := time.Now()
					if signIn(address(i)) {
						took = append(took, time.Since(began))
					}
				}
				b.StopTimer()
				if slices.Sort(took); len(took) > 0 {
					b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
					b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "max-ms")
				}
				b.ReportMetric(float64(b.N-len(took)), "refused")
			})
		}
	}
}
