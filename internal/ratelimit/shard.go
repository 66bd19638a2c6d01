package ratelimit

import (
	"sync"
	"unsafe"
)

// shard holds a part of the keys under one lock.
type shard struct {
	// A decision reads these fields; they fill a cache line.
	mu    sync.Mutex
	index []uint32      // open addressing: a tag of the key, and the number of its first counter
	hot   []*[chunk]hot // by number; 0 is not used
	all   *totals

	inbox  []uint32 // counters for the syncer
	outbox []uint32 // the previous inbox, for reuse
	number uint32
	kind   kind

	keys       int    // number of keys in the index
	freeNumber uint32 // head of the list of free numbers, linked by hot.next; 0: empty
	freeCount  uint32 // length of that list
	cold       []*[chunk]cold
	numbers    uint32 // how many numbers there are, in use or free, 0 included
	names      []byte // of the keys: two lengths of one byte, then both names
	garbage    int    // bytes of names that belong to no key

	extras     []extras
	freeExtras uint32
	far        []*far
	repairs    map[uint32]*repairs // by counter
	carried    map[uint32][]carry  // by counter
	shared     []overflow
	leases     map[uint32]*lease     // by counter
	waiting    map[uint32]*waitQueue // by the first counter of their key
	_          [4]byte               // shards share no cache line
}

// indexFull is the largest part of the index that may be in use, in eighths.
const indexFull = 6

// maxNumber is the largest number of a counter. An index word has 16 bits for it.
const maxNumber = 1<<16 - 1

// parts returns the 96 bits of a hash that a counter keeps. The number of the shard implies some of
// the other bits.
func (h hash) parts() [3]uint32 {
	return [3]uint32{uint32(h.hi), uint32(h.lo), uint32(h.lo >> 32)} //nolint:gosec // halves are meant
}

// indexWord returns the index entry of a key: 16 bits of its hash as a tag, and its first counter.
func indexWord(parts *[3]uint32, num uint32) uint32 { return parts[1]<<16 | num }

// home returns the index position where the search for a key starts.
func (s *shard) home(parts *[3]uint32) int { return int(uint64(parts[0]) * uint64(len(s.index)) >> 32) }

// find returns the number of the first counter of a key, or 0 if the key is not in memory.
func (s *shard) find(h hash) uint32 {
	if len(s.index) == 0 {
		return 0
	}
	parts := h.parts()
	tag := indexWord(&parts, 0)
	for i := s.home(&parts); ; {
		word := s.index[i]
		if word == 0 {
			return 0
		}
		if num := word & maxNumber; word&^maxNumber == tag && s.hotOf(num).hash == parts {
			return num
		}
		if i++; i == len(s.index) {
			i = 0
		}
	}
}

// link adds a key to the index. It grows the index if it is too full.
func (s *shard) link(num uint32) {
	if (s.keys+1)*8 > len(s.index)*indexFull {
		old := s.index
		s.index = make([]uint32, max(len(old)+len(old)/4, 16))
		for _, word := range old {
			if word != 0 {
				s.place(word & maxNumber)
			}
		}
	}
	s.place(num)
	s.keys++
}

// place stores a key at the first free position of the index, starting from its home.
func (s *shard) place(num uint32) {
	parts := &s.hotOf(num).hash
	i := s.home(parts)
	for s.index[i] != 0 {
		if i++; i == len(s.index) {
			i = 0
		}
	}
	s.index[i] = indexWord(parts, num)
}

// unlink removes a key from the index. It closes the gap, so that keys stored behind it are still
// found.
func (s *shard) unlink(num uint32) {
	n := len(s.index)
	i := s.home(&s.hotOf(num).hash)
	for s.index[i]&maxNumber != num {
		i = (i + 1) % n
	}
	s.keys--
	for hole := i; ; {
		s.index[hole] = 0
		for {
			if i = (i + 1) % n; s.index[i] == 0 {
				return
			}
			// A word may move to the hole unless its home is behind the hole.
			home := s.home(&s.hotOf(s.index[i] & maxNumber).hash)
			if (i-home+n)%n >= (i-hole+n)%n {
				break
			}
		}
		s.index[hole] = s.index[i]
		hole = i
	}
}

// insert adds a key and returns its first counter. Room for the key must be reserved.
func (s *shard) insert(k Key, h hash, ls *Limits, ms int64) uint32 {
	first := s.chain(s.addName(k), h.parts(), ls, ms)
	s.link(first)
	return first
}

// crowded reports whether too few numbers are left for the counters of another key. It keeps enough
// numbers for all overflow counters.
func (s *shard) crowded(ls *Limits) bool {
	return int(s.freeCount)+maxNumber+1-int(s.numbers) < len(ls.rules)+maxOverflow*MaxLimits
}

// chain creates a counter for every limit of the list, linked by hot.next, and returns the first.
func (s *shard) chain(name uint32, parts [3]uint32, ls *Limits, ms int64) (first uint32) {
	ls.chains.Add(1)
	var last uint32
	for i := range ls.rules {
		num := s.alloc()
		r := &ls.rules[i]
		h := s.hotOf(num)
		*h = hot{
			rule: uint8(i), hash: parts, flags: unsynced | stale, start: r.newest(ms), seen: seconds(ms), limits: ls.number,
		}
		*s.coldOf(num) = cold{name: name, ticket: s.coldOf(num).ticket + 1}
		if r.isFar() {
			h.near[0].known = s.farOf(r.frames()).alloc()
		}
		if i == 0 {
			first = num
		} else {
			h.hash = [3]uint32{first}
			s.hotOf(last).next = num
		}
		last = num
	}
	return first
}

// alloc returns the number of a free counter.
func (s *shard) alloc() uint32 {
	if num := s.freeNumber; num != 0 {
		s.freeNumber = s.hotOf(num).next
		s.freeCount--
		return num
	}
	num := max(s.numbers, 1) // 0 is not used
	if int(num/chunk) == len(s.hot) {
		s.hot, s.cold = append(s.hot, new([chunk]hot)), append(s.cold, new([chunk]cold))
	}
	s.numbers = num + 1
	return num
}

// remove drops a key and its counters. Its room stays reserved.
func (s *shard) remove(first uint32) {
	s.unlink(first)
	client, user := s.name(s.coldOf(first).name)
	s.garbage += 2 + len(client) + len(user)
	s.unchain(first)
}

// unchain frees the counters of a key. It does not touch the index.
func (s *shard) unchain(first uint32) {
	defer limitsOf(s.hotOf(first).limits).chains.Add(-1)
	s.abandon(first)
	for num := first; num != 0; {
		h := s.hotOf(num)
		next := h.next
		if r := s.ruleOf(num); r.isFar() {
			s.farOf(r.frames()).release(h.near[0].known)
		}
		s.dropExtras(num)
		delete(s.repairs, num)
		delete(s.carried, num)
		delete(s.leases, num)
		s.coldOf(num).ticket++ // invalidates earlier tickets
		*h = hot{state: unused, next: s.freeNumber}
		s.freeNumber, num = num, next
		s.freeCount++
	}
}

// chainOf returns the counters of a key in the order of its limits.
func (s *shard) chainOf(first uint32) (nums [MaxLimits]uint32, n int) {
	for num := first; num != 0; num = s.hotOf(num).next {
		nums[n] = num
		n++
	}
	return nums, n
}

// firstOf returns the first counter of the same key.
func (s *shard) firstOf(num uint32) uint32 {
	if s.hotOf(num).rule == 0 {
		return num
	}
	return s.hotOf(num).hash[0]
}

// addName stores the names of a key and returns their offset.
func (s *shard) addName(k Key) uint32 {
	if s.garbage > len(s.names)/8+1024 {
		s.compactNames()
	}
	at := len(s.names)
	need := at + 2 + len(k.ClientID) + len(k.Username)
	if need > cap(s.names) {
		grown := make([]byte, at, need+max(need/8, 256))
		copy(grown, s.names)
		s.names = grown
	}
	s.names = append(s.names, byte(len(k.ClientID)), byte(len(k.Username))) //nolint:gosec // maxKeySize
	s.names = append(s.names, k.ClientID...)
	s.names = append(s.names, k.Username...)
	return uint32(at) //nolint:gosec // a shard holds far less than 4 GiB
}

// name returns the two names at an offset.
func (s *shard) name(at uint32) (client, user []byte) {
	middle := int(at) + 2 + int(s.names[at])
	return s.names[at+2 : middle], s.names[middle : middle+int(s.names[at+1])]
}

// compactNames copies the names of the remaining keys to a new buffer.
func (s *shard) compactNames() {
	kept := make([]byte, 0, len(s.names)-s.garbage+256)
	for num := uint32(1); num < s.numbers; num++ {
		if !s.isKey(num) {
			continue
		}
		client, user := s.name(s.coldOf(num).name)
		for further := num; further != 0; further = s.hotOf(further).next {
			s.coldOf(further).name = uint32(len(kept)) //nolint:gosec // a shard holds far less than 4 GiB
		}
		kept = append(kept, byte(len(client)), byte(len(user))) //nolint:gosec // maxKeySize
		kept = append(append(kept, client...), user...)
	}
	s.names, s.garbage = kept, 0
}

// key returns the key of a counter.
func (s *shard) key(num uint32) Key {
	client, user := s.name(s.coldOf(num).name)
	return Key{ClientID: string(client), Username: string(user)}
}

// isOf reports whether a counter belongs to a client. The stored name may be a digest, see
// Key.bounded.
func (s *shard) isOf(num uint32, clientID string) bool {
	client, _ := s.name(s.coldOf(num).name)
	return string(client) == clientID || len(clientID) > maxKeySize/2 && string(client) == shorten(clientID)
}

// isInternal reports whether a key starts with [Internal].
func (s *shard) isInternal(num uint32) bool {
	client, _ := s.name(s.coldOf(num).name)
	return len(client) >= len(Internal) && string(client[:len(Internal)]) == Internal
}

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
