// Package machine starts the processes that are measured, on processors of their own, and reads what they use.
// It needs Linux.
package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/overload/proctime"
)

// errProc is returned for a text that is not what Linux has there.
var errProc = errors.New("unexpected text in /proc")

// Reader reads the processor time that a process has used by now.
type Reader func() (time.Duration, error)

// Threads returns the reader of a process that ends no thread. It counts in nanoseconds.
func Threads(pid int) Reader {
	return func() (time.Duration, error) {
		times, err := proctime.Of(pid)
		return times.Ran, err
	}
}

// Hundredth is the unit of times in /proc/stat and /proc/PID/stat.
const Hundredth = 10 * time.Millisecond

// Where the processor time is in /proc/PID/stat after the name of the program: user time, followed by system time.
const (
	ownTimes   = 11
	endedTimes = 13 // of children that have ended and were waited for
)

// Whole returns the reader of a process that may end threads. It counts in hundredths of a second.
func Whole(pid int) Reader {
	return func() (time.Duration, error) { return stat(pid, ownTimes) }
}

// EndedChildren returns the processor time of the children of a process that have ended and were waited for. It counts
// in hundredths of a second.
func EndedChildren(pid int) (time.Duration, error) { return stat(pid, endedTimes) }

// stat returns the sum of the times in that field of /proc/PID/stat and the next.
func stat(pid, field int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name of the program is in parentheses
	fields := strings.Fields(rest)
	if len(fields) <= field+1 {
		return 0, fmt.Errorf("%w: %q", errProc, text)
	}
	user, err := strconv.ParseInt(fields[field], 10, 64)
	system, also := strconv.ParseInt(fields[field+1], 10, 64)
	return time.Duration(user+system) * Hundredth, errors.Join(err, also)
}
