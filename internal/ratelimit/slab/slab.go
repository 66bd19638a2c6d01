package slab

import (
	"oauth-server/internal/ratelimit"
)

// Records holds the counters of a part of the keys in flat memory.
type Records struct {
	index []uint32      // open addressing: a tag of the key, and the number of its first counter
	hot   []*[chunk]Hot // by number; 0 is not used

	keys       int    // number of keys in the index
	freeNumber uint32 // head of the list of free numbers, linked by Hot.Next; 0: empty
	FreeCount  uint32 // length of that list
	cold       []*[chunk]Cold
	Numbers    uint32 // how many numbers there are, in use or free, 0 included
	names      []byte // of the keys: two lengths of one byte, then both names
	garbage    int    // bytes of names that belong to no key
	Extras     []Extras
	freeExtras uint32
	far        []*far
}

// Drop removes a key from the index. Its counters stay.
func (s *Records) Drop(first uint32) {
	s.Unlink(first)
	client, user := s.name(s.ColdOf(first).Name)
	s.garbage += 2 + len(client) + len(user)
}

// Free frees a counter. It does not touch the index.
func (s *Records) Free(num uint32) {
	h := s.HotOf(num)
	s.releaseSlots(h, s.RuleOf(num))
	s.DropExtras(num)
	s.ColdOf(num).Ticket++ // invalidates earlier tickets
	*h = Hot{State: Unused, Next: s.freeNumber}
	s.freeNumber = num
	s.FreeCount++
}

// indexFull is the largest part of the index that may be in use, in eighths.
const indexFull = 6

// MaxNumber is the largest number of a counter. An index word has 16 bits for it.
const MaxNumber = 1<<16 - 1

// indexWord returns the index entry of a key: 16 bits of its hash as a tag, and its first counter.
func indexWord(parts *[3]uint32, num uint32) uint32 { return parts[1]<<16 | num }

// home returns the index position where the search for a key starts.
func (s *Records) home(parts *[3]uint32) int {
	return int(uint64(parts[0]) * uint64(len(s.index)) >> 32)
}

// Find returns the number of the first counter of a key, or 0 if the key is not in memory.
func (s *Records) Find(h Hash) uint32 {
	if len(s.index) == 0 {
		return 0
	}
	parts := h.Parts()
	tag := indexWord(&parts, 0)
	for i := s.home(&parts); ; {
		word := s.index[i]
		if word == 0 {
			return 0
		}
		if num := word & MaxNumber; word&^MaxNumber == tag && s.HotOf(num).hash == parts {
			return num
		}
		if i++; i == len(s.index) {
			i = 0
		}
	}
}

// Link adds a key to the index. It grows the index if it is too full.
func (s *Records) Link(num uint32) {
	if (s.keys+1)*8 > len(s.index)*indexFull {
		old := s.index
		s.index = make([]uint32, max(len(old)+len(old)/4, 16))
		for _, word := range old {
			if word != 0 {
				s.place(word & MaxNumber)
			}
		}
	}
	s.place(num)
	s.keys++
}

// place stores a key at the first free position of the index, starting from its home.
func (s *Records) place(num uint32) {
	parts := &s.HotOf(num).hash
	i := s.home(parts)
	for s.index[i] != 0 {
		if i++; i == len(s.index) {
			i = 0
		}
	}
	s.index[i] = indexWord(parts, num)
}

// Unlink removes a key from the index. It closes the gap, so that keys stored behind it are still
// found.
func (s *Records) Unlink(num uint32) {
	n := len(s.index)
	i := s.home(&s.HotOf(num).hash)
	for s.index[i]&MaxNumber != num {
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
			home := s.home(&s.HotOf(s.index[i] & MaxNumber).hash)
			if (i-home+n)%n >= (i-hole+n)%n {
				break
			}
		}
		s.index[hole] = s.index[i]
		hole = i
	}
}

// Insert adds a key and returns its first counter. Room for the key must be reserved.
func (s *Records) Insert(k ratelimit.Key, h Hash, ls *ratelimit.Limits, ms int64) uint32 {
	first := s.Chain(s.addName(k), h.Parts(), ls, ms)
	s.Link(first)
	return first
}

// Chain creates a counter for every limit of the list, and returns the first.
func (s *Records) Chain(name uint32, parts [3]uint32, ls *ratelimit.Limits, ms int64) (first uint32) {
	var nums [ratelimit.MaxLimits]uint32
	for i := range ls.Rules {
		nums[i] = s.Add(name, &ls.Rules[i], ms)
	}
	ls.Hold()
	return s.Join(nums[:len(ls.Rules)], parts, Seconds(ms), ls)
}

// Add creates a counter that is not in a chain yet.
func (s *Records) Add(name uint32, r *ratelimit.Rule, ms int64) uint32 {
	num := s.alloc()
	h := s.HotOf(num)
	*h = Hot{Flags: Unsynced, Start: r.Newest(ms)}
	*s.ColdOf(num) = Cold{Name: name, Ticket: s.ColdOf(num).Ticket + 1}
	s.allocSlots(h, r)
	return num
}

// Join puts counters under a list, one for each of its limits, and links them by Hot.Next. It returns
// the first.
func (s *Records) Join(nums []uint32, parts [3]uint32, seen uint32, ls *ratelimit.Limits) (first uint32) {
	first = nums[0]
	end := new(uint32)
	for i, num := range nums {
		h := s.HotOf(num)
		h.Rule, h.Limits, h.Seen, h.Next, h.hash = uint8(i), ls.Number, seen, 0, [3]uint32{first}
		*end, end = num, &h.Next
	}
	s.HotOf(first).hash = parts
	return first
}

// alloc returns the number of a free counter.
func (s *Records) alloc() uint32 {
	if num := s.freeNumber; num != 0 {
		s.freeNumber = s.HotOf(num).Next
		s.FreeCount--
		return num
	}
	num := max(s.Numbers, 1) // 0 is not used
	if int(num/chunk) == len(s.hot) {
		s.hot, s.cold = append(s.hot, new([chunk]Hot)), append(s.cold, new([chunk]Cold))
	}
	s.Numbers = num + 1
	return num
}

// ChainOf returns the counters of a key in the order of its limits.
func (s *Records) ChainOf(first uint32) (nums [ratelimit.MaxLimits]uint32, n int) {
	for num := first; num != 0; num = s.HotOf(num).Next {
		nums[n] = num
		n++
	}
	return nums, n
}

// FirstOf returns the first counter of the same key.
func (s *Records) FirstOf(num uint32) uint32 {
	if s.HotOf(num).Rule == 0 {
		return num
	}
	return s.HotOf(num).hash[0]
}

// addName stores the names of a key and returns their offset.
func (s *Records) addName(k ratelimit.Key) uint32 {
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
	s.names = append(s.names, byte(len(k.ClientID)), byte(len(k.Username))) //nolint:gosec // MaxKeySize
	s.names = append(s.names, k.ClientID...)
	s.names = append(s.names, k.Username...)
	return uint32(at) //nolint:gosec // a shard holds far less than 4 GiB
}

// name returns the two names at an offset.
func (s *Records) name(at uint32) (client, user []byte) {
	middle := int(at) + 2 + int(s.names[at])
	return s.names[at+2 : middle], s.names[middle : middle+int(s.names[at+1])]
}

// compactNames copies the names of the remaining keys to a new buffer.
func (s *Records) compactNames() {
	kept := make([]byte, 0, len(s.names)-s.garbage+256)
	for num := uint32(1); num < s.Numbers; num++ {
		if !s.IsKey(num) {
			continue
		}
		client, user := s.name(s.ColdOf(num).Name)
		for further := num; further != 0; further = s.HotOf(further).Next {
			s.ColdOf(further).Name = uint32(len(kept)) //nolint:gosec // a shard holds far less than 4 GiB
		}
		kept = append(kept, byte(len(client)), byte(len(user))) //nolint:gosec // MaxKeySize
		kept = append(append(kept, client...), user...)
	}
	s.names, s.garbage = kept, 0
}

// Key returns the key of a counter.
func (s *Records) Key(num uint32) ratelimit.Key {
	client, user := s.name(s.ColdOf(num).Name)
	return ratelimit.Key{ClientID: string(client), Username: string(user)}
}

// IsOf reports whether a counter belongs to a client. The stored name may be a digest, see
// Key.Bounded.
func (s *Records) IsOf(num uint32, clientID string) bool {
	client, _ := s.name(s.ColdOf(num).Name)
	return string(client) == clientID || len(clientID) > ratelimit.MaxKeySize/2 && string(client) == ratelimit.Shorten(clientID)
}

// IsInternal reports whether a key starts with [ratelimit.Internal].
func (s *Records) IsInternal(num uint32) bool {
	client, _ := s.name(s.ColdOf(num).Name)
	return len(client) >= len(ratelimit.Internal) && string(client[:len(ratelimit.Internal)]) == ratelimit.Internal
}

// Hot is the part of a counter that a decision reads and writes.
type Hot struct {
	hash    [3]uint32 // of the key; for its second and later limits, [0] is the number of the first counter
	Rule    uint8     // index of the limit in the list
	State   State
	Flags   Flags
	Holders uint8                                // processes that may hold back counts, this one included; 0: unknown
	Start   int64                                // of the newest frame, milliseconds since the epoch
	Near    [ratelimit.NearFrames]ratelimit.Slot // with one frame per window, the slots; otherwise Near[0].Known is a block of far
	Seen    uint32                               // last request of the key, seconds since the epoch
	Limits  uint32                               // number of the list of limits
	Next    uint32                               // the counter of the key's next limit, or the next free number
	Extra   uint32                               // see Extras
}

// Cold is the part of a counter that only exchanges need.
type Cold struct {
	Etag    [2]uint32                    // of the document when last read; version and etag 0: no document
	Version uint32                       // of the document when last read; MaxVersion stands for all higher ones
	Name    uint32                       // offset of the key's names in the shard's names
	Began   uint32                       // tick at which the latest exchange began
	Synced  uint32                       // tick at which the exchange that set Known began
	Mine    [ratelimit.NearFrames]uint32 // confirmed counts of this process, by frame; see far
	Ticket  uint16                       // number of the latest ticket
	Recent  uint8                        // recent exchanges; see recentAt in package counting
}

// Extras is data that few counters have: a pending write, or parts of the document to be removed.
type Extras struct {
	Seq       int64       // of the pending write; 0 for none
	Frames    Observation // frames of the document that are too old to matter
	Writers   Observation // writers of dead processes
	next      uint32      // in the list of free extras
	Fails     uint8       // successive exchanges that left the outcome of the pending write unknown
	Conflicts uint8       // successive exchanges that refused the pending write
	Uncertain bool        // the outcome of at least one attempt at the pending write is unknown
	Reframed  bool        // the frame length has changed since the pending write was made
}

// chunk is the number of records that are allocated together. When a chunk is full, another one is
// added, so records are never copied and little memory is unused.
const chunk = 64

// HotOf returns the hot record of a counter.
func (s *Records) HotOf(num uint32) *Hot { return &s.hot[num/chunk][num%chunk] }

// ColdOf returns the cold record of a counter.
func (s *Records) ColdOf(num uint32) *Cold { return &s.cold[num/chunk][num%chunk] }

// MaxVersion is the largest version that a counter can store. It stands for that and all higher
// ones.
const MaxVersion = 1<<32 - 1

// SetVersion stores the version and etag of the document.
func (c *Cold) SetVersion(version, etag int64) {
	c.Version = uint32(min(max(version, 0), MaxVersion))
	c.Etag = [2]uint32{uint32(etag >> 32), uint32(etag)} //nolint:gosec // both halves
}

// EtagValue returns the etag stored by SetVersion.
func (c *Cold) EtagValue() int64 { return int64(c.Etag[0])<<32 | int64(c.Etag[1]) }

// far holds the slots of counters with several frames per window, in blocks of equal width.
type far struct {
	width int // slots in a block
	slots []ratelimit.Slot
	mine  []uint32 // see Cold.Mine
	free  []uint32 // numbers of free blocks
}

// alloc returns the number of an empty block.
func (f *far) alloc() uint32 {
	if n := len(f.free); n > 0 {
		block := f.free[n-1]
		f.free = f.free[:n-1]
		return block
	}
	f.slots = append(f.slots, make([]ratelimit.Slot, f.width)...)
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
func (s *Records) farOf(width int) *far {
	for _, f := range s.far {
		if f.width == width {
			return f
		}
	}
	f := &far{width: width}
	s.far = append(s.far, f)
	return f
}

// allocSlots gives a counter without slots empty ones for a rule.
func (s *Records) allocSlots(h *Hot, r *ratelimit.Rule) {
	if r.IsFar() {
		h.Near[0].Known = s.farOf(r.Kept()).alloc()
	}
}

// releaseSlots frees the slots of a counter.
func (s *Records) releaseSlots(h *Hot, r *ratelimit.Rule) {
	if r.IsFar() {
		s.farOf(r.Kept()).release(h.Near[0].Known)
	}
}

// Reslot gives a counter empty slots for another rule, and empty counts of this process.
func (s *Records) Reslot(num uint32, was, r *ratelimit.Rule) {
	h := s.HotOf(num)
	s.releaseSlots(h, was)
	h.Near, s.ColdOf(num).Mine = [ratelimit.NearFrames]ratelimit.Slot{}, [ratelimit.NearFrames]uint32{}
	s.allocSlots(h, r)
}

// Slots returns the slots of a counter, one per frame, the newest first.
func (s *Records) Slots(h *Hot, r *ratelimit.Rule) []ratelimit.Slot {
	if !r.IsFar() {
		return h.Near[:]
	}
	f := s.farOf(r.Kept())
	lo := int(h.Near[0].Known) * f.width
	return f.slots[lo : lo+f.width]
}

// Mine returns the confirmed counts of this process in the document, by frame, the newest first.
func (s *Records) Mine(num uint32, r *ratelimit.Rule) []uint32 {
	if !r.IsFar() {
		return s.ColdOf(num).Mine[:]
	}
	f := s.farOf(r.Kept())
	lo := int(s.HotOf(num).Near[0].Known) * f.width
	return f.mine[lo : lo+f.width]
}

// ExtrasOf returns the extras of a counter. It allocates them if the counter has none. The pointer
// is valid until the next call.
func (s *Records) ExtrasOf(num uint32) *Extras {
	h := s.HotOf(num)
	if h.Extra != 0 {
		return &s.Extras[h.Extra]
	}
	if s.freeExtras != 0 {
		h.Extra = s.freeExtras
		s.freeExtras = s.Extras[h.Extra].next
		s.Extras[h.Extra] = Extras{}
		return &s.Extras[h.Extra]
	}
	if len(s.Extras) == 0 {
		s.Extras = append(s.Extras, Extras{}) // 0 is not used
	}
	h.Extra = uint32(len(s.Extras)) //nolint:gosec // fewer than counters
	s.Extras = append(s.Extras, Extras{})
	return &s.Extras[h.Extra]
}

// DropExtras frees the extras of a counter.
func (s *Records) DropExtras(num uint32) {
	h := s.HotOf(num)
	if h.Extra != 0 {
		s.Extras[h.Extra] = Extras{next: s.freeExtras}
		s.freeExtras, h.Extra = h.Extra, 0
	}
}

// PendingSeq returns the sequence of the pending write of a counter, or 0.
func (s *Records) PendingSeq(num uint32) int64 {
	if extra := s.HotOf(num).Extra; extra != 0 {
		return s.Extras[extra].Seq
	}
	return 0
}

// State is the state of a counter between two exchanges. Package counting has a table. The
// states up to urgent are ordered by urgency.
type State uint8

// The states.
const (
	Quiet    State = iota // nothing to exchange
	Watching              // its document is to be read at a certain time
	Lazy                  // has counts to write within a time
	Urgent                // to be written or read as soon as its spacing allows
	Busy                  // in an exchange
	Unused                // no counter
)

// Flags describe a counter and the process's knowledge of its document.
type Flags uint8

// The flags.
const (
	Unsynced        Flags = 1 << iota // no exchange has read the document yet
	Stale                             // the document must be read at once: known differs from it, or may be too old
	ReadFirst                         // the document must be read before the pending write is sent again
	Contended                         // other processes wrote the document recently
	DeniedSinceSync                   // a request was denied since the last exchange
	Failing                           // the outcome of the pending write remains unknown
	Pooled                            // an overflow counter: shared by several keys, never exchanged
	Carried                           // has counts besides its document: see carry in package counting
)

// Has reports whether any of the flags g is set.
func (f Flags) Has(g Flags) bool { return f&g != 0 }

// Set sets or clears the flags g.
func (f *Flags) Set(g Flags, on bool) {
	if *f &^= g; on {
		*f |= g
	}
}

// IsKey reports whether num is the first counter of a key.
func (s *Records) IsKey(num uint32) bool {
	h := s.HotOf(num)
	return h.State != Unused && h.Rule == 0 && !h.Flags.Has(Pooled)
}

// SlotsOf returns the slots of a counter, the newest first.
func (s *Records) SlotsOf(num uint32) []ratelimit.Slot { return s.Slots(s.HotOf(num), s.RuleOf(num)) }

// RuleOf returns the rule of a counter.
func (s *Records) RuleOf(num uint32) *ratelimit.Rule {
	h := s.HotOf(num)
	return &ratelimit.LimitsOf(h.Limits).Rules[h.Rule]
}

// Seconds converts milliseconds to the format of Hot.Seen.
func Seconds(ms int64) uint32 { return uint32(ms / 1000) } //nolint:gosec // until the year 2106

// FindUnder returns the first counter of a key under certain limits. It returns 0 if the key is not
// in memory, or has other limits.
func (s *Records) FindUnder(h Hash, ls *ratelimit.Limits) uint32 {
	if first := s.Find(h); first != 0 && s.HotOf(first).Limits == ls.Number {
		return first
	}
	return 0
}
