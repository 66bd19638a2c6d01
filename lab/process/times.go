package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Times are the totals of a process's threads since each started.
type Times struct {
	Ran    time.Duration
	Waited time.Duration // ready to run, without a processor
}

// TimesOf returns the times of a process. Threads that have ended are not included; Go programs seldom
// end one.
func TimesOf(pid int) (Times, error) {
	t, err := timesOf(os.DirFS("/proc"), strconv.Itoa(pid))
	if err != nil {
		return Times{}, fmt.Errorf("read processor time of process %d: %w", pid, err)
	}
	return t, nil
}

func timesOf(proc fs.FS, pid string) (sum Times, err error) {
	threads, err := fs.ReadDir(proc, path.Join(pid, "task"))
	if err != nil {
		return Times{}, err
	}
	read := 0
	for _, thread := range threads {
		text, err := fs.ReadFile(proc, path.Join(pid, "task", thread.Name(), "schedstat"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return Times{}, err
		}
		t, err := parseSchedstat(string(text))
		if err != nil {
			return Times{}, err
		}
		sum.Ran += t.Ran
		sum.Waited += t.Waited
		read++
	}
	if read == 0 {
		return Times{}, errors.New("no thread has a schedstat")
	}
	return sum, nil
}

// parseSchedstat reads a schedstat line: nanoseconds on a processor, nanoseconds waiting for one, and the
// number of time slices.
func parseSchedstat(schedstat string) (Times, error) {
	fields := strings.Fields(schedstat)
	if len(fields) != 3 {
		return Times{}, fmt.Errorf("unexpected text in schedstat: %q", schedstat)
	}
	ran, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Times{}, err
	}
	waited, err := strconv.ParseInt(fields[1], 10, 64)
	return Times{time.Duration(ran), time.Duration(waited)}, err
}
