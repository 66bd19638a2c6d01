package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a command that runs in the background.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string // the file with its output
	done chan error
}

// startProcess starts a command, with its output in the file name.log in dir.
func startProcess(dir, name string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan error, 1)}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // G204: the commands of this package; they are stopped by SIGTERM
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}
	go func() { p.done <- errors.Join(p.cmd.Wait(), out.Close()) }()
	return p, nil
}

// processTimeout is how long a process may take to start or to stop.
const processTimeout = 30 * time.Second

// await waits until the URL answers with 200. The process ending is an error.
func (p *process) await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
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
		case <-time.After(50 * time.Millisecond):
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

// stop sends SIGTERM to the process, and kills it if it does not stop in time.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-p.done:
		return p.ended(err)
	case <-time.After(processTimeout):
		return errors.Join(fmt.Errorf("%s did not stop", p.name), p.cmd.Process.Kill(), p.ended(<-p.done))
	}
}

func (p *process) ended(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w; see %s", p.name, err, p.log)
	}
	return nil
}

// freeAddresses returns n loopback addresses without a listener.
func freeAddresses(ctx context.Context, n int) ([]string, error) {
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
