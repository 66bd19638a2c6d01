package syncer

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/ratelimit"
)

// Left is what could not be written before the syncer had to stop.
type Left struct {
	Keys     int   // counters
	Requests int64 // admitted requests that the store is not known to have
}

// Stop ends the loops and writes everything that is not yet written, until nothing is left or the
// context ends. Nothing may be admitted any more. The error says what was left; it is nil if
// nothing was.
func (s *Syncer) Stop(ctx context.Context) (Left, error) {
	defer context.AfterFunc(ctx, s.abort)()
	s.loops.Cancel()
	s.loops.Wait() // for calls under way at most, which the context aborts
	s.sync.SetFinal()
	s.queue.clear()
	s.leases.clear() // from now on no counter is planned there
	s.sync.Unflushed(s.clock.Now(), func(p ratelimit.Plan) { s.schedule(ratelimit.Plan{Ticket: p.Ticket}, 0) })
	s.flushAll(ctx)
	s.leave(ctx)
	return s.left()
}

// flushAll exchanges what is in the queue, until it is empty or the context ends.
func (s *Syncer) flushAll(ctx context.Context) {
	for ctx.Err() == nil {
		due, some := s.queue.nextDue()
		if !some {
			return
		}
		rest := due - s.elapsed()
		if rest > longWait {
			return // all that is left was refused
		}
		if !s.loops.Sleep(ctx, rest) {
			return
		}
		if entries := s.queue.pop(s.elapsed()); len(entries) > 0 {
			s.guardedExchange(ctx, entries)
		}
	}
}

// longWait is longer than any counter waits but one whose write was refused.
const longWait = 15 * time.Second

// left returns what is unflushed, and an error if that is anything.
func (s *Syncer) left() (Left, error) {
	u := s.sync.Unflushed(s.clock.Now(), nil)
	l := Left{Keys: u.Counters, Requests: u.Requests}
	if l == (Left{}) {
		return l, nil
	}
	return l, fmt.Errorf("syncer: %d requests of %d counters could not be written", l.Requests, l.Keys)
}
