package hashing

import (
	"time"

	"oauth-server/internal/overload/proctime"
)

// shares are the processor times of a child and of this process up to a moment.
type shares struct {
	pid    int // of the child
	at     time.Time
	waited time.Duration // how long the child waited for a processor
	used   time.Duration // by this process
	known  bool          // the system reports them
}

func measureShares(pid int) shares {
	child, err := proctime.Of(pid)
	used, selfErr := proctime.Self()
	return shares{pid: pid, at: time.Now(), waited: child.Waited, used: used, known: err == nil && selfErr == nil}
}

// starvedSince reports whether the child was ready to run for most of the time but got no
// processor, while this process used at least half of the processors. A child that hangs does not
// wait for a processor, and one that computes forever has one. If other programs use the
// processors, this process is not overloaded.
func (s shares) starvedSince(before shares, processors int) bool {
	if !s.known || !before.known {
		return false
	}
	elapsed := s.at.Sub(before.at)
	return 2*(s.waited-before.waited) >= elapsed && 2*(s.used-before.used) >= elapsed*time.Duration(processors)
}
