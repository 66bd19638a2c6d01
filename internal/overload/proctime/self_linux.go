// Package proctime returns the processor time of this process. It needs Linux.
package proctime

import (
	"fmt"
	"syscall"
	"time"
)

// Self returns the processor time of this process, including threads that have ended, without its
// children.
func Self() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read own processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
