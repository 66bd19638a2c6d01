package syncer

import (
	"context"
	"math/rand/v2"
	"slices"

	"oauth-server/internal/ratelimit"
)

// Kill ends the loops as kill -9 does: nothing is flushed. Calls under way may still reach the
// store.
func (s *Syncer) Kill() {
	s.loops.Cancel()
	s.abort()
	s.loops.Wait()
}

// BecomeCloneOf makes the syncer write under the name and from the sequence of another, as a copy
// of its process does.
func (s *Syncer) BecomeCloneOf(o *Syncer) {
	o.identity.mu.Lock()
	names, seq := slices.Clone(o.identity.names), o.identity.seq
	nonces, doubt := slices.Clone(o.identity.nonces), o.identity.unstored
	o.identity.mu.Unlock()
	s.identity.mu.Lock()
	defer s.identity.mu.Unlock()
	s.identity.names, s.identity.seq, s.identity.nonces, s.identity.unstored = names, seq, nonces, doubt
}

// SetRandomState gives the syncer the random state of a copied process.
func (s *Syncer) SetRandomState(state uint64) {
	s.random.mu.Lock()
	defer s.random.mu.Unlock()
	s.random.state = rand.New(rand.NewPCG(state, state))
}

// Batch returns how many items one call may have now.
func (s *Syncer) Batch() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.batch
}

// DrawSeq returns a new sequence.
func (s *Syncer) DrawSeq() int64 { return s.identity.nextSeq(s.clock.Now()) }

// DrawEtag returns a new etag.
func DrawEtag() int64 { return newEtag() }

// Refresh is [Syncer.Flush] without writes.
func (s *Syncer) Refresh(ctx context.Context, keys ...ratelimit.Key) error {
	x := &roundTrip{began: s.elapsed()}
	for _, it := range s.entriesOf(keys) {
		if task, ok := s.sync.Begin(s.clock.Now(), it.ticket, 0); ok {
			x.tasks = append(x.tasks, task)
		}
	}
	s.fill(x)
	return s.roundTrip(ctx, x)
}

// Degraded returns nil while exchanges succeed, otherwise the problem.
func (s *Syncer) Degraded() error {
	_, err := s.health.degraded()
	return err
}

// Bound is bound.
var Bound = bound
