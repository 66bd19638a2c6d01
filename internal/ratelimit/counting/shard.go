package counting

import (
	"sync"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/slab"
)

// shard holds a part of the keys under one lock.
type shard struct {
	// A decision reads the fields up to hot; they fill a cache line. Shards share no cache line.
	mu  sync.Mutex
	all *totals
	slab.Records

	inbox  []uint32 // counters for the syncer
	outbox []uint32 // the previous inbox, for reuse
	number uint32
	kind   kind

	repairs map[uint32]*repairs // by counter
	carried map[uint32][]carry  // by counter
	shared  []overflow
	leases  map[uint32]*lease        // by counter
	waiting map[uint32]*waitQueue    // by the first counter of their key
	reading map[uint32]chan struct{} // by counter: closed after its first read, see part.firstRead
}

// put adds an entry to a map of a shard. Most shards need no such map.
func put[V any](in *map[uint32]V, num uint32, v V) {
	if *in == nil {
		*in = map[uint32]V{}
	}
	(*in)[num] = v
}

// crowded reports whether too few numbers are left for the counters of another key. It keeps enough
// numbers for all overflow counters.
func (s *shard) crowded(ls *ratelimit.Limits) bool {
	return int(s.FreeCount)+slab.MaxNumber+1-int(s.Numbers) < len(ls.Rules)+maxOverflow*ratelimit.MaxLimits
}

// remove drops a key and its counters. Its room stays reserved.
func (s *shard) remove(first uint32) {
	s.Drop(first)
	s.unchain(first)
}

// unchain frees the counters of a key. It does not touch the index.
func (s *shard) unchain(first uint32) {
	s.abandon(first)
	ratelimit.LimitsOf(s.HotOf(first).Limits).Release()
	nums, n := s.ChainOf(first)
	for _, num := range nums[:n] {
		s.free(num)
	}
}

// free frees a counter with all that belongs to it.
func (s *shard) free(num uint32) {
	delete(s.repairs, num)
	delete(s.carried, num)
	delete(s.leases, num)
	s.wasRead(num)
	s.Free(num)
}
