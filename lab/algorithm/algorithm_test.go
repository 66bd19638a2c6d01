package algorithm_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/algorithm"
)

var key = algorithm.Key{Key: ratelimit.Key{ClientID: "shop"}}

func drawLimit(t *rapid.T) algorithm.Limit {
	n := rapid.Int64Range(1, 12).Draw(t, "requests")
	window := rapid.SampledFrom([]int64{60, 600, 1200, 1020, 60_000}).Draw(t, "window")
	return algorithm.Limit{Requests: n, Window: time.Duration(window) * time.Millisecond}
}

// drawTimes draws the times of requests, close together and far apart.
func drawTimes(t *rapid.T, window time.Duration) (times []int64) {
	w, now := window.Milliseconds(), int64(1_767_225_600_123)
	for range rapid.IntRange(1, 120).Draw(t, "number") {
		now += rapid.SampledFrom([]int64{0, 0, 1, w / 20, w / 7, w / 2, w - 1, w, 2 * w}).Draw(t, "step")
		times = append(times, now)
	}
	return times
}

// within counts the times after from and up to to.
func within(times []int64, from, to int64) (n int64) {
	for _, at := range times {
		if at > from && at <= to {
			n++
		}
	}
	return n
}

// TestExact: the exact log admits a request if, and only if, fewer than the limit are in the window that ends with it.
func TestExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		a := algorithm.New(algorithm.Exact, l)
		var admitted []int64
		for _, at := range drawTimes(t, l.Window) {
			right := within(admitted, at-l.Window.Milliseconds(), at) < l.Requests
			if got := a.Admit(key, at).Outcome == traffic.Admitted; got != right {
				t.Fatalf("at %d: admitted %v, want %v; admitted before %v", at, got, right, admitted)
			}
			if right {
				admitted = append(admitted, at)
			}
		}
	})
}

// TestNeverOver: the exact log, strict and a queue keep the limit in every window.
func TestNeverOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		for _, name := range []string{algorithm.Exact, algorithm.Strict, algorithm.LeakyQueue} {
			a := algorithm.New(name, l)
			var admitted []int64
			for _, at := range drawTimes(t, l.Window) {
				if got := a.Admit(key, at); !got.Refused() {
					admitted = append(admitted, at+got.Wait.Milliseconds())
				}
			}
			for _, at := range admitted {
				most := l.Requests
				if name == algorithm.LeakyQueue && l.Window.Milliseconds()%l.Requests != 0 {
					most++ // turns are rounded up to milliseconds
				}
				if n := within(admitted, at-l.Window.Milliseconds(), at); n > most {
					t.Fatalf("%s: %d in the window that ends at %d, limit %d: %v", name, n, at, l.Requests, admitted)
				}
			}
		}
	})
}

// TestBucketsAreEqual: a token bucket and a queue admit the same requests.
func TestBucketsAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		bucket, queue := algorithm.New(algorithm.TokenBucket, l), algorithm.New(algorithm.LeakyQueue, l)
		for _, at := range drawTimes(t, l.Window) {
			if got, want := queue.Admit(key, at), bucket.Admit(key, at); got.Refused() != want.Refused() {
				t.Fatalf("queue at %d: %+v, the token bucket %+v", at, got, want)
			}
		}
	})
}

// TestRetryAfter: a request that is sent again after RetryAfter is admitted, and a millisecond earlier it is not.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		name := rapid.SampledFrom(algorithm.Names()[1:]).Draw(t, "algorithm")
		a := algorithm.New(name, l)
		late := int64(0)
		for _, at := range drawTimes(t, l.Window) {
			at += late
			got := a.Admit(key, at)
			if !got.Refused() {
				continue
			}
			wait := got.RetryAfter.Milliseconds()
			if wait < 1 {
				t.Fatalf("%s: denied, RetryAfter %v", name, got.RetryAfter)
			}
			if early := a.Admit(key, at+wait-1); wait > 1 && !early.Refused() {
				t.Fatalf("%s: admitted a millisecond before RetryAfter", name)
			}
			if again := a.Admit(key, at+wait); again.Refused() {
				t.Fatalf("%s: denied after RetryAfter", name)
			}
			late += wait
		}
	})
}

// TestQueueAsNginx: six requests at once with limit_req rate=10r/s and burst=4 are the first, four that wait for a tenth of a
// second more each, and one that is refused.
func TestQueueAsNginx(t *testing.T) {
	t.Parallel()
	a := algorithm.New(algorithm.LeakyQueue, algorithm.Limit{Requests: 5, Window: time.Second / 2})
	check.Equal(t, "the first", a.Admit(key, 5000), traffic.Answer{Outcome: traffic.Admitted})
	for i := range 4 {
		wait := time.Duration(i+1) * 100 * time.Millisecond
		check.Equal(t, "delayed", a.Admit(key, 5000), traffic.Answer{Outcome: traffic.Delayed, Wait: wait})
	}
	check.Equal(t, "the last", a.Admit(key, 5000), traffic.Answer{Outcome: traffic.Denied, RetryAfter: 100 * time.Millisecond})
}
