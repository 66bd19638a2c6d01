package hashing

import (
	"time"

	"oauth-server/internal/proctime"
)

// shares are what a child and this process have had of the processors by a time.
type shares struct {
	pid    int // of the child
	at     time.Time
	waited time.Duration // the child, for a processor
	used   time.Duration // this process
	known  bool          // the system says it
}

func measureShares(pid int) shares {
	child, err := proctime.Of(pid)
	used, selfErr := proctime.Self()
	return shares{pid: pid, at: time.Now(), waited: child.Waited, used: used, known: err == nil && selfErr == nil}
}

// starvedSince reports whether the child could have run for most of the time and was not given a processor, and this
// process used at least half of the processors meanwhile. A child that hangs does not wait for a processor, and one that computes
// for ever has one. Where other programs use the processors, this process is not overloaded.
func (s shares) starvedSince(before shares, processors int) bool {
	if !s.known || !before.known {
		return false
	}
	elapsed := s.at.Sub(before.at)
	return 2*(s.waited-before.waited) >= elapsed && 2*(s.used-before.used) >= elapsed*time.Duration(processors)
}
