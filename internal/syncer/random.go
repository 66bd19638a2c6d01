package syncer

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	randv2 "math/rand/v2"
	"sync"
	"time"
)

// random makes the random choices of a process. IDs, etags and sequences must differ between copies
// of a process, which have the same memory, so their bits are read from the system each time. They
// are not secrets: a program that can write the documents has no need to guess them.
type random struct {
	mu         sync.Mutex
	state      *randv2.Rand // for waits; the same in a copy of the process
	repeatable bool         // take all bits from state, for simulations
}

// newRandom returns the random choices of a process; see Config.Seed.
func newRandom(seed uint64) *random {
	r := &random{repeatable: seed != 0}
	if seed == 0 {
		seed = randv2.Uint64() //nolint:gosec // for waits alone
	}
	r.state = randv2.New(randv2.NewPCG(seed, seed)) //nolint:gosec // see above
	return r
}

// bits returns n random bits; n is at most 63.
func (r *random) bits(n int) int64 {
	if !r.repeatable {
		var b [8]byte
		_, _ = rand.Read(b[:])                                     // never fails (crypto/rand)
		return int64(binary.LittleEndian.Uint64(b[:]) >> (64 - n)) //nolint:gosec // n bits
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Int64() >> (63 - n)
}

// upTo returns a random duration from 0 to d.
func (r *random) upTo(d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.state.Int64N(int64(d) + 1))
}

// jitter returns a wait changed at random by up to a tenth, so that instances do not act at the
// same moment.
func (s *Syncer) jitter(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d*9/10 + s.random.upTo(d/5)
}

// newEtag returns a random etag, not 0.
func (s *Syncer) newEtag() int64 { return s.random.bits(62) + 1 }

// newID returns a random ID, 64 bits in hexadecimal.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
