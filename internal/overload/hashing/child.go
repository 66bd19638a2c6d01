package hashing

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"oauth-server/internal/secret"
)

// Argument is the only argument of a child.
const Argument = "hash-passwords-for-the-server"

// exitFailed is the exit status of a child that received invalid input.
const exitFailed = 1

// IsChild reports whether the arguments, including the program name, start a child.
func IsChild(args []string) bool { return len(args) == 2 && args[1] == Argument }

// Child computes tasks until the standard input ends, and returns the exit status. It logs nothing.
func Child() (status int) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	debug.SetGCPercent(-1) // garbage exists only after a task, and is collected then
	if err := prepare(); err != nil {
		_, _ = os.Stdout.Write(appendFrame(nil, []byte(err.Error())))
		return exitFailed
	}
	if err := compute(os.Stdin, os.Stdout); err != nil {
		return exitFailed
	}
	return 0
}

// compute sends the greeting, and then answers tasks until the input ends or is not a task.
func compute(in io.Reader, out io.Writer) error {
	if _, err := out.Write(appendFrame(nil, []byte(ready))); err != nil {
		return err
	}
	for buf := make([]byte, maxFrame); ; {
		body, err := readFrame(in, buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		task, err := parseTask(body)
		clear(body)
		if err != nil {
			return err
		}
		if _, err := out.Write(appendFrame(nil, task.Do())); err != nil {
			return err
		}
		collect(task)
	}
}

// collect collects the garbage of a task, so that the next task reuses its memory. It returns the
// memory of larger tasks to the system.
func collect(task secret.Task) {
	if task.Own() {
		runtime.GC()
		return
	}
	debug.FreeOSMemory()
}
