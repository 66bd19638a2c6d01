package counting

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oauth-server/internal/ratelimit"
)

// event is one admitted request in the brute-force log.
type event struct {
	at int64
	n  int64
}

// slidingLog is the exact answer that the estimate approximates: every admitted request with its
// time.
type slidingLog []event

// within counts the requests after from, up to and including to.
func (l slidingLog) within(from, to int64) (n int64) {
	for _, e := range l {
		if e.at > from && e.at <= to {
			n += e.n
		}
	}
	return n
}

func drawLimit(t *rapid.T, name string) ratelimit.Limit {
	l := ratelimit.NewLimit(name, rapid.Int64Range(1, 20).Draw(t, name+" requests"), 0)
	l.Algorithm = rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Sliding, ratelimit.Sliding, ratelimit.Weighted, ratelimit.Fixed}).Draw(t, name+" algorithm")
	if l.Algorithm == ratelimit.Sliding {
		l.Frames = rapid.SampledFrom([]int{1, 1, 2, 3, 6, 60}).Draw(t, name+" frames")
	}
	frame := rapid.SampledFrom([]int64{1, 7, 10, 1000, 1500, 60_000}).Draw(t, name+" frame")
	l.Window = time.Duration(frame*int64(l.Frames)) * time.Millisecond
	return l
}

func drawLimits(t *rapid.T) []ratelimit.Limit {
	limits := []ratelimit.Limit{drawLimit(t, "a")}
	if rapid.Bool().Draw(t, "two limits") {
		limits = append(limits, drawLimit(t, "b"))
	}
	return limits
}

// drawStep returns how far time goes between two requests, seen from the window.
func drawStep(t *rapid.T, window time.Duration) int64 {
	w := window.Milliseconds()
	switch rapid.IntRange(0, 3).Draw(t, "kind of step") {
	case 0:
		return 0
	case 1:
		return rapid.Int64Range(0, max(w/20, 1)).Draw(t, "small step")
	case 2:
		return rapid.Int64Range(0, w).Draw(t, "step")
	default:
		return rapid.Int64Range(0, 3*w).Draw(t, "large step")
	}
}

// TestEstimateBounds: the sliding estimate lies between the requests that are certainly inside the
// window and those that may be. No window contains more than its frames can.
func TestEstimateBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, "limit")
		if l.Algorithm != ratelimit.Sliding {
			l.Algorithm, l.Frames = ratelimit.Sliding, 1
		}
		c, k, eff := single(l)
		w, frame := l.Window.Milliseconds(), eff.User.Rules[0].FrameMS
		var log slidingLog
		now := int64(epoch)
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += drawStep(t, l.Window)
			n := rapid.Int64Range(1, 3).Draw(t, "cost")
			if d := c.Take(at(now), k, eff, n); d.Outcome == ratelimit.Allowed {
				log = append(log, event{now, n})
			}
			estimate := 0.0
			if u := c.Usage(at(now), k); len(u) > 0 {
				estimate = u[0].Estimate
			}
			oldest := now - now%frame - w // start of the frame that leaves the window
			certain, possible := log.within(oldest+frame-1, now), log.within(oldest-1, now)
			if estimate < float64(certain) || estimate > float64(possible) {
				t.Fatalf("estimate %v, want %d to %d", estimate, certain, possible)
			}
			if certain > l.Requests {
				t.Fatalf("%d requests in the frames wholly inside the window, limit %d", certain, l.Requests)
			}
			if n := log.within(now-w, now); n > 2*l.Requests {
				t.Fatalf("%d requests in one window, more than two limits of %d", n, l.Requests)
			}
		}
	})
}

// TestFixedIsExactPerWindow: windows aligned to the epoch contain at most the limit.
func TestFixedIsExactPerWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ratelimit.NewLimit("fixed", rapid.Int64Range(1, 9).Draw(t, "requests"), time.Second)
		l.Algorithm = ratelimit.Fixed
		c, k, eff := single(l)
		got := map[int64]int64{}
		offered := map[int64]int64{}
		now := int64(epoch)
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += drawStep(t, l.Window)
			offered[now/1000]++
			if d := c.Take(at(now), k, eff, 1); d.Outcome == ratelimit.Allowed {
				got[now/1000]++
			}
		}
		for w, n := range offered {
			mustEqual(t, "admitted in a window", min(n, l.Requests), got[w])
		}
	})
}

// TestRetryAfterIsTight: the same request passes after exactly RetryAfter, and not a millisecond
// earlier, for any number of limits.
func TestRetryAfterIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		c, k, eff := single(limits...)
		now, denied := int64(epoch), 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += drawStep(t, limits[0].Window)
			n := rapid.Int64Range(1, 3).Draw(t, "cost")
			d := c.Take(at(now), k, eff, n)
			if d.Outcome == ratelimit.Allowed {
				mustEqual(t, "RetryAfter of an admitted request", 0, d.RetryAfter)
				continue
			}
			denied++
			if d.RetryAfter == ratelimit.Never {
				b, _ := d.BindingLimit()
				if n <= b.Limit.Requests {
					t.Fatalf("RetryAfter of %d requests is Never, limit %d", n, b.Limit.Requests)
				}
				continue
			}
			wait := d.RetryAfter.Milliseconds()
			if s := d.RetryAfterSeconds(); wait <= 0 || s*1000 < wait {
				t.Fatalf("RetryAfter = %d ms, RetryAfterSeconds = %d", wait, s)
			}
			for _, early := range []int64{rapid.Int64Range(0, wait-1).Draw(t, "early"), wait - 1} {
				e := c.Take(at(now+early), k, eff, n)
				mustEqual(t, "Outcome before RetryAfter", ratelimit.Denied, e.Outcome)
				mustEqual(t, "RetryAfter when asking early", wait-early, e.RetryAfter.Milliseconds())
			}
			now += wait
			d = c.Take(at(now), k, eff, n)
			mustEqual(t, "Outcome after RetryAfter", ratelimit.Allowed, d.Outcome)
		}
	})
}

// TestDeniedChangesNothing: two copies of the same traffic, one with additional denied requests,
// get the same decisions.
func TestDeniedChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		plain, k, eff := single(limits...)
		noisy, _, _ := single(limits...)
		now := int64(epoch)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += drawStep(t, limits[0].Window)
			a, b := plain.Take(at(now), k, eff, 1), noisy.Take(at(now), k, eff, 1)
			mustEqual(t, "the decision after denied requests", a, b)
			for range rapid.IntRange(0, 3).Draw(t, "noise") {
				before := noisy.Usage(at(now), k)
				d := noisy.Take(at(now), k, eff, limits[0].Requests+1) // never fits
				mustEqual(t, "Outcome", ratelimit.Denied, d.Outcome)
				if diff := cmp.Diff(before, noisy.Usage(at(now), k)); diff != "" {
					t.Fatalf("a denied request changed the counters:\n%s", diff)
				}
			}
		}
	})
}

// TestTimeGoingBackwards: a client that was just denied is denied at every earlier time, and counts
// remain. The weighted formula is excluded: its estimate can be lower a moment earlier.
func TestTimeGoingBackwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		for i := range limits {
			if limits[i].Algorithm == ratelimit.Weighted {
				limits[i].Algorithm = ratelimit.Fixed
			}
		}
		c, k, eff := single(limits...)
		now := int64(epoch)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += drawStep(t, limits[0].Window)
			d := c.Take(at(now), k, eff, 1)
			for _, u := range c.Usage(at(now), k) {
				if u.Estimate < 0 || u.Unflushed < 0 {
					t.Fatalf("estimate %v, unflushed %d", u.Estimate, u.Unflushed)
				}
			}
			if d.Outcome != ratelimit.Denied {
				continue
			}
			back := rapid.SampledFrom([]int64{1, 999, 60_000, 3_600_000, 86_400_000, epoch, 2 * epoch}).Draw(t, "back")
			then := now - rapid.Int64Range(1, back).Draw(t, "back by")
			e := c.Take(at(then), k, eff, 1)
			if e.Outcome != ratelimit.Denied || e.RetryAfter <= 0 {
				t.Fatalf("%d ms back: %s, RetryAfter %v", now-then, e.Outcome, e.RetryAfter)
			}
			f := c.Take(at(then+e.RetryAfter.Milliseconds()), k, eff, 1)
			mustEqual(t, "Outcome after RetryAfter, before the clock has caught up,", ratelimit.Allowed, f.Outcome)
			now = then + e.RetryAfter.Milliseconds()
		}
	})
}

// TestChangedLimitKeepsCounts: a limit that is changed in mid-window continues from its counts,
// with any new frames.
func TestChangedLimitKeepsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := drawLimit(t, "limit")
		was.Algorithm = ratelimit.Sliding
		c, k, eff := single(was)
		n := rapid.Int64Range(1, was.Requests).Draw(t, "used")
		now := int64(epoch)
		d := c.Take(at(now), k, eff, n)
		mustEqual(t, "Outcome", ratelimit.Allowed, d.Outcome)

		next := was
		next.Requests = rapid.Int64Range(1, 30).Draw(t, "new requests")
		next.Frames = rapid.SampledFrom([]int{1, 2, 60}).Draw(t, "new frames")
		next.Window = time.Duration(next.Frames) * rapid.SampledFrom([]time.Duration{
			time.Millisecond, time.Second, time.Minute, time.Hour,
		}).Draw(t, "new frame")
		_, _, changed := single(next)
		mustAdmit(t, max(next.Requests-n, 0), c, at(now), k, changed)
		mustEqual(t, "Unflushed", max(next.Requests, n), c.Usage(at(now), k)[0].Unflushed)
	})
}

// TestSoftWarning: from the soft ratio on, including the request itself.
func TestSoftWarning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ratelimit.NewLimit("soft", rapid.Int64Range(1, 50).Draw(t, "requests"), time.Minute)
		l.SoftRatio = rapid.Float64Range(0.01, 1).Draw(t, "ratio")
		c, k, eff := single(l)
		for used := int64(1); used <= l.Requests; used++ {
			d := c.Take(at(epoch), k, eff, 1)
			share := float64(used) / float64(l.Requests)
			if math.Abs(share-l.SoftRatio) > 1e-5 {
				mustEqual(t, "Soft", share > l.SoftRatio, d.Soft)
			}
		}
	})
}
