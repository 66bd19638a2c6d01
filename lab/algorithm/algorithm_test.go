package algorithm_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/algorithm"
)

var key = algorithm.Key{Key: ratelimit.Key{ClientID: "shop"}}

// make makes an algorithm, or ends the test.
func construct(t rapid.TB, name string, l algorithm.Limit) algorithm.Algorithm {
	t.Helper()
	a, err := algorithm.New(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPublishedExamples takes the examples that others published of the estimate.
func TestPublishedExamples(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../internal/ratelimit/counting/testdata/sliding.json")
	check.OK(t, err)
	var file struct {
		Cases []struct {
			Name      string           `json:"name"`
			Algorithm string           `json:"algorithm"`
			Window    int64            `json:"window"`
			Frames    int              `json:"frames_per_window"`
			Limit     int64            `json:"limit"`
			Counts    map[string]int64 `json:"counts"`
			At        int64            `json:"at"`
			Estimate  float64          `json:"estimate"`
			Admits    *int64           `json:"admits"`
		} `json:"cases"`
	}
	check.OK(t, json.Unmarshal(raw, &file))
	check.Equal(t, "there are cases", len(file.Cases) > 5, true)
	for _, tc := range file.Cases {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			name := tc.Algorithm
			if name == algorithm.Sliding {
				name = algorithm.SlidingFrames(tc.Frames)
			}
			l := algorithm.Limit{Requests: max(tc.Limit, 100), Window: time.Duration(tc.Window) * time.Second}
			if tc.Limit > 0 {
				l.Requests = tc.Limit
			}
			e, err := algorithm.NewEstimator(name, l)
			check.OK(t, err)
			a := construct(t, name, l)
			for frame := int64(0); frame <= tc.At; frame++ {
				late := min((frame+tc.Window/int64(tc.Frames))*1000-1, tc.At*1000) // when most of the limit is free
				for range tc.Counts[strconv.FormatInt(frame, 10)] {
					e.Count(key, late)
					a.Admit(key, late)
				}
			}
			if got := e.Estimate(key, tc.At*1000); math.Abs(got-tc.Estimate) > 1e-12 {
				t.Fatalf("estimate = %v, want %v", got, tc.Estimate)
			}
			if tc.Admits == nil {
				return
			}
			admitted := int64(0)
			for a.Admit(key, tc.At*1000).Outcome == traffic.Admitted {
				admitted++
			}
			check.Equal(t, "admits", admitted, *tc.Admits)
		})
	}
}

func drawLimit(t *rapid.T) algorithm.Limit {
	n := rapid.Int64Range(1, 12).Draw(t, "requests")
	window := rapid.SampledFrom([]int64{60, 600, 1000, 1020, 60_000}).Draw(t, "window")
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
		a := construct(t, algorithm.Exact, l)
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
			a := construct(t, name, l)
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

// TestBucketsAreEqual: token bucket, leaky bucket and GCRA give the same answers, and the queue admits the same.
func TestBucketsAreEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		bucket, gcra := construct(t, algorithm.TokenBucket, l), construct(t, algorithm.GCRA, l)
		leaky, queue := construct(t, algorithm.LeakyBucket, l), construct(t, algorithm.LeakyQueue, l)
		for _, at := range drawTimes(t, l.Window) {
			want := bucket.Admit(key, at)
			for name, got := range map[string]traffic.Answer{"gcra": gcra.Admit(key, at), "leaky bucket": leaky.Admit(key, at)} {
				if got != want {
					t.Fatalf("%s at %d: %+v, the token bucket %+v", name, at, got, want)
				}
			}
			if got := queue.Admit(key, at); got.Refused() != want.Refused() {
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
		name := rapid.SampledFrom(append(algorithm.Fitting(l)[1:], "sliding-1")).Draw(t, "algorithm")
		a := construct(t, name, l)
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
	a := construct(t, algorithm.LeakyQueue, algorithm.Limit{Requests: 5, Window: time.Second / 2})
	check.Equal(t, "the first", a.Admit(key, 5000), traffic.Answer{Outcome: traffic.Admitted})
	for i := range 4 {
		wait := time.Duration(i+1) * 100 * time.Millisecond
		check.Equal(t, "delayed", a.Admit(key, 5000), traffic.Answer{Outcome: traffic.Delayed, Wait: wait})
	}
	check.Equal(t, "the last", a.Admit(key, 5000), traffic.Answer{Outcome: traffic.Denied, RetryAfter: 100 * time.Millisecond})
}

// TestExtremes: the largest limits do not overflow.
func TestExtremes(t *testing.T) {
	t.Parallel()
	l := algorithm.Limit{Requests: ratelimit.MaxRequests, Window: ratelimit.MaxWindow}
	for _, name := range algorithm.Fitting(l) {
		a := construct(t, name, l)
		for _, at := range []int64{0, 1, 1_767_225_600_000, 1_767_225_600_000 + 400*24*3_600_000} {
			if got := a.Admit(key, at); got.Refused() {
				t.Errorf("%s denies at %d", name, at)
			}
		}
	}
}

// TestFitting: frames that do not divide the window are left out.
func TestFitting(t *testing.T) {
	t.Parallel()
	check.Equal(t, "a minute", algorithm.Fitting(algorithm.Limit{Requests: 1, Window: time.Minute}), algorithm.Names())
	for _, name := range algorithm.Fitting(algorithm.Limit{Requests: 1, Window: time.Second}) {
		check.Equal(t, "sliding-6 or -60", name == algorithm.SlidingFrames(6) || name == algorithm.SlidingFrames(60), false)
	}
}

func TestBadNamesAndLimits(t *testing.T) {
	t.Parallel()
	good := algorithm.Limit{Requests: 10, Window: time.Minute}
	for _, tc := range []struct {
		name  string
		limit algorithm.Limit
		want  string
	}{
		{"slidding", good, `there is no algorithm "slidding"; there are unlimited, exact,`},
		{"sliding-x", good, `algorithm "sliding-x": "x" is not a number of frames`},
		{"sliding-7", good, "7 frames do not divide a window of 1m0s"},
		{"sliding-0", good, "0 is not between 1 and 60"},
		{"exact", algorithm.Limit{Requests: 0, Window: time.Minute}, "requests: 0 is not between"},
		{"gcra", algorithm.Limit{Requests: 1, Window: time.Microsecond}, "window: 1µs is not a whole number of milliseconds"},
	} {
		_, err := algorithm.New(tc.name, tc.limit)
		check.ErrorSays(t, err, tc.want)
		_, err = algorithm.NewEstimator(tc.name, tc.limit)
		check.ErrorSays(t, err, tc.want)
	}
}
