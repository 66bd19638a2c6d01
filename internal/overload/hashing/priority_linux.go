package hashing

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// program is this program, even if its file was replaced by a newer one.
const program = "/proc/self/exe"

const (
	lowest      = 19
	lowestOfAll = 20 - lowest // as returned by the system call
)

// attributes put a child in a process group of its own, so it gets no signals from a terminal.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// prepare gives this process the lowest priority, and keeps other processes of the user from
// reading its memory.
func prepare() error {
	if err := lower(); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // a filter of system calls may forbid this
	return nil
}

// lower gives all threads the lowest priority. A new thread inherits the priority of the thread
// that starts it, so lower is done once it finds no thread with another priority.
func lower() error {
	for range 100 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		others := 0
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if now, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && now == lowestOfAll {
				continue
			}
			others++
			if err := unix.Setpriority(unix.PRIO_PROCESS, id, lowest); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if others == 0 {
			return nil
		}
	}
	return errors.New("the priority was reset")
}
