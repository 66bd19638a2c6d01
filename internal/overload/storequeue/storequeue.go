package storequeue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// Options configure a Queue.
type Options struct {
	// Max is the hard maximum of concurrent calls.
	Max int
	// Min is the lowest limit when the latency rises. 0: the limit is always Max.
	Min int
	// Room bounds the number of waiting calls, and so their memory. 0: a thousand.
	Room int
	// MaxAge is the longest wait of a call. Calls of a request with an earlier admitted call may
	// wait patience times as long. 0: half a second.
	MaxAge time.Duration
	// Mode defaults to enforce. In dry-run mode nothing waits or is refused, and only the counts
	// are kept.
	Mode ratelimit.Mode
	// Refused, if not nil, is called once for each request with a refused call, with the context of
	// the request. In dry-run mode it is called for calls that would have been refused. It must
	// neither block nor call the queue.
	Refused func(ctx context.Context, dryRun bool)
}

// patience is the factor on the longest wait for calls of requests with an earlier admitted call.
const patience = 10

// Queue is a queue in front of a store. It is safe for concurrent use.
type Queue struct {
	opts    Options
	limiter adaptivelimiter.AdaptiveLimiter[any]

	mu       sync.Mutex
	mode     ratelimit.Mode
	queue    waiters
	refusals refusals
	calls    Calls
}

// New returns a Queue.
func New(o Options) *Queue {
	if o.Room == 0 {
		o.Room = 1000
	}
	if o.MaxAge == 0 {
		o.MaxAge = time.Second / 2
	}
	if o.Mode == "" {
		o.Mode = ratelimit.Enforce
	}
	if o.Min == 0 {
		o.Min = o.Max
	}
	return &Queue{opts: o, mode: o.Mode, limiter: newLimiter(o.Min, o.Max)}
}

// baselineWindows is the number of windows in the baseline of the latency. Each window is a second
// or two calls long. With the library's default of 10, a limit of 40 falls to 30 only when calls
// take 40 times as long, and recovers within a minute although they still do. With 60 windows it
// falls to 14 and recovers after some minutes.
const baselineWindows = 60

// newLimiter returns a limiter with a limit that starts at most and follows the latency. It does
// not follow the number of concurrent calls, so the limit is still high after a quiet night.
func newLimiter(least, most int) adaptivelimiter.AdaptiveLimiter[any] {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(most)).
		WithBaselineWindow(baselineWindows).
		WithMaxLimitFunc(func(int) float64 { return float64(most) }).
		Build()
}

// Set changes the mode. Calls that wait proceed.
func (l *Queue) Set(mode ratelimit.Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mode == l.mode {
		return
	}
	l.mode = mode
	for w := l.queue.first(); w != nil; w = l.queue.first() {
		l.queue.remove(w)
		w.ready <- nil
	}
}

// Pass is the permission for one call. It must end with Leave.
type Pass struct {
	queue  *Queue
	permit adaptivelimiter.Permit
	ghost  *waiter // in dry-run mode: the call that would have waited
}

// Enter waits until a call may proceed. If ctx does not come from [NewRequest], it returns at once:
// the server's own work is neither queued nor refused. It returns a *[overload.ShedError] or the
// error of ctx.
func (l *Queue) Enter(ctx context.Context) (Pass, error) {
	r := requestOf(ctx)
	if r == nil {
		return Pass{}, nil
	}
	pass, w, err := l.join(ctx, r)
	if w != nil {
		pass, err = l.wait(ctx, w)
	}
	if err == nil {
		r.started.Store(true)
	}
	return pass, err
}

func gone(err error) error { return fmt.Errorf("overload: wait for the store: %w", err) }

// join returns a pass if the call may proceed, or a waiter if it must wait.
func (l *Queue) join(ctx context.Context, r *request) (Pass, *waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode == ratelimit.Off {
		return Pass{}, nil, nil
	}
	rank := overload.RankFrom(ctx)
	if err := ctx.Err(); err != nil && l.mode == ratelimit.Enforce {
		l.calls.add(rank, overload.Abandoned)
		return Pass{}, nil, gone(err)
	}
	if len(l.queue.waiting) == 0 {
		if permit, ok := l.limiter.TryAcquirePermit(); ok {
			l.calls.add(rank, overload.Admitted)
			return Pass{queue: l, permit: permit}, nil, nil
		}
	}
	w := &waiter{
		ctx: ctx, request: r, rank: rank, started: r.started.Load(), joined: time.Now(),
		ready: make(chan error, 1), ghost: l.mode == ratelimit.DryRun,
	}
	l.queue.add(w)
	if len(l.queue.waiting) > l.opts.Room {
		l.evict(w)
	}
	if w.ghost {
		return Pass{queue: l, ghost: w}, nil, nil
	}
	return Pass{}, w, nil
}

// evict refuses the last call in the queue, or the newcomer if no call may be refused.
func (l *Queue) evict(newcomer *waiter) {
	last := l.queue.last()
	if last == nil {
		last = newcomer
	}
	l.queue.remove(last)
	last.ready <- l.refuse(last)
}

// refuse counts a refusal and returns its error.
func (l *Queue) refuse(w *waiter) error {
	outcome := overload.Shed
	if w.ghost {
		outcome = overload.WouldShed
	}
	l.calls.add(w.rank, outcome)
	if l.opts.Refused != nil && w.request.refused.CompareAndSwap(false, true) {
		l.opts.Refused(w.ctx, w.ghost)
	}
	lasted := l.refusals.add(time.Now(), w.rank.Criticality())
	return &overload.ShedError{RetryAfter: overload.RetryAfter(lasted), Short: overload.Store}
}

// maxAge returns the longest wait of a call.
func (l *Queue) maxAge(w *waiter) time.Duration {
	if w.started {
		return patience * l.opts.MaxAge
	}
	return l.opts.MaxAge
}

// wait waits until a call may proceed.
func (l *Queue) wait(ctx context.Context, w *waiter) (Pass, error) {
	old := time.NewTimer(l.maxAge(w))
	defer old.Stop()
	select {
	case err := <-w.ready:
		return Pass{queue: l, permit: w.permit}, err
	case <-ctx.Done():
	case <-old.C:
	}
	return l.settle(ctx, w)
}

// settle ends the wait of a call that is too old or has lost its caller, unless the call got a permit
// or was refused in the meantime.
func (l *Queue) settle(ctx context.Context, w *waiter) (Pass, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.queue.remove(w) {
		err := <-w.ready
		return Pass{queue: l, permit: w.permit}, err
	}
	if ctx.Err() != nil {
		return Pass{}, l.abandon(w)
	}
	return Pass{}, l.refuse(w)
}

// abandon counts a call without a caller and returns its error.
func (l *Queue) abandon(w *waiter) error {
	l.calls.add(w.rank, overload.Abandoned)
	return gone(w.ctx.Err())
}

// Leave ends a call. measured says whether the time since Enter is the latency of an answer of the
// store.
func (p Pass) Leave(measured bool) {
	if p.queue == nil {
		return
	}
	l := p.queue
	if p.ghost != nil {
		p.permit = l.finish(p.ghost)
	}
	switch {
	case p.permit == nil: // a ghost without a permit, or the mode changed while the call waited
		return
	case measured:
		p.permit.Record()
	default:
		p.permit.Drop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance()
}

// finish ends a call that would have waited, and returns the permit that it would have got by then.
// Without one, the ghost stays in the queue, because its call would not have begun yet.
func (l *Queue) finish(ghost *waiter) adaptivelimiter.Permit {
	l.mu.Lock()
	defer l.mu.Unlock()
	ghost.done = true
	return ghost.permit
}

func (l *Queue) late(w *waiter) bool { return time.Since(w.joined) >= l.maxAge(w) }

// advance gives the free permits to the next calls in the queue.
func (l *Queue) advance() {
	for len(l.queue.waiting) > 0 {
		permit, ok := l.limiter.TryAcquirePermit()
		if !ok {
			return
		}
		w := l.next()
		if w == nil {
			permit.Drop()
			return
		}
		l.calls.add(w.rank, overload.Admitted)
		if w.done {
			permit.Drop()
			continue
		}
		w.permit = permit
		w.ready <- nil
	}
}

// next removes and returns the first waiter with a caller that has not hung up. It ends the wait of
// those before it. In dry-run mode it skips waiters that would have been refused by then. It returns
// nil if there is no such waiter.
func (l *Queue) next() *waiter {
	for w := l.queue.first(); w != nil; w = l.queue.first() {
		l.queue.remove(w)
		switch {
		case w.ghost && l.late(w):
			_ = l.refuse(w)
		case w.ghost || w.ctx.Err() == nil:
			return w
		default:
			w.ready <- l.abandon(w)
		}
	}
	return nil
}
