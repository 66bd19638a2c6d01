package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
)

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
