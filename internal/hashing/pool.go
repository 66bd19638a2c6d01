package hashing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/secret"
)

// Memory is about what a child takes of its own, in bytes: 19 MiB for a hash, and what the Go runtime needs.
const Memory = 24 << 20

// Options configure a [Pool]. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
	// Idle is how long a child without a task is kept. Zero means a minute.
	Idle time.Duration
	// Patience is how long a hash of our own may take, and ten times as long one of another program. Zero means
	// a second: what is not computed by then gets too little of the processors.
	Patience time.Duration

	// starved, in tests, says whether the child got too little of the processors because of this process.
	starved func() bool
	program string   // in tests: another than this one
	environ []string // in tests: added to the environment of the children
}

// Pool computes tasks in child processes: each takes one task at a time, and there are as many as there are
// tasks at once. Bounding these is up to the caller. It is safe for concurrent use.
type Pool struct {
	opts    Options
	failing failures
	late    atomic.Int32 // children that compute what has been refused

	mu      sync.Mutex
	closed  bool
	idle    []*child // that of the latest task is last
	all     map[*child]struct{}
	endings sync.WaitGroup // of all children
}

// errClosed is returned by a pool that is closed.
var errClosed = errors.New("hashing: the pool is closed")

// Open starts a first child, and returns why that cannot be: the system is not Linux, it starts no
// further processes, or does not let them lower their priority. Close the pool in the end.
func Open(opts Options) (*Pool, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Idle, opts.Patience = cmp.Or(opts.Idle, time.Minute), cmp.Or(opts.Patience, time.Second)
	if opts.program = cmp.Or(opts.program, program); opts.program == "" {
		return nil, errors.New("only Linux lowers the priority of a process as is needed")
	}
	p := &Pool{opts: opts, all: map[*child]struct{}{}}
	c, err := p.start()
	if err != nil {
		p.Close()
		return nil, err
	}
	p.put(c)
	return p, nil
}

// Compute computes a task in a child. It does not end early when a caller hangs up, so a result is never taken for
// that of another task. The error is [secret.ErrStarved] while this process uses the processors, so that the lowest
// priority gets too little of them. About any other the caller can do no more than computing the task itself.
func (p *Pool) Compute(task secret.Task) ([]byte, error) {
	if err := task.Check(); err != nil {
		return nil, err
	}
	if p.late.Load() > 0 {
		return nil, secret.ErrStarved
	}
	c, err := p.take()
	if err != nil {
		return nil, err
	}
	patience := p.opts.Patience
	if !task.Own() {
		patience *= 10
	}
	before := measureShares(c.cmd.Process.Pid)
	result, err := c.ask(task, patience)
	if errors.Is(err, errLate) && p.starved(before) {
		p.finish(c, task, patience)
		return nil, secret.ErrStarved
	}
	if err != nil {
		c.kill()
		p.failed(err)
		return nil, err
	}
	p.failing.over()
	p.put(c)
	return result, nil
}

// starved reports whether a child got too little of the processors because of this process, since before.
func (p *Pool) starved(before shares) bool {
	if p.opts.starved != nil {
		return p.opts.starved()
	}
	return measureShares(before.pid).starvedSince(before, runtime.NumCPU())
}

// finish lets a child go on with a task whose caller was refused, for as long as this process keeps it from the
// processors, and at most ten times as long as it had. To kill it would waste what it has computed, and the start of
// another one is not of the lowest priority. Nothing else is computed until it has ended: it would take as long.
func (p *Pool) finish(c *child, task secret.Task, patience time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return // which has killed it
	}
	p.endings.Add(1)
	p.late.Add(1)
	go func() {
		defer p.endings.Done()
		defer p.late.Add(-1)
		if result, err := p.lateResult(c, task, time.Now().Add(10*patience)); err != nil {
			c.kill()
			p.failed(err)
		} else {
			clear(result)
			p.put(c)
		}
	}()
}

// lateResult waits for the result of a child that was starved. One that has not answered although this process has left
// it the processors for [Options].Patience is not waited for any longer, since everybody else is refused meanwhile.
func (p *Pool) lateResult(c *child, task secret.Task, end time.Time) ([]byte, error) {
	for {
		before := measureShares(c.cmd.Process.Pid)
		result, err := c.result(task, p.opts.Patience)
		if !errors.Is(err, errLate) || !p.starved(before) || !time.Now().Before(end) {
			return result, err
		}
	}
}

// take returns a child without a task, or starts one.
func (p *Pool) take() (*child, error) {
	for c := p.pop(); c != nil; c = p.pop() {
		if c.runs() {
			return c, nil
		}
		p.failed(c.err()) // it died without a task
	}
	if err := p.failing.wait(time.Now()); err != nil {
		return nil, err
	}
	c, err := p.start()
	if err != nil {
		p.failed(err)
	}
	return c, err
}

func (p *Pool) pop() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	c.expiry.Stop()
	return c
}

// put keeps a child for the next task, for a while.
func (p *Pool) put(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.kill()
		return
	}
	p.idle = append(p.idle, c)
	c.expiry = time.AfterFunc(p.opts.Idle, func() { p.expire(c) })
}

// expire ends a child that has had no task for long. If one has just been found for it, nothing happens.
func (p *Pool) expire(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range p.idle {
		if o == c {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			c.kill()
			return
		}
	}
}

// start starts a child, which is in all until it has ended.
func (p *Pool) start() (*child, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.endings.Add(1)
	p.mu.Unlock()
	c, err := launch(p.opts.program, p.opts.environ)
	if err != nil {
		p.endings.Done()
		return nil, err
	}
	p.mu.Lock()
	p.all[c] = struct{}{}
	closed := p.closed
	p.mu.Unlock()
	greeted := make(chan struct{})
	defer close(greeted)
	go func() {
		defer p.endings.Done()
		c.reap(greeted)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.all, c)
	}()
	if closed {
		c.kill()
	}
	if err := c.greet(); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// failed counts a failure, and logs it unless another was within a minute, or the pool is closed.
func (p *Pool) failed(err error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return
	}
	if n := p.failing.add(time.Now()); n > 0 {
		p.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn, "process for passwords failed; hashing in the server meanwhile",
			slog.Any("error", err), slog.Int("failures", n))
	}
}

// Close ends all children, and returns when they have ended. Tasks under way fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed, p.idle = true, nil
	for c := range p.all {
		if c.expiry != nil {
			c.expiry.Stop()
		}
		c.kill()
	}
	p.mu.Unlock()
	p.endings.Wait()
}

// environment is that of a child: nothing but what tests need.
func environment() []string {
	env := []string{"GOMAXPROCS=1"}
	for _, name := range []string{"GORACE", "GOCOVERDIR"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
