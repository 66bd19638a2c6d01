package subject

import (
	"encoding/binary"
	"sync"
	"unsafe"
)

// A shard is a hash table of entries. The entries also form a list in insertion order. A hand moves
// over them to remove expired ones.
type shard struct {
	mu      sync.Mutex
	limit   uint32   // maximum number of entries
	length  uint32   // number of entries
	buckets []uint32 // first entry of each bucket; the length is a power of two
	entries slab[entry]
	blocks  slab[block]
	oldest  uint32
	newest  uint32
	hand    uint32 // the last entry that sweep checked
	free    uint32 // first free entry
	spare   uint32 // first free block

	_ [64]byte // keeps the lock of the next shard on another cache line
}

// sweepStep is the number of entries that each Put checks. It is more than one, so the hand moves
// faster than new entries arrive, and expired entries are removed before they are evicted.
const sweepStep = 4

// bucket returns the bucket of a digest.
func (s *shard) bucket(digest *[16]byte) *uint32 {
	return &s.buckets[binary.LittleEndian.Uint32(digest[8:])&uint32(len(s.buckets)-1)] //nolint:gosec // below 1<<32
}

// find returns the entry of a digest, or 0 if it has no entry.
func (s *shard) find(digest *[16]byte) uint32 {
	if len(s.buckets) == 0 {
		return 0
	}
	num := *s.bucket(digest)
	for num != 0 {
		e := s.entries.at(num)
		if e.digest == *digest {
			return num
		}
		num = e.chain
	}
	return 0
}

// put adds an entry as the newest. The digest must not have an entry.
func (s *shard) put(now uint32, e *entry, subject string) {
	s.sweep(now)
	num := s.take()
	if int(s.length) == len(s.buckets) {
		s.grow()
	}
	place := s.entries.at(num)
	*place = *e
	place.size = uint8(len(subject)) //nolint:gosec // at most maxSubject
	s.store(&place.rest, subject[copy(place.inline[:], subject):])
	s.link(num, place)
	place.older = s.newest
	if s.newest != 0 {
		s.entries.at(s.newest).newer = num
	} else {
		s.oldest = num
	}
	s.newest = num
	s.length++
}

// sweep removes the expired entries among the next few.
func (s *shard) sweep(now uint32) {
	for range min(sweepStep, s.entries.used) {
		s.hand = s.hand%s.entries.used + 1
		if e := s.entries.at(s.hand); e.size != 0 && e.expires <= now {
			s.remove(s.hand)
		}
	}
}

// take returns the number of a free entry. It evicts the oldest entry if the shard is full.
func (s *shard) take() uint32 {
	if s.length == s.limit {
		s.remove(s.oldest)
	}
	if s.free == 0 {
		return s.entries.extend()
	}
	num := s.free
	s.free = s.entries.at(num).chain
	return num
}

// remove frees an entry and its blocks.
func (s *shard) remove(num uint32) {
	e := s.entries.at(num)
	from := s.bucket(&e.digest)
	for *from != num {
		from = &s.entries.at(*from).chain
	}
	*from = e.chain
	if e.older != 0 {
		s.entries.at(e.older).newer = e.newer
	} else {
		s.oldest = e.newer
	}
	if e.newer != 0 {
		s.entries.at(e.newer).older = e.older
	} else {
		s.newest = e.older
	}
	for next := e.rest; next != 0; {
		b, num := s.blocks.at(next), next
		next = b.next
		*b = block{next: s.spare}
		s.spare = num
	}
	*e = entry{chain: s.free}
	s.free = num
	s.length--
}

// grow doubles the number of buckets.
func (s *shard) grow() {
	s.buckets = make([]uint32, max(2*len(s.buckets), 8))
	for num := uint32(1); num <= s.entries.used; num++ {
		if e := s.entries.at(num); e.size != 0 {
			s.link(num, e)
		}
	}
}

// link makes an entry the first of its bucket.
func (s *shard) link(num uint32, e *entry) {
	first := s.bucket(&e.digest)
	e.chain, *first = *first, num
}

// store stores the rest of a subject in blocks, and the number of the first block in at.
func (s *shard) store(at *uint32, rest string) {
	for rest != "" {
		num := s.spare
		if num == 0 {
			num = s.blocks.extend()
		}
		b := s.blocks.at(num)
		if num == s.spare {
			s.spare = b.next
		}
		b.next = 0
		rest = rest[copy(b.data[:], rest):]
		*at, at = num, &b.next
	}
}

// subject returns a copy of the subject of an entry.
func (s *shard) subject(e *entry) string {
	size := int(e.size)
	if size <= inline {
		return string(e.inline[:size])
	}
	var buffer [maxSubject]byte
	n := copy(buffer[:], e.inline[:])
	for num := e.rest; n < size; {
		b := s.blocks.at(num)
		n += copy(buffer[n:size], b.data[:])
		num = b.next
	}
	return string(buffer[:size])
}

// bytes returns the memory of the shard in bytes.
func (s *shard) bytes() int {
	const pointer = unsafe.Sizeof(uintptr(0))
	return int(unsafe.Sizeof(*s)) +
		len(s.entries.chunks)*int(unsafe.Sizeof([chunk]entry{})) + cap(s.entries.chunks)*int(pointer) +
		len(s.blocks.chunks)*int(unsafe.Sizeof([chunk]block{})) + cap(s.blocks.chunks)*int(pointer) +
		cap(s.buckets)*int(unsafe.Sizeof(uint32(0)))
}
