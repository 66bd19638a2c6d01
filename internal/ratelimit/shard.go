package ratelimit

import "sync"

// shard is a part of the keys under one lock.
type shard struct {
	// A decision touches these, which fill a cache line.
	mu    sync.Mutex
	index []uint32      // open addressing: a tag of the key, and the number of its first counter
	hot   []*[chunk]hot // by number; 0 is not used
	all   *totals

	inbox  []uint32 // counters for the syncer
	outbox []uint32 // the inbox before, to be used again
	number uint32

	keys       int    // in the index
	freeNumber uint32 // the first of the numbers that can be used again
	freeCount  uint32 // how many those are
	cold       []*[chunk]cold
	numbers    uint32 // that there are, in use or not, 0 included
	names      []byte // of the keys: both lengths, then both names
	garbage    int    // bytes of names that belong to no key

	extras     []extras
	freeExtras uint32
	far        []*far
	chores     map[uint32]*chores // what is to be done to documents, by counter
	carried    map[uint32][]carry // what is known from elsewhere, by counter
	shared     []overflow
	_          [20]byte // shards share no cache line
}

// indexFull is the share of the index, in eighths, that may be in use.
const indexFull = 6

// maxNumber bounds the numbers of counters: a word of the index has 16 bits for one.
const maxNumber = 1<<16 - 1

// parts are what a counter keeps of its key's hash. The shard says a little more
// of it.
func (h hash) parts() [3]uint32 {
	return [3]uint32{uint32(h.hi), uint32(h.lo), uint32(h.lo >> 32)} //nolint:gosec // halves are meant
}

// indexWord is what stands in the index for a key.
func indexWord(parts *[3]uint32, num uint32) uint32 { return parts[1]<<16 | num }

// home is where the search for a key begins.
func (s *shard) home(parts *[3]uint32) int { return int(uint64(parts[0]) * uint64(len(s.index)) >> 32) }

// find returns the number of the first counter of a key; 0 if there is none.
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

// link adds a key to the index.
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

// unlink removes a key from the index, and moves those up that stand behind it
// because its place was taken.
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
			// A word may move to the hole unless its home lies behind the hole.
			home := s.home(&s.hotOf(s.index[i] & maxNumber).hash)
			if (i-home+n)%n >= (i-hole+n)%n {
				break
			}
		}
		s.index[hole] = s.index[i]
		hole = i
	}
}

// insert makes the counters of a key, for which room was reserved, and returns
// the number of the first.
func (s *shard) insert(k Key, h hash, ls *Limits, ms int64) uint32 {
	first := s.chain(s.addName(k), h.parts(), ls, ms)
	s.link(first)
	return first
}

// crowded reports whether there are no numbers left for the counters of a key:
// those of all overflow counters are kept free.
func (s *shard) crowded(ls *Limits) bool {
	return int(s.freeCount)+maxNumber+1-int(s.numbers) < len(ls.rules)+maxOverflow*MaxLimits
}

// chain makes a counter for every limit of the list.
func (s *shard) chain(name uint32, parts [3]uint32, ls *Limits, ms int64) (first uint32) {
	var last uint32
	for i := range ls.rules {
		num := s.alloc()
		r := &ls.rules[i]
		h := s.hotOf(num)
		*h = hot{
			rule: uint8(i), hash: parts, flags: unsynced | stale, start: r.align(ms), seen: seconds(ms), limits: ls.number,
		}
		*s.coldOf(num) = cold{name: name, ticket: s.coldOf(num).ticket + 1}
		if r.Frames > 1 {
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

// remove drops a key and all its counters. Its room stays reserved.
func (s *shard) remove(first uint32) {
	s.unlink(first)
	client, user := s.name(s.coldOf(first).name)
	s.garbage += 2 + len(client) + len(user)
	s.unchain(first)
}

// unchain gives the counters of a key back, whatever the index says.
func (s *shard) unchain(first uint32) {
	for num := first; num != 0; {
		h := s.hotOf(num)
		next := h.next
		if r := &limitsOf(h.limits).rules[h.rule]; r.Frames > 1 {
			s.farOf(r.frames()).release(h.near[0].known)
		}
		s.dropExtras(num)
		delete(s.chores, num)
		delete(s.carried, num)
		s.coldOf(num).ticket++ // those that were drawn are refused
		*h = hot{state: unused, next: s.freeNumber}
		s.freeNumber, num = num, next
		s.freeCount++
	}
}

// chainOf lists the counters of a key in the order of its limits.
func (s *shard) chainOf(first uint32) (nums [MaxLimits]uint32, n int) {
	for num := first; num != 0; num = s.hotOf(num).next {
		nums[n] = num
		n++
	}
	return nums, n
}

// firstOf returns the first counter of the key that a counter belongs to.
func (s *shard) firstOf(num uint32) uint32 {
	if s.hotOf(num).rule == 0 {
		return num
	}
	return s.hotOf(num).hash[0]
}

// addName stores the name of a key and returns where it begins.
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

// name returns both parts of the name that begins there.
func (s *shard) name(at uint32) (client, user []byte) {
	middle := int(at) + 2 + int(s.names[at])
	return s.names[at+2 : middle], s.names[middle : middle+int(s.names[at+1])]
}

// compactNames leaves out the names of keys that are gone.
func (s *shard) compactNames() {
	kept := make([]byte, 0, len(s.names)-s.garbage+256)
	for num := uint32(1); num < s.numbers; num++ {
		h := s.hotOf(num)
		if h.state == unused || h.rule != 0 || h.flags.has(pooled) {
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

// isOf reports whether a counter belongs to a client, whose name may stand for
// itself or, beside a long username, as its digest.
func (s *shard) isOf(num uint32, clientID string) bool {
	client, _ := s.name(s.coldOf(num).name)
	return string(client) == clientID || len(clientID) > maxKeySize/2 && string(client) == shorten(clientID)
}
