package load

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

// loop polls the connections of all streams.
type loop struct {
	address netip.AddrPort
	asleep  int // milliseconds that a round waits for events, at most
	epoll   int
	events  []unix.EpollEvent
	conns   map[int32]*conn
	streams []*stream

	began time.Time
	last  time.Duration // when the latest round began
	end   time.Duration // of the phases
	gaps  []Gap
}

// stream is the state of one.
type stream struct {
	Stream
	from   []netip.Addr
	end    time.Duration // of its phases
	over   bool          // its source has ended
	open   int           // connections
	idle   []*conn       // the one used last is last
	result Result

	schedule *schedule
	waiting  queue[time.Duration] // due times of requests without a connection
	underway queue[flight]        // ordered by due time; includes requests that have ended
	busy     int                  // connections with a request under way
}

// flight is a request under way, if its connection still has that number.
type flight struct {
	conn   *conn
	number int
}

func newLoop(o Options, streams []Stream) (*loop, error) {
	l := &loop{events: make([]unix.EpollEvent, 256), conns: map[int32]*conn{}}
	if o.Core < 0 {
		l.asleep = 1
	}
	var err error
	if l.address, err = netip.ParseAddrPort(o.Address); err != nil {
		return nil, err
	}
	for i, one := range streams {
		s := &stream{Stream: one, end: over(one.Phases)}
		for _, text := range one.From {
			a, err := netip.ParseAddr(text)
			if err != nil {
				return nil, err
			}
			s.from = append(s.from, a)
		}
		phases := one.Phases
		if one.Closed > 0 {
			phases = nil
		}
		if s.Connections == 0 {
			s.Connections = one.Closed
		}
		s.schedule = newSchedule(phases, o.Seed, uint64(i))
		l.streams, l.end = append(l.streams, s), max(l.end, s.end)
	}
	l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return l, err
}

// run sends requests as they become due until the end, and then waits for the last answers.
func (l *loop) run(ctx context.Context) error {
	l.began = time.Now()
	for {
		now := time.Since(l.began)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.noteRound(now)
		left := 0
		for _, s := range l.streams {
			s.plan(now)
			if err := errors.Join(l.hangUp(s, now), l.send(s, now)); err != nil {
				return err
			}
			left += s.left(now)
		}
		if left == 0 || now > l.end+lastAnswers {
			return l.giveUp()
		}
		if err := l.poll(); err != nil {
			return err
		}
	}
}

// noteRound records the start of a round, and the gap since the previous round if it is long enough.
func (l *loop) noteRound(now time.Duration) {
	if now-l.last >= shortestGap+time.Duration(l.asleep)*time.Millisecond && now < l.end+lastAnswers {
		l.gaps = append(l.gaps, Gap{l.last, now})
	}
	l.last = now
}

// plan queues the requests that are due at time now.
func (s *stream) plan(now time.Duration) {
	if now >= s.end || s.over {
		return
	}
	for s.busy+s.waiting.len() < s.Closed {
		s.waiting.push(now)
	}
	for at, ok := s.schedule.due(now); ok; at, ok = s.schedule.due(now) {
		s.waiting.push(at)
	}
}

// left returns how many requests are not answered, or 1 if there will be more.
func (s *stream) left(now time.Duration) int {
	if now < s.end && !s.over {
		return 1
	}
	return s.busy + s.waiting.len()
}

// send sends requests that are due, as far as connections go.
func (l *loop) send(s *stream, now time.Duration) error {
	for opened := 0; s.waiting.len() > 0; {
		if len(s.idle) == 0 {
			if s.open >= s.Connections || opened == mostOfARound {
				return nil
			}
			opened++
			if err := l.open(s); err != nil {
				return err
			}
		}
		call, ok := s.Source.Next()
		if !ok {
			s.over, s.waiting = true, queue[time.Duration]{}
			return nil
		}
		c := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		c.due, c.sent, c.busy, c.answer = s.waiting.pop(), now, true, c.buffer[:0]
		c.number++
		c.call, c.rest = call, call.Request
		s.busy++
		if s.Patience > 0 {
			s.underway.push(flight{c, c.number})
		}
		if err := l.write(c); err != nil {
			return err
		}
	}
	return nil
}

// hangUp ends the requests that have taken too long.
func (l *loop) hangUp(s *stream, now time.Duration) error {
	if s.Patience == 0 {
		return nil
	}
	for s.underway.len() > 0 {
		f := s.underway.first()
		current := f.conn.busy && f.conn.number == f.number
		if current && f.conn.due+s.Patience > now {
			break
		}
		s.underway.pop()
		if current {
			if err := l.drop(f.conn, HungUp); err != nil {
				return err
			}
		}
	}
	for s.waiting.len() > 0 && s.waiting.first()+s.Patience <= now {
		s.neverSent(now)
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
	for _, s := range l.streams {
		for s.waiting.len() > 0 {
			s.neverSent(time.Since(l.began))
		}
	}
	return errors.Join(errs...)
}

// neverSent records a request for which there was no connection. The source says what it would have been.
func (s *stream) neverSent(now time.Duration) {
	due := s.waiting.pop()
	if c, ok := s.Source.Next(); ok {
		s.result.Records = append(s.result.Records, Record{Class: c.Class, Status: HungUp, Due: due, Done: now})
		s.Source.Done(c, HungUp, nil)
	}
}

// done records the end of the request of a connection.
func (l *loop) done(c *conn, status int, body []byte) {
	s := c.stream
	c.busy, c.rest = false, nil
	s.busy--
	s.result.Records = append(s.result.Records, Record{
		Class: c.call.Class, Status: status, Due: c.due, Sent: c.sent, Done: time.Since(l.began),
	})
	s.Source.Done(c.call, status, body)
}

func (l *loop) close() error {
	errs := []error{unix.Close(l.epoll)}
	for _, c := range l.conns {
		errs = append(errs, unix.Close(c.fd))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close connections: %w", err)
	}
	return nil
}
