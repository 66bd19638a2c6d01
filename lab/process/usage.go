package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/overload/proctime"
)

// errProc is returned for a text that is not what Linux has there.
var errProc = errors.New("unexpected text in /proc")

// Reader reads the processor time that a process has used so far.
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

// Busy returns how long a processor was busy, or all of the machine with AnyCore. Time that the hypervisor took is not
// part of it. It counts in hundredths of a second.
func Busy(core int) (busy time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	name := "cpu "
	if core != AnyCore {
		name = fmt.Sprintf("cpu%d ", core)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			return busyOf(strings.Fields(rest))
		}
	}
	return 0, fmt.Errorf("%w: no %s", errProc, name)
}

// busyOf sums up the times user, nice, system, irq and softirq. User time has that of guests in it.
func busyOf(fields []string) (busy time.Duration, err error) {
	for _, i := range []int{0, 1, 2, 5, 6} {
		if i >= len(fields) {
			return 0, fmt.Errorf("%w: %q", errProc, fields)
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %q", errProc, fields)
		}
		busy += time.Duration(n) * Hundredth
	}
	return busy, nil
}

// Resident is the resident memory of a process, in bytes.
type Resident struct {
	Peak, Now int64
	File      int64 // of Now, mapped from files
}

// Own returns the memory that does not come from files.
func (r Resident) Own() int64 { return r.Now - r.File }

// Memory returns the resident memory of a process.
func Memory(pid int) (Resident, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return residentOf(string(text)), err
}

func residentOf(status string) Resident {
	kib := func(name string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSuffix(field(status, name), " kB"), 10, 64)
		return n << 10
	}
	return Resident{Peak: kib("VmHWM"), Now: kib("VmRSS"), File: kib("RssFile") + kib("RssShmem")}
}

// field returns the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Machine describes the machine: processors, kernel, Go version, memory.
func Machine() string {
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	memory, _ := os.ReadFile("/proc/meminfo")
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field(string(memory), "MemTotal"), " kB"), 10, 64)
	processors := strings.Count(string(cpus), "model name\t: ") // also those that this process may not use
	return fmt.Sprintf("%d × %s, %d GiB of memory, Linux %s, %s",
		processors, field(string(cpus), "model name"), (kib+1<<19)>>20, version, runtime.Version())
}

// LoadAverage returns the load average of the last minute.
func LoadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
