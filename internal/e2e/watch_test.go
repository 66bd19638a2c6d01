package e2e

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"
)

// sampleEvery is how often a watch reads the documents.
const sampleEvery = 20 * time.Millisecond

// watch reads the counters in the database again and again, past the proxies. It
// notes live frames that have become smaller, and how slow the machine is.
type watch struct {
	c    *cluster
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	fell    []string
	samples int
	late    []lateness
}

// lateness is time by which a sample was late.
type lateness struct {
	at time.Time
	by time.Duration
}

// watch starts a watch; it ends with the test at the latest.
func (c *cluster) watch() *watch {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	w := &watch{c: c, stop: stop, done: make(chan struct{})}
	go w.run(ctx)
	c.t.Cleanup(w.end)
	return w
}

// end stops the watch.
func (w *watch) end() {
	w.stop()
	<-w.done
}

func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	before, last := map[liveFrame]int64{}, time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		all, err := w.c.documents(ctx)
		if err != nil {
			continue // it ends, or a frame that fell shows in the next sample
		}
		now := time.Now()
		w.compare(before, all, now)
		w.mu.Lock()
		w.samples++
		if late := now.Sub(last) - 2*sampleEvery; late > 0 {
			w.late = append(w.late, lateness{now, late})
		}
		w.mu.Unlock()
		last = now
	}
}

// liveFrame is a frame of a counter.
type liveFrame struct {
	client string
	start  int64 // milliseconds since the epoch
	length int64 // milliseconds
}

// live reports whether the frame still counts: it is the current one or that before.
func (f liveFrame) live(now time.Time) bool { return f.start+2*f.length > now.UnixMilli() }

// compare notes the live frames that have less than before, and remembers all.
func (w *watch) compare(before map[liveFrame]int64, all []document, now time.Time) {
	after := map[liveFrame]int64{}
	for _, d := range all {
		for name, n := range d.Counters {
			if seconds, err := strconv.ParseInt(name, 10, 64); err == nil {
				after[liveFrame{d.ID.ClientID, 1000 * seconds, d.Frame}] = n
			}
		}
	}
	for f, had := range before {
		if n, there := after[f]; n < had && f.live(now) {
			w.mu.Lock()
			w.fell = append(w.fell, fmt.Sprintf("%s: frame %+v had %d and has %d (there: %t)", now.Format(time.StampMilli), f, had, n, there))
			w.mu.Unlock()
		}
	}
	clear(before)
	maps.Copy(before, after)
}

// slow is by how much samples were late between two times, in all.
func (w *watch) slow(from, to time.Time) (sum time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		if l.at.After(from) && l.at.Add(-l.by).Before(to) {
			sum += l.by
		}
	}
	return sum
}

// checkFrames fails the test if a live frame fell.
func (w *watch) checkFrames() {
	w.c.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fell := range w.fell {
		w.c.t.Errorf("a live frame fell: %s", fell)
	}
	if w.samples == 0 {
		w.c.t.Error("no document was read")
	}
}

// unseen is how many requests of a client more than usual may be admitted in a window, because the
// machine was slow and the processes did not exchange counts meanwhile: those that all of them but
// one admitted in that time. One of them would have admitted its own within the limit, so that it
// does not depend on the rate: at the first request of a key there is room for the whole limit at each.
func (w *watch) unseen(client string, start time.Time, window time.Duration) (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		if from := l.at.Add(-l.by - 2*sampleEvery); l.at.After(start) && from.Before(start.Add(window)) {
			n += w.c.ledger.butOne(client, from, l.at)
		}
	}
	return n
}

// checkWindows fails the test if more than the limit, and one request for each
// member, was admitted in a window.
func (w *watch) checkWindows(client string, limit int64, window time.Duration, members int64) {
	w.c.t.Helper()
	worst, admitted := int64(0), w.c.ledger.perFrame(client, window)
	for start, n := range admitted {
		worst = max(worst, n)
		if unseen := w.unseen(client, start, window); n > limit+members+unseen {
			w.c.t.Errorf("%s: %d admitted under a limit of %d in the %v from %s, with %d processes; %d may be because the machine was slow",
				client, n, limit, window, start.Format(time.TimeOnly), members, unseen)
		}
	}
	w.c.t.Logf("%s: at most %d admitted under a limit of %d per %v, %d windows", client, worst, limit, window, len(admitted))
}
