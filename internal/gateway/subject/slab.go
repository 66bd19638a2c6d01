package subject

// chunk is the number of records that are allocated together. When they are full, another chunk is
// allocated, so records are never copied. With 256 records, both kinds of chunk fill a size class
// of the allocator.
const chunk = 256

// A slab holds records of a pointer-free type, numbered from 1. The user of the slab links freed
// records into a list.
type slab[T any] struct {
	chunks []*[chunk]T
	used   uint32 // number of allocated records
}

// at returns a record. It is valid until its number is reused.
func (s *slab[T]) at(num uint32) *T { return &s.chunks[(num-1)/chunk][(num-1)%chunk] }

// extend returns the number of a new record.
func (s *slab[T]) extend() uint32 {
	if int(s.used) == len(s.chunks)*chunk {
		s.chunks = append(s.chunks, new([chunk]T))
	}
	s.used++
	return s.used
}

// An entry is a refresh token with its user.
type entry struct {
	digest  [16]byte     // the first half of the token's SHA-256
	client  [2]uint32    // hash of the client id
	expires uint32       // seconds since the epoch
	chain   uint32       // the next entry of the bucket, or the next free one
	older   uint32       // the entry that was put before this one; 0: none
	newer   uint32       // the entry that was put after this one; 0: none
	rest    uint32       // first block of the rest of the subject; 0: none
	size    uint8        // of the subject in bytes; 0: the entry is free
	inline  [inline]byte // the subject, or its beginning
}

// inline is the number of subject bytes in the entry itself. It fits a UUID of 36 characters,
// rounded up to make the size of the entry a multiple of 4.
const inline = 39

// A block holds a further part of a longer subject.
type block struct {
	next uint32 // the next block of the subject, or the next free one; 0: none
	data [60]byte
}
