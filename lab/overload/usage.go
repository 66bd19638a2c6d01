package overload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/machine"
)

// usage holds the resources that the server and its password-hashing processes have used up to a time.
type usage struct {
	at       time.Time
	server   time.Duration // processor time
	children time.Duration // of those that run now
	ended    time.Duration // of those that have ended, in hundredths of a second
	waited   time.Duration // of threads of the server that could run and had no processor
	memory   int64         // bytes resident, of all of them
	busy     time.Duration // busy time of the server's processor, with all programs, in hundredths of a second
	stolen   time.Duration // time the hypervisor took from the server's processor, in hundredths of a second
}

func (u usage) processor() time.Duration { return u.server + u.children + u.ended }

// use reads the usage of a server.
func use(pid int) (u usage, err error) {
	u.at = time.Now()
	times, err := proctime.Of(pid)
	if err != nil {
		return u, err
	}
	u.server, u.waited = times.Ran, times.Waited
	if u.busy, u.stolen, err = processor(machine.ServerCore); err != nil {
		return u, err
	}
	if u.ended, err = machine.EndedChildren(pid); err != nil {
		return u, err
	}
	all := []int{pid}
	for _, child := range children(pid) {
		if times, err := proctime.Of(child); err == nil { // else it has just ended
			u.children += times.Ran
			all = append(all, child)
		}
	}
	for _, p := range all {
		u.memory += resident(p)
	}
	return u, nil
}

// processor returns how long a processor was busy, and how long the hypervisor took it.
func processor(core int) (busy, stolen time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	_, rest, found := strings.Cut(string(text), fmt.Sprintf("\ncpu%d ", core))
	line, _, _ := strings.Cut(rest, "\n")
	const idle, wait, steal = 3, 4, 7
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case i == steal:
			stolen = time.Duration(n) * machine.Hundredth
		case i < steal && i != idle && i != wait:
			busy += time.Duration(n) * machine.Hundredth
		}
	}
	if !found {
		err = fmt.Errorf("there is no processor %d in /proc/stat", core)
	}
	return busy, stolen, err
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

func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// sample reads the usage ten times a second until the context ends.
func sample(ctx context.Context, pid int) (all []usage) {
	ticks := time.NewTicker(time.Second / 10)
	defer ticks.Stop()
	for {
		if u, err := use(pid); err == nil {
			all = append(all, u)
		}
		select {
		case <-ctx.Done():
			return all
		case <-ticks.C:
		}
	}
}

// shares holds the usage in an interval, as fractions of one processor.
type shares struct {
	server, children float64
	waited           float64 // threads of the server, together
	others, stolen   float64 // of the server's processor, for other programs and for the hypervisor
	seconds          float64 // between the samples; 0 without samples
}

// between returns the usage in [from, to], from the first and last samples in that interval.
func between(all []usage, from, to time.Time) (s shares) {
	var first, last *usage
	for i := range all {
		if first == nil && !all[i].at.Before(from) {
			first = &all[i]
		}
		if !all[i].at.After(to) {
			last = &all[i]
		}
	}
	if first == nil || last == nil || !last.at.After(first.at) {
		return shares{}
	}
	s.seconds = last.at.Sub(first.at).Seconds()
	s.server = (last.server - first.server).Seconds() / s.seconds
	s.children = (last.processor()-first.processor()).Seconds()/s.seconds - s.server
	s.waited = (last.waited - first.waited).Seconds() / s.seconds
	s.stolen = (last.stolen - first.stolen).Seconds() / s.seconds
	s.others = max(0, (last.busy-first.busy).Seconds()/s.seconds-s.server-s.children)
	return s
}

// peak returns the most memory from one time to another.
func peak(all []usage, from, to time.Time) (most int64) {
	for _, u := range all {
		if !u.at.Before(from) && !u.at.After(to) {
			most = max(most, u.memory)
		}
	}
	return most
}
