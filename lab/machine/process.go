package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The processors of a machine with two: what is measured has the first for itself, and who asks it has the other.
const (
	ServerCore    = 0
	GeneratorCore = 1
	// AnyCore pins a process to none.
	AnyCore = -1
)

// Process is a server in the background.
type Process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when it has
	how   error
}

// patience is how long a process may take to listen and to stop.
const patience = 30 * time.Second

// Start runs a command on that processor until Stop, and waits until it accepts connections at the address. What it
// prints goes into a file in dir.
func Start(ctx context.Context, core int, dir, address string, args ...string) (*Process, error) {
	if core != AnyCore {
		args = append([]string{"taskset", "-c", strconv.Itoa(core)}, args...)
	}
	out, err := os.CreateTemp(dir, "output-*.log")
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(args[0], args[1:]...), log: out.Name(), ended: make(chan struct{})} //nolint:gosec,noctx // G204: what a benchmark runs; Stop ends it
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// An interrupted benchmark leaves nothing behind. A session of its own is for Linux's autogroup: what one session gets of a
	// processor depends on what it does on the others, and the load generator never pauses on its own.
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
		return nil, errors.Join(fmt.Errorf("start %s: %w", args[0], err), out.Close())
	}
	if err := p.await(ctx, address); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Process) await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s ended: %w\n%s", filepath.Base(p.cmd.Path), p.how, text)
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w; see %s", filepath.Base(p.cmd.Path), err, p.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the process. How it ends is not looked at.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		err := p.cmd.Process.Kill()
		<-p.ended
		return err
	}
}

// FreeAddress returns a loopback address without a listener.
func FreeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Redis starts a Redis that stores nothing, and returns its address.
func Redis(ctx context.Context, core int, dir string) (*Process, string, error) {
	address, err := FreeAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	_, port, _ := net.SplitHostPort(address)
	p, err := Start(ctx, core, dir, address, "redis-server",
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	return p, address, err
}
