package syncer

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/ratelimit/counting"
)

// Left counts the unwritten rest when the syncer had to stop.
type Left struct {
	Keys     int   // counters
	Requests int64 // admitted requests that are not known to be in the store
}

// Stop ends the loops and writes all unflushed counts, until nothing is left or the context ends.
// Nothing may be admitted once it is called. If counts are left, it returns them with an error.
func (s *Syncer) Stop(ctx context.Context) (Left, error) {
	defer context.AfterFunc(ctx, s.abort)()
	s.loops.Cancel()
	s.loops.Wait() // waits for calls under way at most, which the context aborts
	s.sync.SetFinal()
	s.queue.clear()
	s.leases.clear() // from now on no counter is planned there
	s.sync.Unflushed(s.clock.Now(), func(p counting.Plan) { s.schedule(counting.Plan{Ticket: p.Ticket}, 0) })
	s.flushAll(ctx)
	s.leave(ctx)
	return s.left()
}

// flushAll exchanges the counters in the queue, until it is empty or the context ends.
func (s *Syncer) flushAll(ctx context.Context) {
	for ctx.Err() == nil {
		due, some := s.queue.nextDue()
		if !some {
			return
		}
		rest := due - s.elapsed()
		if rest > longWait {
			return // only counters with refused writes are left
		}
		if !background.Sleep(ctx, rest) {
			return
		}
		if entries := s.queue.pop(s.elapsed()); len(entries) > 0 {
			end := s.queue.calls.begin(s.elapsed())
			s.guardedExchange(ctx, entries)
			end()
		}
	}
}

// longWait is longer than any wait of a counter, except after a refused write.
const longWait = 15 * time.Second

// left returns the unflushed counts, and an error if there are any.
func (s *Syncer) left() (Left, error) {
	u := s.sync.Unflushed(s.clock.Now(), nil)
	l := Left{Keys: u.Counters, Requests: u.Requests}
	if l == (Left{}) {
		return l, nil
	}
	return l, fmt.Errorf("syncer: %d requests of %d counters could not be written", l.Requests, l.Keys)
}
