package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// sample is the state of the server at one time. A figure that could not be read is 0.
type sample struct {
	rss               int64 // bytes
	goroutines, files int
	collections       int           // garbage collections since the start
	paused            time.Duration // by them, since the start
}

// observer samples the server, and the machine's timers, by phase.
type observer struct {
	phase   *atomic.Int32
	pid     int
	metrics string // URL
	dir     string // on the disk of the embedded store
	samples map[int][]sample
	late    map[int][]time.Duration
	syncs   map[int][]time.Duration
}

// sample takes a sample every second until ctx ends.
func (o *observer) sample(ctx context.Context) {
	o.samples = map[int][]sample{}
	for due := time.Now().Add(time.Second / 2); sleepUntil(ctx, due); due = due.Add(time.Second) {
		phase := int(o.phase.Load())
		s := sample{rss: residentBytes(o.pid)}
		if text, err := get(ctx, o.metrics); err == nil {
			s.goroutines = int(metric(text, "go_goroutines"))
			s.files = int(metric(text, "process_open_fds"))
			s.collections = int(metric(text, "go_gc_duration_seconds_count"))
			s.paused = time.Duration(metric(text, "go_gc_duration_seconds_sum") * float64(time.Second))
		}
		o.samples[phase] = append(o.samples[phase], s)
	}
}

// timerInterval is long enough for the timers to cost nothing.
const timerInterval = 20 * time.Millisecond

// timers records how late timers fire until ctx ends. Without load that is below a millisecond.
// What delays them delays the measured requests as well, through no fault of the server.
func (o *observer) timers(ctx context.Context) {
	o.late = map[int][]time.Duration{}
	for {
		due := time.Now().Add(timerInterval)
		if !sleepUntil(ctx, due) {
			return
		}
		phase := int(o.phase.Load())
		o.late[phase] = append(o.late[phase], time.Since(due))
	}
}

// syncInterval is long enough not to load the disk.
const syncInterval = 200 * time.Millisecond

// disk records how long it takes to write a page to a file and sync it, as the embedded store does
// for a refresh, until ctx ends. It returns early if the file cannot be written.
func (o *observer) disk(ctx context.Context) {
	o.syncs = map[int][]time.Duration{}
	file, err := os.Create(filepath.Join(o.dir, "probe"))
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	page := make([]byte, 4096)
	for due := time.Now(); sleepUntil(ctx, due); due = due.Add(syncInterval) {
		phase := int(o.phase.Load())
		from := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil {
			return
		}
		if err := file.Sync(); err != nil {
			return
		}
		o.syncs[phase] = append(o.syncs[phase], time.Since(from))
	}
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.ReadAll(res.Body)
}

// metric returns the value of a metric without labels in the text format of Prometheus, or 0.
func metric(text []byte, name string) float64 {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0
			}
			return f
		}
	}
	return 0
}

// residentBytes returns the resident memory of a process, or 0.
func residentBytes(pid int) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return resident(string(raw))
}

// resident returns the value of VmRSS, in bytes, in the text of /proc/PID/status.
func resident(status string) int64 {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// ticksPerSecond is USER_HZ, the unit of times in /proc; Linux has it fixed for programs.
const ticksPerSecond = 100

var errProc = errors.New("unexpected text in /proc")

// processSeconds returns the processor time that a process has used.
func processSeconds(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return processTicks(string(raw))
}

// processTicks returns utime and stime, in seconds, of a line as in /proc/PID/stat. They are fields
// 14 and 15; field 2, the name, is in parentheses and may contain anything.
func processTicks(line string) (float64, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 13 {
		return 0, errProc
	}
	return ticks(fields[11], fields[12])
}

// machineSeconds returns the processor time that all of the machine has used.
func machineSeconds() (float64, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return machineTicks(line)
}

// machineTicks returns the time, in seconds, of the first line of /proc/stat, without idle, iowait
// and the time of guests, which user time includes.
func machineTicks(line string) (float64, error) {
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, errProc
	}
	return ticks(fields[1], fields[2], fields[3], fields[6], fields[7], fields[8])
}

func ticks(fields ...string) (sum float64, err error) {
	for _, field := range fields {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, errProc
		}
		sum += float64(n)
	}
	return sum / ticksPerSecond, nil
}
