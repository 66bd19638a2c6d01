package hashing

import (
	"errors"
	"sync"
	"time"
)

// The pause before another child is started: after the first failure, and at most. And the interval
// at which failures are logged.
const (
	firstPause  = 100 * time.Millisecond
	longest     = time.Minute
	loggedEvery = time.Minute
)

// errPause is returned during a pause after failures of children.
var errPause = errors.New("hashing: not starting a process so soon after failures")

// failures counts failures of children. The zero value is usable.
type failures struct {
	mu     sync.Mutex
	pause  time.Duration // after the latest failure in a row; 0: no pause
	until  time.Time     // its end
	count  int           // since they were logged
	logged time.Time     // zero: never
}

// add counts a failure and begins a pause, which doubles with each failure in a row. If failures
// are to be logged now, it returns how many there were since the last log line, else 0.
func (f *failures) add(now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pause = min(max(2*f.pause, firstPause), longest)
	f.until = now.Add(f.pause)
	f.count++
	if !f.logged.IsZero() && now.Sub(f.logged) < loggedEvery {
		return 0
	}
	n := f.count
	f.count, f.logged = 0, now
	return n
}

// over ends a series of failures.
func (f *failures) over() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pause, f.until = 0, time.Time{}
}

// wait returns an error during a pause.
func (f *failures) wait(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.until) {
		return errPause
	}
	return nil
}
