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

// Memory is roughly the memory of a child, in bytes: 19 MiB for a hash, and the Go runtime.
const Memory = 24 << 20

// Options configure a [Pool]. The zero value is usable.
type Options struct {
	Logger *slog.Logger // nil: no log
	// Idle is how long a child without a task is kept. Zero means a minute.
	Idle time.Duration
	// Patience is how long one of our own hashes may take. A hash of another program may take ten
	// times as long. Zero means a second. A hash that takes longer gets too little processor time.
	Patience time.Duration

	// busy, in tests, reports whether this process keeps the processors busy.
	busy    func() bool
	program string   // in tests: a program other than this one
	environ []string // in tests: added to the environment of the children
}

// Pool computes tasks in child processes. Each child takes one task at a time, and there are as
// many children as concurrent tasks. The caller must bound them. A Pool is safe for concurrent use.
type Pool struct {
	opts    Options
	failing failures
	late    atomic.Int32 // children that still compute a refused task

	mu      sync.Mutex
	closed  bool
	idle    []*child // the child of the latest task is last
	all     map[*child]struct{}
	endings sync.WaitGroup // of all children
}

// errClosed is returned by a closed pool.
var errClosed = errors.New("hashing: the pool is closed")

// Open starts a first child. It returns an error if that is not possible: the system is not Linux,
// starts no further processes, or does not let them lower their priority. Close the pool at the
// end.
func Open(opts Options) (*Pool, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Idle, opts.Patience = cmp.Or(opts.Idle, time.Minute), cmp.Or(opts.Patience, time.Second)
	if opts.program = cmp.Or(opts.program, program); opts.program == "" {
		return nil, errors.New("low-priority processes need Linux")
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

// Compute computes a task in a child. It does not end early when a caller hangs up, so a result is
// never mistaken for the result of another task. The error is [secret.ErrStarved] while this
// process keeps the processors busy and the child does not answer in time. After any other error
// the caller can only compute the task itself.
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
	before := measureUsage()
	result, err := c.ask(task, patience)
	if errors.Is(err, errLate) && p.busySince(before) {
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

// busySince reports whether this process has kept the processors busy since before.
func (p *Pool) busySince(before usage) bool {
	if p.opts.busy != nil {
		return p.opts.busy()
	}
	return measureUsage().busySince(before, runtime.NumCPU())
}

// finish lets a child continue a refused task while this process keeps it from the processors, for
// at most ten times its original time. Killing it would waste its work, and a new child does not
// start at the lowest priority. Nothing else is computed until the child has ended: it would take
// just as long.
func (p *Pool) finish(c *child, task secret.Task, patience time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return // it has killed the child
	}
	p.late.Add(1)
	p.endings.Go(func() {
		defer p.late.Add(-1)
		if result, err := p.lateResult(c, task, time.Now().Add(10*patience)); err != nil {
			c.kill()
			p.failed(err)
		} else {
			clear(result)
			p.put(c)
		}
	})
}

// lateResult waits for the result of a late child until this process has left it the processors for
// [Options].Patience. It does not wait longer, because all other tasks are refused in the meantime.
func (p *Pool) lateResult(c *child, task secret.Task, end time.Time) ([]byte, error) {
	for {
		before := measureUsage()
		result, err := c.result(task, p.opts.Patience)
		if !errors.Is(err, errLate) || !p.busySince(before) || !time.Now().Before(end) {
			return result, err
		}
	}
}

// take returns an idle child, or starts one.
func (p *Pool) take() (*child, error) {
	for c := p.pop(); c != nil; c = p.pop() {
		if c.runs() {
			return c, nil
		}
		p.failed(c.err()) // it died while idle
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

// put keeps a child for the next task, for the idle time.
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

// expire ends a child that was idle for too long. It does nothing if the child has just got a task.
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

// start starts a child and waits until it is ready.
func (p *Pool) start() (*child, error) {
	c, err := p.launch()
	if err != nil {
		return nil, err
	}
	if err := c.greet(); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// launch starts a child, unless the pool is closed. The child is in all until it has ended.
func (p *Pool) launch() (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	c, err := launch(p.opts.program, p.opts.environ)
	if err != nil {
		return nil, err
	}
	p.all[c] = struct{}{}
	p.endings.Go(func() {
		c.reap()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.all, c)
	})
	return c, nil
}

// failed counts a failure. It logs the failure unless another was logged within a minute, or the
// pool is closed.
func (p *Pool) failed(err error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return
	}
	if n := p.failing.add(time.Now()); n > 0 {
		p.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn, "password process failed; hashing in the server for now",
			slog.Any("error", err), slog.Int("failures", n))
	}
}

// Close ends all children and waits until they have ended. Tasks under way fail.
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

// environment returns the environment of a child: empty, except in tests.
func environment() []string {
	env := []string{"GOMAXPROCS=1"}
	for _, name := range []string{"GORACE", "GOCOVERDIR"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
