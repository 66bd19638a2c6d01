package hashing

import (
	"errors"
	"sync"
	"time"
)

// The pause before another child is started, after a failure and at most; and how often failures are logged.
const (
	firstPause  = 100 * time.Millisecond
	longest     = time.Minute
	loggedEvery = time.Minute
)

// errPause is returned while no child is started, because others have failed.
var errPause = errors.New("hashing: no child is started so soon after others have failed")

// failures counts failures of children. The zero value is usable.
type failures struct {
	mu     sync.Mutex
	pause  time.Duration // after the latest of a row; 0: there is none
	until  time.Time     // its end
	count  int           // since they were logged
	logged time.Time     // zero: never
}

// add counts a failure, after which there is a pause that doubles in a row of them. It returns how many there
// were since the last time that they were logged, if they are to be logged now, and else 0.
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

// over ends a row of failures.
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
