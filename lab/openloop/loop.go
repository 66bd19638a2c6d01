package openloop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lastAnswers is how long answers are waited for after the last phase.
	lastAnswers = time.Second
	// shortestGap is the least time between two rounds of the loop that is noted. A round takes microseconds.
	shortestGap = time.Millisecond
	// mostOfARound bounds the connections that are opened in one round, so that answers are read in between.
	mostOfARound = 32
)

// loop polls all connections.
type loop struct {
	o       Options
	source  Source
	address netip.AddrPort
	from    []netip.Addr
	epoll   int
	events  []unix.EpollEvent
	conns   map[int32]*conn
	idle    []*conn // the one used last is last
	result  Result

	schedule *schedule
	waiting  queue[time.Duration] // due times of requests without a connection
	underway queue[flight]        // ordered by due time; includes requests that have ended
	busy     int                  // connections with a request under way
	last     time.Duration        // when the latest round began
	end      time.Duration        // of the phases
}

// flight is a request under way, if its connection still has that number.
type flight struct {
	conn   *conn
	number int
}

// conn is a connection with at most one request under way.
type conn struct {
	fd        int
	connected bool
	busy      bool
	number    int // of requests so far
	call      Call
	due, sent time.Duration
	rest      []byte // of the request, not written yet
	answer    []byte // the part read so far
	buffer    [4096]byte
}

func newLoop(o Options, source Source) (*loop, error) {
	l := &loop{o: o, source: source, events: make([]unix.EpollEvent, 256), conns: map[int32]*conn{}, end: over(o.Phases)}
	var err error
	if l.address, err = netip.ParseAddrPort(o.Address); err != nil {
		return nil, err
	}
	for _, text := range o.From {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		l.from = append(l.from, a)
	}
	phases := o.Phases
	if o.Closed > 0 {
		phases = nil
	}
	l.schedule = newSchedule(phases, o.Seed)
	l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return l, err
}

// run sends requests as they become due until the end, and then waits for the last answers.
func (l *loop) run(ctx context.Context) error {
	l.result.Began = time.Now()
	for {
		now := time.Since(l.result.Began)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.noteRound(now)
		if now < l.end {
			l.plan(now)
		}
		if err := errors.Join(l.hangUp(now), l.send(now)); err != nil {
			return err
		}
		if now >= l.end && (l.busy+l.waiting.len() == 0 || now > l.end+lastAnswers) {
			break
		}
		if err := l.poll(); err != nil {
			return err
		}
	}
	return l.giveUp()
}

// noteRound records the start of a round, and the gap since the previous round if it is long enough.
func (l *loop) noteRound(now time.Duration) {
	if now-l.last >= shortestGap && now < l.end+lastAnswers {
		l.result.Gaps = append(l.result.Gaps, Gap{l.last, now})
	}
	l.last = now
}

// plan queues the requests that are due at time now.
func (l *loop) plan(now time.Duration) {
	for l.busy+l.waiting.len() < l.o.Closed {
		l.waiting.push(now)
	}
	for at, ok := l.schedule.due(now); ok; at, ok = l.schedule.due(now) {
		l.waiting.push(at)
	}
}

// send sends requests that are due, as far as connections go.
func (l *loop) send(now time.Duration) error {
	for opened := 0; l.waiting.len() > 0; {
		if len(l.idle) == 0 {
			if len(l.conns) >= l.o.Connections || opened == mostOfARound {
				return nil
			}
			opened++
			if err := l.open(); err != nil {
				return err
			}
		}
		c := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		c.due, c.sent, c.busy, c.answer = l.waiting.pop(), now, true, c.buffer[:0]
		c.number++
		c.call = l.source.Next()
		c.rest = c.call.Request
		l.busy++
		l.underway.push(flight{c, c.number})
		if err := l.write(c); err != nil {
			return err
		}
	}
	return nil
}

// write writes the rest of the request.
func (l *loop) write(c *conn) error {
	if !c.connected || len(c.rest) == 0 {
		return nil
	}
	n, err := unix.Write(c.fd, c.rest)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil // poll has it written later
	case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET):
		return l.drop(c, Closed)
	case err != nil:
		return fmt.Errorf("write a request: %w", err)
	}
	c.rest = c.rest[n:]
	return nil
}

// hangUp ends the requests that have taken too long.
func (l *loop) hangUp(now time.Duration) error {
	if l.o.Patience == 0 {
		return nil
	}
	for l.underway.len() > 0 {
		f := l.underway.first()
		current := f.conn.busy && f.conn.number == f.number
		if current && f.conn.due+l.o.Patience > now {
			break
		}
		l.underway.pop()
		if current {
			if err := l.drop(f.conn, HungUp); err != nil {
				return err
			}
		}
	}
	for l.waiting.len() > 0 && l.waiting.first()+l.o.Patience <= now {
		l.neverSent(l.waiting.pop(), now)
	}
	return nil
}

// giveUp ends all requests that have no answer at the end of the run.
func (l *loop) giveUp() error {
	var errs []error
	for _, c := range l.conns {
		if c.busy {
			errs = append(errs, l.drop(c, HungUp))
		}
	}
	now := time.Since(l.result.Began)
	for l.waiting.len() > 0 {
		l.neverSent(l.waiting.pop(), now)
	}
	return errors.Join(errs...)
}

// neverSent records a request for which there was no connection. What it would have been, the source says.
func (l *loop) neverSent(due, now time.Duration) {
	c := l.source.Next()
	l.result.Records = append(l.result.Records, Record{Class: c.Class, Status: HungUp, Due: due, Done: now})
	l.source.Done(c, HungUp, nil)
}

// done records the end of the request of a connection.
func (l *loop) done(c *conn, status int, body []byte) {
	c.busy, c.rest = false, nil
	l.busy--
	l.result.Records = append(l.result.Records, Record{
		Class: c.call.Class, Status: status, Due: c.due, Sent: c.sent, Done: time.Since(l.result.Began),
	})
	l.source.Done(c.call, status, body)
}
