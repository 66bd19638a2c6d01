package syncer

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	randv2 "math/rand/v2"
	"sync"
	"time"
)

// random draws the waits of a process. A copy of the process has the same memory and draws the same
// waits.
type random struct {
	mu    sync.Mutex
	state *randv2.Rand
}

// newRandom returns the random waits of a process; see Config.Seed.
func newRandom(seed uint64) *random {
	if seed == 0 {
		seed = randv2.Uint64() //nolint:gosec // for waits alone
	}
	return &random{state: randv2.New(randv2.NewPCG(seed, seed))} //nolint:gosec // see above
}

// randomBits returns n random bits for an etag or a sequence; n is at most 63. These must differ
// between copies of a process, which have the same memory, so they are read from the system each
// time. They are not secrets: a program that can write the documents has no need to guess them.
func randomBits(n int) int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                     // never fails (crypto/rand)
	return int64(binary.LittleEndian.Uint64(b[:]) >> (64 - n)) //nolint:gosec // n bits
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
func newEtag() int64 { return randomBits(62) + 1 }

// newID returns a random ID, 64 bits in hexadecimal.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
