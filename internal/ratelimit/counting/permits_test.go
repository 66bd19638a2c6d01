package counting

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestGiveBackToAnotherDocument: permits are not given back to a document that does not count them,
// and are not used after that.
func TestGiveBackToAnotherDocument(t *testing.T) {
	for _, lost := range []bool{false, true} {
		p := leaseFrom(t, strictly(10, 10*time.Minute))
		p.take(4, ratelimit.Denied)
		p.exchange()
		if lost { // the write that gives them back; the document shows that it was not applied yet
			task, _ := p.due()
			p.finish(task, Result{Status: Unknown})
			p.exchange()
		}
		p.doc = ratelimit.Document{} // removed, and written by another process, which uses all
		p.others(60_000, 10)
		p.settle()
		check.Equal(t, "counted", p.counted(), int64(10))
		check.Equal(t, "held", p.held(), int64(0))
		if task, ok := p.due(); ok && task.Seq != 0 {
			t.Errorf("still writes %v", task.Delta)
		}
	}
}

// TestLoweredLimit: unused permits of the previous limit are given back, and so are requested
// permits when they arrive.
func TestLoweredLimit(t *testing.T) {
	for _, under := range []bool{false, true} {
		p := leaseFrom(t, strictly(100, 10*time.Minute))
		p.take(40, ratelimit.Denied)
		task, _ := p.due()
		if !under {
			p.finish(task, p.store(&task))
		}
		_, _, p.eff = single(strictly(1, 10*time.Minute))
		p.take(2, ratelimit.Denied)
		if under {
			p.finish(task, p.store(&task))
		}
		check.Equal(t, "held", p.held(), int64(0))
		p.take(2, ratelimit.Denied)
		p.settle()
		p.take(1, ratelimit.Denied)
		p.exchange()
		p.take(1, ratelimit.Allowed)
		p.take(1, ratelimit.Denied)
		check.Equal(t, "counted", p.counted(), int64(1))
	}
}

// TestCountsAheadOfTheFrame: counts in frames after the next one are read again into their own
// frame, so they leave the window with it.
func TestCountsAheadOfTheFrame(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.others(60_002, 10)
	p.take(1, ratelimit.Denied)
	p.exchange()
	p.now = at(minute + 62_100)
	p.take(1, ratelimit.Denied)
	p.exchange()
	check.Equal(t, "counted", p.counted(), int64(10))
	p.now = at(minute + 63_100)
	p.take(1, ratelimit.Denied)
	p.exchange()
	p.take(1, ratelimit.Allowed)
}

// TestGiveBackOfAClone: permits that a copy of this process may have given back are not given back
// again.
func TestGiveBackOfAClone(t *testing.T) {
	p := leaseFrom(t, strictly(10, 10*time.Minute))
	p.take(4, ratelimit.Denied)
	p.exchange()
	task, _ := p.due()
	p.store(&task)
	p.doc.Mine += 5 // a later write by the copy
	p.doc.Version++
	p.finish(task, Result{Status: Unknown})
	p.settle()
	check.Equal(t, "counted", p.counted(), int64(0))
}

// TestStrictFromNowOn: counts from before a limit became strict are written with the first permits.
func TestStrictFromNowOn(t *testing.T) {
	p := leaseFrom(t, ratelimit.NewLimit("strict", 10, time.Minute))
	p.take(3, ratelimit.Allowed)
	_, _, p.eff = single(strictly(10, time.Minute))
	p.take(1, ratelimit.Denied)
	for p.held() == 0 {
		p.exchange()
	}
	check.Equal(t, "counted", p.counted(), int64(4))
	p.take(1, ratelimit.Allowed)
}

// TestExpiryOfAStrictDocument: a store with a clock hours ahead keeps the document as long as it
// matters.
func TestExpiryOfAStrictDocument(t *testing.T) {
	for _, window := range []time.Duration{10 * time.Minute, 48 * time.Hour} {
		p := leaseFrom(t, strictly(10, window))
		p.take(1, ratelimit.Denied)
		task, _ := p.due()
		if kept := task.Expire.Sub(p.now.Add(window)); kept < max(window, 24*time.Hour) {
			t.Errorf("removed %v after it has left a window of %v", kept, window)
		}
	}
}

// TestFrameAWindowAhead: it can share a window with the next frame, so it counts.
func TestFrameAWindowAhead(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.others(60_061, 10) // 900 ms more than a window
	p.take(1, ratelimit.Denied)
	p.exchange()
	check.Equal(t, "known", p.c.Usage(p.now, p.k)[0].Known, int64(10))
}

// TestTripOfANewLease: an exchange that began under other frames is not used to measure the trip
// time.
func TestTripOfANewLease(t *testing.T) {
	p := leaseFrom(t, strictly(10, 10*time.Minute))
	p.take(1, ratelimit.Denied)
	task, _ := p.due()
	_, _, p.eff = single(strictly(10, 20*time.Minute))
	p.take(1, ratelimit.Denied)
	p.pass(5 * time.Millisecond)
	p.finish(task, p.store(&task))
	check.Equal(t, "trip", p.c.all.leasing.trip.Load(), int64(ratelimit.MinSpacing))
}
