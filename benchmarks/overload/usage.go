package overload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/proctime"
)

// usage is what the server and the processes that hash passwords for it have used by a time.
type usage struct {
	at       time.Time
	server   time.Duration // processor time
	children time.Duration // of those that run now
	ended    time.Duration // of those that have ended, in hundredths of a second
	memory   int64         // bytes resident, of all of them
}

func (u usage) processor() time.Duration { return u.server + u.children + u.ended }

// use reads the usage of a server.
func use(pid int) (u usage, err error) {
	u.at = time.Now()
	times, err := proctime.Of(pid)
	if err != nil {
		return u, err
	}
	u.server = times.Ran
	if u.ended, err = endedChildren(pid); err != nil {
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

// endedChildren returns the processor time of the children that have ended and were waited for.
func endedChildren(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	const user, system = 13, 14
	fields := strings.Fields(rest)
	if len(fields) <= system {
		return 0, fmt.Errorf("unexpected text in /proc/%d/stat: %q", pid, text)
	}
	u, err := strconv.ParseInt(fields[user], 10, 64)
	s, also := strconv.ParseInt(fields[system], 10, 64)
	return time.Duration(u+s) * 10 * time.Millisecond, errors.Join(err, also)
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

// between returns what was used from one time to another, by the samples next to them.
func between(all []usage, from, to time.Time) (server, children time.Duration, seconds float64) {
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
		return 0, 0, 0
	}
	server = last.server - first.server
	return server, last.processor() - first.processor() - server, last.at.Sub(first.at).Seconds()
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
