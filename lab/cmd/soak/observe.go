package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
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
	server  *servers.Server
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
		memory, _ := process.Memory(o.server.PID())
		s := sample{rss: memory.Now}
		if found, err := o.server.Metrics(ctx); err == nil {
			s.goroutines = int(found["go_goroutines"])
			s.files = int(found["process_open_fds"])
			s.collections = int(found["go_gc_duration_seconds_count"])
			s.paused = time.Duration(found["go_gc_duration_seconds_sum"] * float64(time.Second))
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

// usage is processor time, as a number of cores after [usage.since].
type usage struct {
	at                               time.Time
	server, attackers, self, machine time.Duration
	waited                           time.Duration // by the server, for a processor
}

// readUsage reads the usage of the server and of the attackers, if their process is not 0.
func readUsage(server, attackers int) (u usage, err error) {
	u.at = time.Now()
	own, err := proctime.Of(server)
	if err != nil {
		return u, err
	}
	u.server, u.waited = own.Ran, own.Waited
	if u.self, err = process.Whole(os.Getpid())(); err != nil {
		return u, err
	}
	if attackers != 0 {
		if u.attackers, err = process.Whole(attackers)(); err != nil {
			return u, err
		}
	}
	u.machine, err = process.Busy(process.AnyCore)
	return u, err
}

// cores are numbers of cores in use.
type cores struct {
	server, waited, attackers, self float64
	others                          float64 // by other programs
}

// since returns the usage since another, as numbers of cores.
func (u usage) since(before usage) cores {
	took := u.at.Sub(before.at)
	if took <= 0 {
		return cores{}
	}
	each := func(now, then time.Duration) float64 { return float64(now-then) / float64(took) }
	c := cores{
		server: each(u.server, before.server), waited: each(u.waited, before.waited),
		attackers: each(u.attackers, before.attackers), self: each(u.self, before.self),
	}
	c.others = max(each(u.machine, before.machine)-c.server-c.attackers-c.self, 0)
	return c
}
