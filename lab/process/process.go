// Package process runs commands in the background, for the programs that start servers on
// this machine.
package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Process is a command that runs in the background.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string // the file with its output
	done chan error
}

// Start starts a command, with its output in the file name.log in dir. Env is added to the
// environment of this process.
func Start(dir, name string, env []string, args ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan error, 1)}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // G204: the commands of these tools; they are stopped by SIGTERM
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}
	go func() { p.done <- errors.Join(p.cmd.Wait(), out.Close()) }()
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the name of the file with the output.
func (p *Process) Log() string { return p.log }

// timeout is how long a process may take to start or to stop.
const timeout = 30 * time.Second

// Await waits until the URL answers with 200. The process ending is an error.
func (p *Process) Await(ctx context.Context, url string) error {
	return p.AwaitWithin(ctx, url, timeout)
}

// AwaitWithin is [Process.Await] for a process that may take so long to start.
func (p *Process) AwaitWithin(ctx context.Context, url string, longest time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for {
		err := answers(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case ended := <-p.done:
			p.done <- ended
			return fmt.Errorf("%s ended: %w; see %s", p.name, ended, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; see %s", p.name, err, p.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}

// Stop sends SIGTERM to the process, and kills it if it does not stop in time.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-p.done:
		return p.ended(err)
	case <-time.After(timeout):
		return errors.Join(fmt.Errorf("%s did not stop", p.name), p.cmd.Process.Kill(), p.ended(<-p.done))
	}
}

func (p *Process) ended(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w; see %s", p.name, err, p.log)
	}
	return nil
}

// Execute runs a command in dir until it ends. Its output is part of the error.
func Execute(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // G204: the commands of these tools
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args[:2], " "), err, out)
	}
	return nil
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
