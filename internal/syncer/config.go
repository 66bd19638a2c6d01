package syncer

import (
	"log/slog"
	"time"

	"oauth-server/internal/clock"
)

// Config says how a [Syncer] works. [DefaultConfig] has a value for everything.
type Config struct {
	// Interval is how long counts wait that do not matter to other instances yet.
	Interval time.Duration
	// Timeout is how long one call of the store may take; TimeoutPerItem is
	// added for each item in it.
	Timeout, TimeoutPerItem time.Duration
	// MaxBackoff bounds the wait after failures of the store.
	MaxBackoff time.Duration
	// Beat is how often the instance stores its heartbeat, looks which other
	// instances are alive, and compares the clocks; SweepEvery, how often idle
	// counters are dropped.
	Beat, SweepEvery time.Duration
	// Report returns what this instance shows operators; it goes out with each
	// heartbeat. Nil for nothing.
	Report func() []byte
	// Clock is the time that the counters go by. Start sets it.
	Clock *clock.Clock
	// Seed makes waits, etags and sequences repeatable, for simulations; 0 for
	// random ones.
	Seed uint64
	Log  *slog.Logger
	// Observer is called after every call of the store. Nil for none.
	Observer Observer
}

// DefaultConfig flushes every second, and logs nothing. Its clock is that of
// this machine until Start.
func DefaultConfig() Config {
	return Config{
		Interval: time.Second,
		Timeout:  3 * time.Second, TimeoutPerItem: 12 * time.Millisecond,
		MaxBackoff: 5 * time.Second,
		Beat:       3 * time.Second, SweepEvery: 30 * time.Second,
		Clock: clock.New(nil), Log: slog.New(slog.DiscardHandler),
	}
}

// beatsToLive is how many beats an instance may miss before it counts as gone.
const beatsToLive = 4

// Op is a kind of call to the store, as metrics name it.
type Op string

// The calls. An exchange is seen as a write, a read, or both.
const (
	OpWrite Op = "write"
	OpRead  Op = "read"
	OpClock Op = "clock"
	OpBeat  Op = "beat"
)

// Ops lists the calls.
func Ops() []Op { return []Op{OpWrite, OpRead, OpClock, OpBeat} }

// Observer watches the calls to the store. Its methods must not block and must
// be safe for concurrent use.
type Observer interface {
	// Call reports one call that has ended: the number of writes or documents
	// in it, how long it took, and its error.
	Call(op Op, items int, took time.Duration, err error)
}

type noObserver struct{}

// Call implements [Observer].
func (noObserver) Call(Op, int, time.Duration, error) {}
