package workload_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/workload"
)

// TestRetries: a denied request is sent again after Retry-After, in whole seconds, for ten minutes.
func TestRetries(t *testing.T) {
	t.Parallel()
	src := workload.New(workload.Spec{
		Traffic: workload.Poisson, Retry: true, Requests: 1, Window: 24 * time.Hour, Rate: 1, Duration: 40 * 24 * time.Hour, Seed: 3,
	})
	var r traffic.Request
	check.Equal(t, "a request", src.Next(&r), true)
	first, retries := r.At, 0
	for last := first; ; last = r.At {
		src.Answer(&r, traffic.Answer{Outcome: traffic.Denied, RetryAfter: 2300 * time.Millisecond})
		if !src.Next(&r) || r.At.Sub(first) > 10*time.Minute {
			break
		}
		retries++
		check.Equal(t, "after whole seconds", r.At.Sub(last), 3*time.Second)
	}
	check.Equal(t, "retries", retries, 200)
}

// TestRetriesAreInOrder: retries and calls come in the order of their time, each denied request comes again, and admitted
// ones do not.
func TestRetriesAreInOrder(t *testing.T) {
	t.Parallel()
	spec := workload.Spec{Traffic: workload.Poisson, Number: 5, Requests: 60, Rate: 1, Duration: 10 * time.Minute}
	calls := len(all(t, spec))
	spec.Retry = true
	src := workload.New(spec)
	var r traffic.Request
	last, denied, admitted, n := workload.Start, 0, 0, 0
	for ; src.Next(&r); n++ {
		if r.At.Before(last) {
			t.Fatalf("a request at %v, after one at %v", r.At, last)
		}
		last = r.At
		if n%3 == 0 {
			denied++
			src.Answer(&r, traffic.Answer{Outcome: traffic.Banned, RetryAfter: time.Duration(1+n%7) * time.Second})
			continue
		}
		admitted++
		src.Answer(&r, traffic.Answer{Outcome: traffic.Admitted})
	}
	check.Equal(t, "admitted", admitted, calls)
	check.Equal(t, "requests", n, calls+denied)
}
