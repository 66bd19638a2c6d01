package syncer

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	randv2 "math/rand/v2"
	"time"
)

// Config says how a [Syncer] works. [DefaultConfig] has a value for everything.
type Config struct {
	// Interval is how long counts wait that do not matter to other instances yet.
	Interval time.Duration
	// Timeout is how long one call of the store may take; TimeoutPerItem is
	// added for each write or document in it.
	Timeout, TimeoutPerItem time.Duration
	// MaxBackoff bounds the wait after failures of the store.
	MaxBackoff time.Duration
	// Beat is how often the instance says that it is alive, and looks who
	// else is; SweepEvery, how often idle counters are dropped; ClockEvery,
	// how often the store's clock is looked at.
	Beat, SweepEvery, ClockEvery time.Duration
	// Host and Version describe the instance to operators.
	Host, Version string
	// Now is the clock of this machine.
	Now func() time.Time
	// Seed makes every random choice repeatable; 0 for a random one.
	Seed uint64
	Log  *slog.Logger
	// Observer is told of every call of the store. Optional.
	Observer Observer
}

// DefaultConfig flushes every second, and keeps to itself.
func DefaultConfig() Config {
	return Config{
		Interval: time.Second,
		Timeout:  3 * time.Second, TimeoutPerItem: 12 * time.Millisecond,
		MaxBackoff: 5 * time.Second,
		Beat:       3 * time.Second, SweepEvery: 30 * time.Second, ClockEvery: 30 * time.Second,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

// beatsToLive is how many beats an instance may miss before it counts as gone.
const beatsToLive = 4

// Op is a kind of call to the store.
type Op string

// The calls.
const (
	OpApply Op = "apply"
	OpLoad  Op = "load"
	OpClock Op = "clock"
	OpBeat  Op = "beat"
)

// Observer watches the calls to the store. Its methods must return quickly and
// be safe for concurrent use.
type Observer interface {
	// Call is told of each call when it has ended, with the number of writes or
	// documents in it.
	Call(op Op, items int, took time.Duration, err error)
}

type noObserver struct{}

// Call implements [Observer].
func (noObserver) Call(Op, int, time.Duration, error) {}

// newID returns a name for this process that no other ever had.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// newRandom returns the source of jitter and etags. Etags guard against
// mistakes, not against attackers: whoever can write the documents needs not guess.
func newRandom(seed uint64) *randv2.Rand {
	if seed == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails (crypto/rand)
		seed = binary.LittleEndian.Uint64(b[:])
	}
	return randv2.New(randv2.NewPCG(seed, seed)) //nolint:gosec // see above
}
