package ratelimit

import "unsafe"

// A counter is one key under one limit. It has a number in its shard, starting at 1, and two
// records. hot has the data for decisions, on one cache line. cold has the data that only exchanges
// need. Other parts are in separate slabs and are found by number, so the garbage collector has no
// pointers to follow.

// slot has the counts of one frame. A decision uses their sum.
type slot struct {
	known     uint32 // confirmed in the document
	pending   int32  // in the pending write, with unknown outcome
	unclaimed int32  // admitted and in no write yet; negative after a refund
}

// hot is the part of a counter that a decision reads and writes.
type hot struct {
	hash    [3]uint32 // of the key; for its second and later limits, [0] is the number of the first counter
	rule    uint8     // index of the limit in the list
	state   state
	flags   flags
	holders uint8   // processes that may hold back counts, this one included; 0: unknown
	start   int64   // of the newest frame, milliseconds since the epoch
	near    [2]slot // with one frame per window, the slots; otherwise near[0].known is a block of far
	seen    uint32  // last request of the key, seconds since the epoch
	limits  uint32  // number of the list of limits
	next    uint32  // the counter of the key's next limit, or the next free number
	extra   uint32  // see extras
}

// cold is the part of a counter that only exchanges need.
type cold struct {
	etag    [2]uint32 // of the document when last read; version and etag 0: no document
	version uint32    // of the document when last read; maxVersion stands for all higher ones
	name    uint32    // offset of the key's names in the shard's names
	began   uint32    // tick at which the latest exchange began
	synced  uint32    // tick at which the exchange that set known began
	mine    [2]uint32 // confirmed counts of this process, by frame; see far
	ticket  uint16    // number of the latest ticket
	recent  uint8     // recent exchanges; see recentAt
}

// extras is data that few counters have: a pending write, or parts of the document to be removed.
type extras struct {
	seq       int64       // of the pending write; 0 for none
	frames    observation // frames of the document that are too old to matter
	writers   observation // writers of dead processes
	next      uint32      // in the list of free extras
	fails     uint8       // successive exchanges that left the outcome of the pending write unknown
	conflicts uint8       // successive exchanges that refused the pending write
	uncertain bool        // the outcome of at least one attempt at the pending write is unknown
	reframed  bool        // the frame length has changed since the pending write was made
}

// chunk is the number of records that are allocated together. When a chunk is full, another one is
// added, so records are never copied and little memory is unused.
const chunk = 64

func (s *shard) hotOf(num uint32) *hot   { return &s.hot[num/chunk][num%chunk] }
func (s *shard) coldOf(num uint32) *cold { return &s.cold[num/chunk][num%chunk] }

// tick converts a time in milliseconds to a count of two-millisecond ticks, modulo 99 days.
func tick(ms int64) uint32 { return uint32(ms / 2) } //nolint:gosec // modulo is meant

// ticksAgo returns how many milliseconds ago a tick was. It returns 0 for a tick slightly in the
// future, which happens when two goroutines read the clock at about the same time.
func ticksAgo(ms int64, t uint32) int64 {
	const ahead = 1 << 16
	if ago := tick(ms) - t; ago < 1<<32-ahead {
		return int64(ago) * 2
	}
	return 0
}

// maxVersion is the largest version that a counter can store. It stands for that and all higher
// ones.
const maxVersion = 1<<32 - 1

// setVersion stores the version and etag of the document.
func (c *cold) setVersion(version, etag int64) {
	c.version = uint32(min(max(version, 0), maxVersion))
	c.etag = [2]uint32{uint32(etag >> 32), uint32(etag)} //nolint:gosec // both halves
}

// etagValue returns the etag stored by setVersion.
func (c *cold) etagValue() int64 { return int64(c.etag[0])<<32 | int64(c.etag[1]) }

// extend returns s with one more element. It grows s by a sixteenth, so little memory is unused.
// Large slabs fill whole pages.
func extend[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	const page, large = 8 << 10, 32 << 10
	size := int(unsafe.Sizeof(*new(T)))
	n := len(s) + max(len(s)/16, 8)
	if n*size > large {
		n = (n*size + page - 1) / page * page / size
	}
	grown := make([]T, len(s)+1, n)
	copy(grown, s)
	return grown
}

// far holds the slots of counters with several frames per window, in blocks of equal width.
type far struct {
	width int // slots in a block
	slots []slot
	mine  []uint32 // see cold.mine
	free  []uint32 // numbers of free blocks
}

// alloc returns the number of an empty block.
func (f *far) alloc() uint32 {
	if n := len(f.free); n > 0 {
		block := f.free[n-1]
		f.free = f.free[:n-1]
		return block
	}
	f.slots = append(f.slots, make([]slot, f.width)...)
	f.mine = append(f.mine, make([]uint32, f.width)...)
	return uint32(len(f.mine)/f.width - 1) //nolint:gosec // fewer blocks than counters
}

// release clears a block and makes it free.
func (f *far) release(block uint32) {
	lo, hi := int(block)*f.width, (int(block)+1)*f.width
	clear(f.slots[lo:hi])
	clear(f.mine[lo:hi])
	f.free = append(f.free, block)
}

// farOf returns the blocks of a width, and creates them if necessary.
func (s *shard) farOf(width int) *far {
	for _, f := range s.far {
		if f.width == width {
			return f
		}
	}
	f := &far{width: width}
	s.far = append(s.far, f)
	return f
}

// slots returns the slots of a counter, one per frame, the newest first.
func (s *shard) slots(h *hot, r *rule) []slot {
	if r.count == len(h.near) {
		return h.near[:]
	}
	f := s.farOf(r.frames())
	lo := int(h.near[0].known) * f.width
	return f.slots[lo : lo+f.width]
}

// mine returns the confirmed counts of this process in the document, by frame, the newest first.
func (s *shard) mine(num uint32, r *rule) []uint32 {
	if r.count == len(s.coldOf(num).mine) {
		return s.coldOf(num).mine[:]
	}
	f := s.farOf(r.frames())
	lo := int(s.hotOf(num).near[0].known) * f.width
	return f.mine[lo : lo+f.width]
}

// extrasOf returns the extras of a counter. It allocates them if the counter has none. The pointer
// is valid until the next call.
func (s *shard) extrasOf(num uint32) *extras {
	h := s.hotOf(num)
	if h.extra != 0 {
		return &s.extras[h.extra]
	}
	if s.freeExtras != 0 {
		h.extra = s.freeExtras
		s.freeExtras = s.extras[h.extra].next
		s.extras[h.extra] = extras{}
		return &s.extras[h.extra]
	}
	if len(s.extras) == 0 {
		s.extras = extend(s.extras) // 0 is not used
	}
	h.extra = uint32(len(s.extras)) //nolint:gosec // fewer than counters
	s.extras = extend(s.extras)
	return &s.extras[h.extra]
}

// dropExtras frees the extras of a counter.
func (s *shard) dropExtras(num uint32) {
	h := s.hotOf(num)
	if h.extra != 0 {
		s.extras[h.extra] = extras{next: s.freeExtras}
		s.freeExtras, h.extra = h.extra, 0
	}
}

// pendingSeq returns the sequence of the pending write of a counter, or 0.
func (s *shard) pendingSeq(num uint32) int64 {
	if extra := s.hotOf(num).extra; extra != 0 {
		return s.extras[extra].seq
	}
	return 0
}
