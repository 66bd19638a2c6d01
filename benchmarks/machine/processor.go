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

	"oauth-server/internal/proctime"
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

// Whole returns the reader of a process that may end threads. It counts in hundredths of a second.
func Whole(pid int) Reader {
	return func() (time.Duration, error) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the name of the program is in parentheses
		const user, system = 11, 12
		fields := strings.Fields(rest)
		if len(fields) <= system {
			return 0, fmt.Errorf("%w: %q", errProc, text)
		}
		u, err := strconv.ParseInt(fields[user], 10, 64)
		s, also := strconv.ParseInt(fields[system], 10, 64)
		return time.Duration(u+s) * 10 * time.Millisecond, errors.Join(err, also)
	}
}
