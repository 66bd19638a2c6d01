package syncer_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
	"oauth-server/internal/syncer/memstore"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the simulations leave much garbage, and little memory is in use
	goleak.VerifyTestMain(m)
}

// oneProcessor lets a test run on one processor. With two, a fifth of the processor time goes into locks
// of the scheduler, because all goroutines of a simulated cluster wait for the same moments. Tests that check
// figures need no second one, and of the simulations, which look for lost counts, the first [onAllProcessors] run on all.
func oneProcessor(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// onAllProcessors is how many simulations of a kind run on all processors.
const onAllProcessors = 25

// wrapped is a store with parts that a test can replace.
type wrapped struct {
	memstore.Store
	exchange func(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) // in place of the store's
	took     time.Duration                                                               // of every exchange
	calls    atomic.Int64
	now      func() (time.Time, error)
	beat     func(store func()) error // handles a heartbeat; nil: store it
	report   atomic.Value             // of the latest heartbeat, as a string
}

// Exchange implements [exchange.Store].
func (w *wrapped) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	w.calls.Add(1)
	if err := travel(ctx, w.took); err != nil {
		return nil, err
	}
	if w.exchange != nil {
		return w.exchange(ctx, items)
	}
	return w.Store.Exchange(ctx, items)
}

// Now implements [exchange.Store].
func (w *wrapped) Now(ctx context.Context) (time.Time, error) {
	if w.now != nil {
		return w.now()
	}
	return w.Store.Now(ctx)
}

// Beat implements [syncer.Instances].
func (w *wrapped) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string, err error) {
	w.report.Store(string(self.Report))
	store := func() { alive, previous, err = w.Store.Beat(context.WithoutCancel(ctx), self, ttl) }
	if w.beat == nil {
		store()
		return alive, previous, err
	}
	if e := w.beat(store); e != nil {
		return nil, "", e
	}
	return alive, previous, err
}

// stores is the store and the heartbeats that an instance needs.
type stores interface {
	exchange.Store
	syncer.Instances
}

// alone starts an instance on a store, in simulated time.
func alone(t *testing.T, store stores, change func(*syncer.Config)) *member {
	t.Helper()
	return aloneOn(t, store, store, change)
}

func aloneOn(t *testing.T, store exchange.Store, instances syncer.Instances, change func(*syncer.Config)) *member {
	t.Helper()
	m := &member{counters: counting.NewCounters(200_000), wall: &wallClock{}, calls: newTally()}
	m.clock = clock.New(m.wall.now)
	cfg := syncer.DefaultConfig()
	cfg.Seed, cfg.Clock, cfg.Observer = 1, m.clock, m.calls
	if change != nil {
		change(&cfg)
	}
	m.syncer = syncer.New(m.counters, store, instances, cfg)
	m.syncer.Start(t.Context())
	t.Cleanup(m.syncer.Kill)
	return m
}

// pass lets simulated time pass, until all goroutines wait again.
func pass(d time.Duration) {
	wait(d)
	synctest.Wait()
}

var numbers = flag.Bool("numbers", false, "print the figures of the scenarios, at full length")

// say prints a figure if -numbers asks for them.
func say(format string, args ...any) {
	if *numbers {
		fmt.Printf(format+"\n", args...)
	}
}

// stored returns the sum of the counts that the store has of a key.
func stored(t *testing.T, store *memstore.Store, k ratelimit.Key) (n int64) {
	t.Helper()
	for _, r := range store.Documents() {
		if r.ID.ClientID == k.ClientID && r.ID.Username == k.Username {
			for _, f := range r.Frames {
				n += f.Count
			}
		}
	}
	return n
}

// journal collects what is logged.
type journal struct{ check.Buffer }

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func (j *journal) count(text string) int { return strings.Count(j.String(), text) }

var perMinute = ratelimit.NewLimit("per-minute", 100, time.Minute)
