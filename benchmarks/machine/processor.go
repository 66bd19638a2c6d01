// Package machine starts the processes that are measured, on processors of their own, and reads what they use.
// It needs Linux.
package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errProc is returned for a text that is not what Linux has there.
var errProc = errors.New("unexpected text in /proc")

// Processor returns the processor time that a process has used: that of its threads, in nanoseconds, because
// /proc/PID/stat counts in hundredths of a second. The processes measured here do not end threads.
func Processor(pid int) (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("%w: no threads of %d", errProc, pid)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread) //nolint:gosec // G304: below /proc
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %q", errProc, text)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// Reader reads the processor time that a process has used by now.
type Reader func() (time.Duration, error)

// Threads returns the reader of a process that ends no thread. It counts in nanoseconds.
func Threads(pid int) Reader { return func() (time.Duration, error) { return Processor(pid) } }

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

// Self returns the processor time of this process.
func Self() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
