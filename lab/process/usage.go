package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Busy returns how long a processor was busy, or all of the machine with AnyCore, in hundredths of a second. Time that the
// hypervisor took is not part of it. The time of guests is part of the user time.
func Busy(core int) (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	all, err := fs.Stat()
	if err != nil {
		return 0, err
	}
	c := all.CPUTotal
	if core != AnyCore {
		c = all.CPU[int64(core)]
	}
	return seconds(c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ), nil
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
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Resident{}, err
	}
	s, err := p.NewStatus()
	return Resident{Peak: int64(s.VmHWM), Now: int64(s.VmRSS), File: int64(s.RssFile + s.RssShmem)}, err //nolint:gosec // G115: bytes of memory
}

// Written returns the bytes that a process made the kernel write to a disk.
func Written(pid int) (float64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	io, err := p.IO()
	return float64(io.WriteBytes), err
}

// Machine describes the machine: processors, kernel, Go version, memory. What cannot be read is left out.
func Machine() string {
	fs, _ := procfs.NewDefaultFS()
	processors, _ := fs.CPUInfo() // also those that this process may not use
	memory, _ := fs.Meminfo()
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	model, kib := "", uint64(0)
	if len(processors) > 0 {
		model = processors[0].ModelName
	}
	if memory.MemTotal != nil {
		kib = *memory.MemTotal
	}
	return fmt.Sprintf("%d × %s, %d GiB of memory, Linux %s, %s", len(processors), model, (kib+1<<19)>>20, version, runtime.Version())
}

// LoadAverage returns the load average of the last minute.
func LoadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// Usage is what a process and its children have used up to a time.
type Usage struct {
	At          time.Time
	Ran, Waited time.Duration // of the process: processor time, and how long it waited for a processor
	Children    time.Duration // processor time of the children that run
	Ended       time.Duration // of those that have ended, in hundredths of a second
	Memory      int64         // bytes resident, of the process
	ChildMemory int64         // of its children
	Busy        time.Duration // of the processor, with all programs, in hundredths of a second
}

func (u *Usage) processor() time.Duration { return u.Ran + u.Children + u.Ended }

// UsageOf returns the usage of a process that runs on that processor.
func UsageOf(pid, core int) (u Usage, err error) {
	u.At = time.Now()
	own, err := TimesOf(pid)
	if err != nil {
		return u, err
	}
	u.Ran, u.Waited = own.Ran, own.Waited
	p, err := procfs.NewProc(pid)
	if err != nil {
		return u, err
	}
	stat, err := p.Stat()
	if err != nil {
		return u, err
	}
	u.Ended = seconds(float64(stat.CUTime+stat.CSTime) / 100)
	memory, err := Memory(pid)
	u.Memory = memory.Now
	for _, child := range children(pid) {
		times, failed := TimesOf(child)
		memory, alsoFailed := Memory(child)
		if failed == nil && alsoFailed == nil { // else it has just ended
			u.Children += times.Ran
			u.ChildMemory += memory.Now
		}
	}
	busy, failed := Busy(core)
	u.Busy = busy
	return u, errors.Join(err, failed)
}

// children returns the children of a process.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) //nolint:gosec // G304: a file of /proc
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// Sample reads the usage of a process at an interval, until the context ends.
func Sample(ctx context.Context, pid, core int, every time.Duration) (all []Usage) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		if u, err := UsageOf(pid, core); err == nil {
			all = append(all, u)
		}
		select {
		case <-ctx.Done():
			return all
		case <-ticks.C:
		}
	}
}

// Shares is the usage in an interval, in processors.
type Shares struct {
	Process, Waited, Children float64
	Others                    float64 // of the processor, for other programs
}

// Between returns the usage in [from, to], from the first and last samples in that interval.
func Between(all []Usage, from, to time.Time) (s Shares) {
	var first, last *Usage
	for i := range all {
		if first == nil && !all[i].At.Before(from) {
			first = &all[i]
		}
		if !all[i].At.After(to) {
			last = &all[i]
		}
	}
	if first == nil || last == nil || !last.At.After(first.At) {
		return Shares{}
	}
	took := last.At.Sub(first.At)
	share := func(d time.Duration) float64 { return d.Seconds() / took.Seconds() }
	s.Process, s.Waited = share(last.Ran-first.Ran), share(last.Waited-first.Waited)
	s.Children = share(last.processor()-first.processor()) - s.Process
	s.Others = max(0, share(last.Busy-first.Busy)-s.Process-s.Children)
	return s
}
