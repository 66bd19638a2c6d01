package lane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"oauth-server/internal/admission"
	"oauth-server/internal/ratelimit"
)

// Options configure a lane.
type Options struct {
	// Max is the hard maximum of calls at once.
	Max int
	// Min is the least that the limit falls to when the latency rises. 0: the limit is always Max.
	Min int
	// Queue bounds the calls that wait, and so their memory. 0: a thousand.
	Queue int
	// MaxAge is how long a call waits at most; one of a request that was let in before, patience times as long. 0:
	// half a second.
	MaxAge time.Duration
	// Mode is enforce if it is empty. In dry-run nothing waits or is refused, but what would be is counted.
	Mode ratelimit.Mode
	// Refused, if not nil, is called with the context of each request of which a call was refused, or in dry-run would
	// have been: once. It must neither block nor call the lane.
	Refused func(ctx context.Context, dryRun bool)
}

// patience is how much longer calls of requests wait that were let in before.
const patience = 10

// Lane is a lane before a store. It is safe for concurrent use.
type Lane struct {
	opts    Options
	limiter limiter

	mu       sync.Mutex
	mode     ratelimit.Mode
	queue    queue
	refusals refusals
	calls    Calls
}

// New returns a lane.
func New(o Options) *Lane {
	if o.Queue == 0 {
		o.Queue = 1000
	}
	if o.MaxAge == 0 {
		o.MaxAge = time.Second / 2
	}
	if o.Mode == "" {
		o.Mode = ratelimit.Enforce
	}
	l := &Lane{opts: o, mode: o.Mode, limiter: &fixed{limit: int64(o.Max)}}
	if o.Min > 0 {
		l.limiter = newAdaptive(o.Min, o.Max)
	}
	return l
}

// Set changes the mode. Calls that wait go on.
func (l *Lane) Set(mode ratelimit.Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mode == l.mode {
		return
	}
	l.mode = mode
	for w := l.queue.first(); w != nil; w = l.queue.first() {
		l.queue.remove(w)
		w.turn <- nil
	}
}

// Pass is the permission for one call, which must end with Leave.
type Pass struct {
	lane   *Lane
	permit adaptivelimiter.Permit
	ghost  *waiter // in dry-run: of a call that would have waited
}

// Enter returns when a call may go on. If ctx is not that of a request, of [NewRequest], that is at once: work of the
// server's own is neither queued nor refused. Errors: *[admission.ShedError], that of ctx.
func (l *Lane) Enter(ctx context.Context) (Pass, error) {
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

func gone(err error) error { return fmt.Errorf("admission: wait for the store: %w", err) }

// join returns a pass if the call may go on, or the waiter that it has to wait as.
func (l *Lane) join(ctx context.Context, r *request) (Pass, *waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode == ratelimit.Off {
		return Pass{}, nil, nil
	}
	rank := admission.RankFrom(ctx)
	if err := ctx.Err(); err != nil && l.mode == ratelimit.Enforce {
		l.calls.add(rank, admission.Abandoned)
		return Pass{}, nil, gone(err)
	}
	if l.queue.n == 0 {
		if permit, ok := l.limiter.TryAcquirePermit(); ok {
			l.calls.add(rank, admission.Admitted)
			return Pass{lane: l, permit: permit}, nil, nil
		}
	}
	w := &waiter{
		ctx: ctx, request: r, rank: rank, started: r.started.Load(), joined: time.Now(),
		turn: make(chan error, 1), ghost: l.mode == ratelimit.DryRun,
	}
	l.queue.add(w)
	if l.queue.n > l.opts.Queue {
		l.evict(w)
	}
	if w.ghost {
		return Pass{lane: l, ghost: w}, nil, nil
	}
	return Pass{}, w, nil
}

// evict refuses the last in the queue; without one, the newcomer.
func (l *Lane) evict(newcomer *waiter) {
	last := l.queue.last()
	if last == nil {
		last = newcomer
	}
	l.queue.remove(last)
	last.turn <- l.refuse(last)
}

// refuse counts a refusal, and returns its error.
func (l *Lane) refuse(w *waiter) error {
	outcome := admission.Shed
	if w.ghost {
		outcome = admission.WouldShed
	}
	l.calls.add(w.rank, outcome)
	if l.opts.Refused != nil && w.request.refused.CompareAndSwap(false, true) {
		l.opts.Refused(w.ctx, w.ghost)
	}
	lasted := l.refusals.add(time.Now(), w.rank.Criticality())
	return &admission.ShedError{RetryAfter: admission.RetryAfter(lasted), Short: admission.Store}
}

// maxAge is how long a call waits at most.
func (l *Lane) maxAge(w *waiter) time.Duration {
	if w.started {
		return patience * l.opts.MaxAge
	}
	return l.opts.MaxAge
}

// wait waits for the turn of a call.
func (l *Lane) wait(ctx context.Context, w *waiter) (Pass, error) {
	old := time.NewTimer(l.maxAge(w))
	defer old.Stop()
	select {
	case err := <-w.turn:
		if err != nil || ctx.Err() == nil {
			return Pass{lane: l, permit: w.permit}, err
		}
		w.turn <- nil // settle gives it to others
	case <-ctx.Done():
	case <-old.C:
	}
	return l.settle(ctx, w)
}

// settle ends the wait of a call that is too old or whose caller has gone, unless it has had its turn meanwhile.
func (l *Lane) settle(ctx context.Context, w *waiter) (Pass, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := l.queue.remove(w)
	switch {
	case ctx.Err() != nil:
		if waits || !l.giveBack(w) {
			l.calls.add(w.rank, admission.Abandoned)
		}
		return Pass{}, gone(ctx.Err())
	case waits:
		return Pass{}, l.refuse(w)
	}
	err := <-w.turn
	return Pass{lane: l, permit: w.permit}, err
}

// giveBack gives the permit of a call to others, if it has got one. It reports whether the call had its turn or was refused,
// and so was counted.
func (l *Lane) giveBack(w *waiter) (counted bool) {
	select {
	case err := <-w.turn:
		if err == nil && w.permit != nil {
			w.permit.Drop()
			l.advance()
		}
		return true
	default: // next has passed it over
		return false
	}
}

// Leave ends a call. measured is whether the time since Enter is that of an answer of the store.
func (p Pass) Leave(measured bool) {
	if p.lane == nil {
		return
	}
	l := p.lane
	if p.ghost != nil {
		p.permit = l.finish(p.ghost)
	}
	switch {
	case p.permit == nil: // of a ghost, or the mode was changed while the call waited
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

// finish ends a call that would have waited, and returns the permit that it would have got meanwhile. Without one, it
// waits on, because it would not have begun yet.
func (l *Lane) finish(ghost *waiter) adaptivelimiter.Permit {
	l.mu.Lock()
	defer l.mu.Unlock()
	ghost.done = true
	return ghost.permit
}

func (l *Lane) late(w *waiter) bool { return time.Since(w.joined) >= l.maxAge(w) }

// advance gives the free permits to those whose turn it is.
func (l *Lane) advance() {
	for l.queue.n > 0 {
		permit, ok := l.limiter.TryAcquirePermit()
		if !ok {
			return
		}
		w := l.next()
		if w == nil {
			permit.Drop()
			return
		}
		l.calls.add(w.rank, admission.Admitted)
		if w.done {
			permit.Drop()
			continue
		}
		w.permit = permit
		w.turn <- nil
	}
}

// next takes the first out of the queue whose caller has not gone and, in dry-run, that would not have been refused
// before. nil: there is none.
func (l *Lane) next() *waiter {
	for w := l.queue.first(); w != nil; w = l.queue.first() {
		l.queue.remove(w)
		switch {
		case w.ghost && l.late(w):
			_ = l.refuse(w)
		case w.ghost || w.ctx.Err() == nil:
			return w
		}
	}
	return nil
}
