package syncer

import (
	"log/slog"
	"time"

	"oauth-server/internal/syncer/clock"
)

// Config configures a [Syncer]. [DefaultConfig] has values for all fields.
type Config struct {
	// Interval is the flush interval: how long counts wait that do not yet matter to other
	// instances. Counts of a key far below its limit wait up to ten times as long.
	Interval time.Duration
	// Timeout bounds one call of the store; timeoutPerItem is added for each item in it.
	Timeout time.Duration
	// MaxBackoff bounds the wait after failures of the store.
	MaxBackoff time.Duration
	// Beat is the time between heartbeats. With a heartbeat, the instance stores its own record,
	// reads which others are alive, and compares the clocks.
	Beat time.Duration
	// Report returns the operators' report that the heartbeat of this instance carries. Nil: none.
	Report func() []byte
	// Clock is the process time that the counters use. Start sets it.
	Clock *clock.Clock
	// Seed makes the random waits repeatable, for simulations; 0 makes them random.
	Seed uint64
	Log  *slog.Logger
	// Observer is called after every call of the store. Nil: none.
	Observer Observer
}

// DefaultConfig has a flush interval of a second and logs nothing. Its clock is this machine's
// clock until Start.
func DefaultConfig() Config {
	return Config{
		Interval: time.Second,
		Timeout:  3 * time.Second, MaxBackoff: 5 * time.Second, Beat: 4 * time.Second,
		Clock: clock.New(nil), Log: slog.New(slog.DiscardHandler),
	}
}

const (
	timeoutPerItem = 12 * time.Millisecond
	sweepEvery     = 30 * time.Second // between sweeps for idle keys
)

// beatsToLive is how many times Beat an instance may go without a heartbeat before it counts as
// gone.
const beatsToLive = 3

// Op is a kind of call to the store, by its name in metrics.
type Op string

// The kinds of calls. An exchange counts as a write, a read, or both.
const (
	OpWrite Op = "write"
	OpRead  Op = "read"
	OpClock Op = "clock"
	OpBeat  Op = "beat"
)

// Ops returns all kinds of calls.
func Ops() []Op { return []Op{OpWrite, OpRead, OpClock, OpBeat} }

// Observer watches the calls to the store. Its methods must not block and must be safe for
// concurrent use.
type Observer interface {
	// Call is called when a call has ended, with the number of writes or documents in it, how long
	// it took, and its error.
	Call(op Op, items int, took time.Duration, err error)
}

type noObserver struct{}

// Call implements [Observer].
func (noObserver) Call(Op, int, time.Duration, error) {}
