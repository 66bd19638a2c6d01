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
	Requests int64 // admitted requests that other instances do not know of
}

// Stop ends the loops and writes everything that is not yet written, until
// nothing is left or the context ends. Nothing may be admitted any more. The
// error says what was left; it is nil if nothing was.
func (s *Syncer) Stop(ctx context.Context) (Left, error) {
	defer context.AfterFunc(ctx, s.abort)()
	s.stop()
	s.loops.Wait() // for a call at most, which the context aborts
	s.final.Store(true)
	s.writes.pause(0)
	s.reads.pause(0)
	for _, x := range s.counters.Collect(nil) {
		s.schedule(x, 0)
	}
	for _, it := range append(s.writes.drain(), s.reads.drain()...) {
		s.schedule(it.counter, 0)
	}
	s.flushAll(ctx)
	s.leave(ctx)
	return s.left()
}

// flushAll works through both lanes until they are empty.
func (s *Syncer) flushAll(ctx context.Context) {
	for ctx.Err() == nil {
		soonest, some := s.writes.next()
		if r, ok := s.reads.next(); ok && (!some || r < soonest) {
			soonest, some = r, true
		}
		if !some {
			return
		}
		rest := soonest - s.elapsed()
		if rest > refusedWait/2 {
			return // the store refuses what is left
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		s.flush(ctx)
		s.load(ctx)
	}
}

func (s *Syncer) left() (l Left, err error) {
	seen := map[*ratelimit.Counter]bool{} // there are void items
	for _, it := range append(s.writes.drain(), s.reads.drain()...) {
		if seen[it.counter] {
			continue
		}
		seen[it.counter] = true
		if v, _, ok := s.counters.Look(it.counter, s.cfg.Now()); ok && v.Unflushed > 0 {
			l.Keys++
			l.Requests += v.Unflushed
		}
	}
	if l != (Left{}) {
		err = fmt.Errorf("syncer: %d requests of %d counters could not be written", l.Requests, l.Keys)
	}
	return l, err
}
