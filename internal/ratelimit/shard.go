package ratelimit

import "sync"

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
	chores     map[uint32]*chores // by counter
	carried    map[uint32][]carry // by counter
	shared     []overflow
	leases     map[uint32]*lease // by counter
	waiting    map[uint32]*line  // by the first counter of their key
	_          [4]byte           // shards share no cache line
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
		if r := &limitsOf(h.limits).rules[h.rule]; r.isFar() {
			s.farOf(r.frames()).release(h.near[0].known)
		}
		s.dropExtras(num)
		delete(s.chores, num)
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
