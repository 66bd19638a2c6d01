package syncer_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clock"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
	"oauth-server/internal/turns"
)

// member is one process of a cluster.
type member struct {
	counters *ratelimit.Counters
	lines    *turns.Lines // of requests over a limit with a max_wait
	syncer   *syncer.Syncer
	clock    *clock.Clock
	wall     *wallClock
	port     *port
	calls    *tally
}

// tally counts the calls that a syncer makes.
type tally struct {
	mu    sync.Mutex
	calls map[syncer.Op]int64
	items map[syncer.Op]int64
}

func newTally() *tally { return &tally{calls: map[syncer.Op]int64{}, items: map[syncer.Op]int64{}} }

// Call implements [syncer.Observer].
func (y *tally) Call(op syncer.Op, items int, _ time.Duration, _ error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.calls[op]++
	y.items[op] += int64(items)
}

// of returns how many calls of a kind there were, and how many items in them.
func (y *tally) of(op syncer.Op) (calls, items int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.calls[op], y.items[op]
}

func (m *member) now() time.Time { return m.clock.Now() }

// take asks the member for n requests of a key.
func (m *member) take(k ratelimit.Key, policy *ratelimit.Effective, n int64) ratelimit.Decision {
	return m.counters.Take(m.now(), k, policy, n)
}

// wallClock is the wall clock of a member's machine.
type wallClock struct {
	mu   sync.Mutex
	skew time.Duration
}

func (w *wallClock) step(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skew += d
}

func (w *wallClock) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.skew)
}

// maxKeys bounds the memory of a simulated instance.
const maxKeys = 1000

// newMember starts an instance whose wall clock is wrong by skew.
func newMember(t *testing.T, net *network, seed uint64, skew time.Duration, change func(*syncer.Config)) *member {
	t.Helper()
	return startMember(t, newPort(net, seed), seed, skew, change)
}

func startMember(t *testing.T, p *port, seed uint64, skew time.Duration, change func(*syncer.Config)) *member {
	t.Helper()
	m := &member{counters: ratelimit.NewCounters(maxKeys), wall: &wallClock{skew: skew}, port: p, calls: newTally()}
	m.clock = clock.New(m.wall.now)
	m.lines = turns.New(m.counters, m.now)
	cfg := syncer.DefaultConfig()
	cfg.Clock, cfg.Seed, cfg.Observer = m.clock, seed, m.calls
	if change != nil {
		change(&cfg)
	}
	m.syncer = syncer.New(m.counters, p, p, cfg)
	m.syncer.Start(t.Context())
	t.Cleanup(m.syncer.Kill) // of those that are still there
	return m
}

// unflushed is what the instance has not written, by its own knowledge: in all, and of the limits
// whose names begin with exact.
func (m *member) unflushed() (all, exact int64) {
	for _, u := range m.counters.Top(m.now(), 1_000_000) {
		all += u.Unflushed
		if strings.HasPrefix(u.Limit.Name, "exact") {
			exact += u.Unflushed
		}
	}
	return all, exact
}

// policyOf makes a policy of limits.
func policyOf(tb testing.TB, limits ...ratelimit.Limit) *ratelimit.Effective {
	tb.Helper()
	return compiled(tb, ratelimit.Policy{User: limits, Client: limits})
}

// compiled is what a policy comes to.
func compiled(tb testing.TB, policy ratelimit.Policy) *ratelimit.Effective {
	tb.Helper()
	s := ratelimit.DefaultSettings()
	s.Default = policy
	p, err := ratelimit.Compile(s)
	check.OK(tb, err)
	return p.For("any")
}

// waiting is a policy over which so many requests of a key wait for so long; 0 for none.
func waiting(p ratelimit.Policy, longest time.Duration, places int) ratelimit.Policy {
	if wait := ratelimit.MaxWait(longest); longest > 0 {
		p.MaxWait, p.MaxWaiting = &wait, &places
	}
	return p
}

// policyWaiting makes a policy of a limit, over which so many requests of a key wait for so long.
func policyWaiting(tb testing.TB, longest time.Duration, places int, limit ratelimit.Limit) *ratelimit.Effective {
	tb.Helper()
	limits := []ratelimit.Limit{limit}
	return compiled(tb, waiting(ratelimit.Policy{User: limits, Client: limits}, longest, places))
}

func keyOf(i int) ratelimit.Key {
	return ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(i)}
}

func idOf(i int) ratelimit.CounterID {
	return ratelimit.CounterID{ClientID: "client", Username: "user-" + strconv.Itoa(i)}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// wait lets simulated time pass.
func wait(d time.Duration) { _ = travel(context.Background(), d) }

// admits asks the member for one request and reports whether it passed.
func (m *member) admits(k ratelimit.Key, policy *ratelimit.Effective) bool {
	d := m.take(k, policy, 1)
	return !d.Rejected()
}
