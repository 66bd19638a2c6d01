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

// exitFailed is the exit status of a child that got something else than tasks.
const exitFailed = 1

// IsChild reports whether these are the arguments, with the name of the program, of a child.
func IsChild(args []string) bool { return len(args) == 2 && args[1] == Argument }

// Child computes tasks until the standard input ends, and returns the exit status. It logs nothing.
func Child() (status int) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	debug.SetGCPercent(-1) // there is garbage after a task only, and it is collected there
	if err := prepare(); err != nil {
		_, _ = os.Stdout.Write(appendFrame(nil, []byte(err.Error())))
		return exitFailed
	}
	if err := compute(os.Stdin, os.Stdout); err != nil {
		return exitFailed
	}
	return 0
}

// compute says that it is ready, and answers tasks until there are no more, or one that is none.
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

// collect collects the garbage of a task, whose memory is used by the next one. That of larger tasks is returned to
// the system.
func collect(task secret.Task) {
	if task.Own() {
		runtime.GC()
		return
	}
	debug.FreeOSMemory()
}
