package hashing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"oauth-server/internal/secret"
)

// startWithin is how long a child may take to send its greeting.
const startWithin = 5 * time.Second

// errLate is wrapped by the error of a child that did not answer in time.
var errLate = errors.New("hashing: no answer from the process")

// errResult is returned for an answer of a child that is not a result of its task.
var errResult = errors.New("hashing: invalid answer from the process")

// child is a process that computes tasks.
type child struct {
	cmd    *exec.Cmd
	in     *os.File      // the child's input
	out    *os.File      // the child's output
	buf    []byte        // for its answers
	ended  chan struct{} // closed when it has ended
	why    error         // read after ended
	expiry *time.Timer   // runs while it is idle

	greeted chan struct{} // closed when its greeting was read, or did not come
}

// launch starts a child.
func launch(program string, environ []string) (*child, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("hashing: start process: %w", err)
	}
	defer func() { _ = theirIn.Close() }()
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hashing: start process: %w", err), in.Close())
	}
	defer func() { _ = theirOut.Close() }()
	cmd := exec.CommandContext(context.Background(), program, Argument) //nolint:forbidigo // the process ends with the pool
	cmd.Stdin, cmd.Stdout, cmd.SysProcAttr = theirIn, theirOut, attributes()
	cmd.Env = append(environment(), environ...)
	cmd.Args[0] = "oauth-server"
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("hashing: start process: %w", err), in.Close(), out.Close())
	}
	return &child{cmd: cmd, in: in, out: out, buf: make([]byte, maxFrame), ended: make(chan struct{}), greeted: make(chan struct{})}, nil
}

// reap waits for the end of the child and closes its pipes, but not before its greeting was read: a
// child that cannot work sends the reason and ends.
func (c *child) reap() {
	c.why = fmt.Errorf("hashing: process ended: %w", cmpErr(c.cmd.Wait(), errors.New("exit status 0")))
	close(c.ended)
	<-c.greeted
	_, _ = c.in.Close(), c.out.Close()
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// greet waits until the child is ready. The error may be the reason that the child sends.
func (c *child) greet() error {
	defer close(c.greeted)
	said, err := c.answer(startWithin)
	switch {
	case err != nil:
		return fmt.Errorf("hashing: start process: %w", err)
	case string(said) != ready:
		return errors.New("hashing: start process: it answered " + strconv.QuoteToASCII(string(said[:min(len(said), 200)])))
	default:
		return nil
	}
}

// ask makes the child compute a task. After an error the child must not be asked again.
func (c *child) ask(task secret.Task, patience time.Duration) ([]byte, error) {
	request := appendTask(make([]byte, 0, frameHeader+taskHeader+len(task.Salt)+len(task.Foreign)+len(task.Password)), task)
	_, err := c.in.Write(request) // a pipe has room for the whole request
	clear(request)
	if err != nil {
		return nil, c.cause(err)
	}
	return c.result(task, patience)
}

// result waits for the result of the child's current task.
func (c *child) result(task secret.Task, patience time.Duration) ([]byte, error) {
	result, err := c.answer(patience)
	if err != nil {
		return nil, err
	}
	defer clear(result)
	if !task.Fits(result) {
		return nil, errResult
	}
	return append([]byte(nil), result...), nil
}

// answer reads a frame from the child. The frame is valid until the next one.
func (c *child) answer(within time.Duration) ([]byte, error) {
	if err := c.out.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, c.cause(err)
	}
	body, err := readFrame(c.out, c.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("%w within %s", errLate, within)
	}
	if err != nil {
		return nil, c.cause(err)
	}
	return body, nil
}

// cause returns why the child has ended, if that caused the error.
func (c *child) cause(err error) error {
	if errors.Is(err, errFrame) {
		return err
	}
	c.kill() // it may only have closed its pipes
	<-c.ended
	return c.err()
}

// runs reports whether the child has not ended.
func (c *child) runs() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// err returns why the child has ended. Call it only after the end.
func (c *child) err() error {
	<-c.ended
	return c.why
}

// kill ends the child at once. The child has nothing to clean up.
func (c *child) kill() { _ = c.cmd.Process.Kill() }
