// Package process runs commands in the background and reads what they use of the machine. It needs Linux.
package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The processors of a machine with two: the measured server has the first for itself, and the load generator has the other.
const (
	ServerCore    = 0
	GeneratorCore = 1
	// AnyCore pins a process to none.
	AnyCore = -1
)

// Process is a command that runs in the background.
type Process struct {
	name  string
	log   string // the file with its output
	cmd   *exec.Cmd
	ended chan struct{} // closed when the command has ended
	how   error         // how it ended
}

// Start starts a command on that processor until Stop, with its output in the file name.log in dir. The command ends
// with this program, so an interrupted measurement leaves nothing behind.
func Start(core int, dir, name string, args ...string) (*Process, error) {
	if core != AnyCore {
		args = append([]string{"taskset", "-c", strconv.Itoa(core)}, args...)
	}
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // G204: the commands of these programs; Stop ends them
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A session of its own is for Linux's autogroup: what one session gets of a processor depends on what it does on the
	// others, and the load generator never pauses on its own.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: Pdeathsig is when this thread ends
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.how = errors.Join(p.cmd.Wait(), out.Close())
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the name of the file with the output.
func (p *Process) Log() string { return p.log }

const (
	longestStart = 3 * time.Minute
	longestStop  = 30 * time.Second
)

// Await waits until the process is ready. It returns an error with the output if the process ends before.
func (p *Process) Await(ctx context.Context, ready func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, longestStart)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s ended: %w\n%s", p.name, p.how, text)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; see %s", p.name, err, p.log)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Answers is ready when the URL answers with 200.
func Answers(url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", url, res.Status)
		}
		return errors.Join(err, res.Body.Close())
	}
}

// Listens is ready when the address accepts connections.
func Listens(address string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// Stop sends SIGTERM to the process, and kills it if it does not stop in time. It returns an error if the process failed.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(longestStop):
		err := p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(fmt.Errorf("%s did not stop; see %s", p.name, p.log), err)
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM {
		return nil // it does not handle the signal
	}
	if p.how != nil {
		return fmt.Errorf("%s: %w; see %s", p.name, p.how, p.log)
	}
	return nil
}

// Run runs a command in dir until it ends, and returns its standard output. Its standard error is part of the error.
func Run(ctx context.Context, dir, input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // G204: the commands of these programs
	var stderr strings.Builder
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// FreeAddresses returns n loopback addresses without a listener.
func FreeAddresses(ctx context.Context, n int) ([]string, error) {
	found := make([]string, 0, n)
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all are closed at the end, so that no address is returned twice
		found = append(found, l.Addr().String())
	}
	return found, nil
}

// Main runs a command until it ends or is interrupted. If it fails, the program exits with status 1.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT) //nolint:forbidigo // the context of the program
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// InDir runs do with a new directory for data and logs, and removes the directory unless do fails.
func InDir(name string, do func(dir string) error) error {
	dir, err := os.MkdirTemp("", name+"-*")
	if err != nil {
		return err
	}
	fmt.Println("data and logs are in", dir, "until this ends without an error")
	if err := do(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
