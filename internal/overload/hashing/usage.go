package hashing

import (
	"time"

	"oauth-server/internal/overload/proctime"
)

// usage is the processor time of this process up to a moment.
type usage struct {
	at    time.Time
	used  time.Duration
	known bool // the system reports it
}

func measureUsage() usage {
	used, err := proctime.Self()
	return usage{at: time.Now(), used: used, known: err == nil}
}

// busySince reports whether this process has used at least half of the processors. A child of the
// lowest priority then gets little time. If other programs use them, this process is not overloaded.
func (u usage) busySince(before usage, processors int) bool {
	return u.known && before.known && 2*(u.used-before.used) >= u.at.Sub(before.at)*time.Duration(processors)
}
