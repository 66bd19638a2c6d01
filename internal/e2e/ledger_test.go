package e2e

import (
	"sync"
	"time"
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

// frameOf is the start of the frame that a time is in: frames are aligned to the epoch.
func frameOf(at time.Time, length time.Duration) time.Time {
	return time.UnixMilli(at.UnixMilli() / length.Milliseconds() * length.Milliseconds())
}
