package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/process"
)

// usage holds the resources that the server and its password-hashing processes have used up to a time.
type usage struct {
	at       time.Time
	server   time.Duration // processor time
	children time.Duration // of those that run now
	ended    time.Duration // of those that have ended, in hundredths of a second
	memory   int64         // bytes resident, of all of them
	busy     time.Duration // busy time of the server's processor, with all programs, in hundredths of a second
}

func (u usage) processor() time.Duration { return u.server + u.children + u.ended }

// use reads the usage of a server.
func use(pid int) (u usage, err error) {
	u.at = time.Now()
	if u.server, err = process.Threads(pid)(); err != nil {
		return u, err
	}
	if u.busy, err = process.Busy(process.ServerCore); err != nil {
		return u, err
	}
	if u.ended, err = process.EndedChildren(pid); err != nil {
		return u, err
	}
	memory, err := process.Memory(pid)
	u.memory = memory.Now
	for _, child := range children(pid) {
		times, failed := proctime.Of(child)
		memory, alsoFailed := process.Memory(child)
		if failed == nil && alsoFailed == nil { // else it has just ended
			u.children += times.Ran
			u.memory += memory.Now
		}
	}
	return u, err
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
	others           float64 // of the server's processor, for other programs
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
	seconds := last.at.Sub(first.at).Seconds()
	s.server = (last.server - first.server).Seconds() / seconds
	s.children = (last.processor()-first.processor()).Seconds()/seconds - s.server
	s.others = max(0, (last.busy-first.busy).Seconds()/seconds-s.server-s.children)
	return s
}
