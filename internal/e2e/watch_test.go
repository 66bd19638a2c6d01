package e2e

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
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

// outcome is what came of a token request.
type outcome int

const (
	unanswered outcome = iota
	admitted
	denied
)

// request is one token request, by the clock of the test.
type request struct {
	client       string
	member       int
	began, ended time.Time
	outcome      outcome
}

// ledger is all requests of a test.
type ledger struct {
	mu  sync.Mutex
	all []request
}

func (l *ledger) add(r request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

// count returns how many requests are of that kind.
func (l *ledger) count(of func(r *request) bool) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		if of(&l.all[i]) {
			n++
		}
	}
	return n
}

// issued is how many tokens were issued, by client.
func (l *ledger) issued() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := map[string]int64{}
	for i := range l.all {
		if l.all[i].outcome == admitted {
			sum[l.all[i].client]++
		}
	}
	return sum
}

// perFrame is how many tokens a client was issued in each frame of that length,
// by the start of the frame. A request that may belong to either of two frames is
// in none.
func (l *ledger) perFrame(client string, length time.Duration) map[time.Time]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	frames := map[time.Time]int64{}
	for i := range l.all {
		r := &l.all[i]
		frame := frameOf(r.began, length)
		if r.client == client && r.outcome == admitted && frame.Equal(frameOf(r.ended, length)) {
			frames[frame]++
		}
	}
	return frames
}

// butOne is how many tokens a client was issued between two times by all servers but the one that
// issued most. A request counts that was under way in that time.
func (l *ledger) butOne(client string, from, to time.Time) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var most int64
	by := map[int]int64{}
	for i := range l.all {
		if r := &l.all[i]; r.client == client && r.outcome == admitted && r.ended.After(from) && r.began.Before(to) {
			by[r.member]++
			n, most = n+1, max(most, by[r.member])
		}
	}
	return n - most
}

// TestUnseen: a stall excuses what was admitted while it lasted by all processes but one, and nothing
// that was admitted before or after.
func TestUnseen(t *testing.T) {
	start := frameOf(time.Now(), shortWindow)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	c := &cluster{}
	for i := range 36 { // a burst at the start of a window, at three processes by turns
		c.ledger.add(request{client: "twenty", member: i % 3, began: at(10 * i), ended: at(10*i + 5), outcome: admitted})
		c.ledger.add(request{client: "twenty", member: i % 3, began: at(10 * i), ended: at(10*i + 5), outcome: denied})
		c.ledger.add(request{client: "sixty", member: 0, began: at(10 * i), ended: at(10*i + 5), outcome: admitted})
	}
	stall := func(from, to int) *watch {
		return &watch{c: c, late: []lateness{{at(to), time.Duration(to-from)*time.Millisecond - 2*sampleEvery}}}
	}
	for _, tt := range []struct {
		from, to int
		client   string
		want     int64
	}{
		{0, 600, "twenty", 24},
		{0, 600, "sixty", 0},
		{176, 600, "twenty", 12},
		{1000, 1600, "twenty", 0},
		{-3000, -1000, "twenty", 0},
		{3000, 4000, "twenty", 0},
	} {
		got := stall(tt.from, tt.to).unseen(tt.client, start, shortWindow)
		check.Equal(t, fmt.Sprintf("excused of %s for a stall from %d to %d", tt.client, tt.from, tt.to), got, tt.want)
	}
}

// frameOf is the start of the frame that a time is in: frames are aligned to the epoch.
func frameOf(at time.Time, length time.Duration) time.Time {
	return time.UnixMilli(at.UnixMilli() / length.Milliseconds() * length.Milliseconds())
}
