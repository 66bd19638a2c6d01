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
	log  string // file of its output
	done chan error
}

// startProcess runs a command, with its output in a file of dir.
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

// patience is how long a process may take to come up or to go.
const patience = 30 * time.Second

// await waits until the address answers with 200.
func (p *process) await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// stop asks the process to end, and makes it if it does not.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-p.done:
		return p.ended(err)
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not stop", p.name), p.cmd.Process.Kill(), p.ended(<-p.done))
	}
}

func (p *process) ended(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w; see %s", p.name, err, p.log)
	}
	return nil
}

// freeAddresses returns loopback addresses that nobody listens on now.
func freeAddresses(ctx context.Context, n int) ([]string, error) {
	found := make([]string, 0, n)
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at the end, so that none is found twice
		found = append(found, l.Addr().String())
	}
	return found, nil
}
