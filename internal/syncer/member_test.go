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
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

// member is one process of a cluster.
type member struct {
	counters *counting.Counters
	lines    *limiter.Queues // queues of requests over a limit with a max_wait
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

// take decides n requests of a key at the member.
func (m *member) take(k ratelimit.Key, policy *ratelimit.Effective, n int64) ratelimit.Decision {
	return m.counters.Take(m.now(), k, policy, n)
}

// stop stops the member, which must leave nothing behind.
func (m *member) stop(t *testing.T) {
	t.Helper()
	_, err := m.syncer.Stop(t.Context())
	check.OK(t, err)
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

// newMember starts an instance with a wall clock that is wrong by skew.
func newMember(t *testing.T, net *network, seed uint64, skew time.Duration, change func(*syncer.Config)) *member {
	t.Helper()
	return startMember(t, newPort(net, seed), seed, skew, change)
}

func startMember(t *testing.T, p *port, seed uint64, skew time.Duration, change func(*syncer.Config)) *member {
	t.Helper()
	m := &member{counters: counting.NewCounters(maxKeys), wall: &wallClock{skew: skew}, port: p, calls: newTally()}
	m.clock = clock.New(m.wall.now)
	m.lines = limiter.NewQueues(m.counters, m.now)
	cfg := syncer.DefaultConfig()
	cfg.Clock, cfg.Seed, cfg.Observer = m.clock, seed, m.calls
	if change != nil {
		change(&cfg)
	}
	m.syncer = syncer.New(m.counters, p, p, cfg)
	m.syncer.Start(t.Context())
	t.Cleanup(m.syncer.Kill) // for members that still run
	return m
}

// unflushed returns the counts that the instance knows it has not written: in all, and of the
// limits with names that begin with exact.
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

// compiled returns the effective form of a policy.
func compiled(tb testing.TB, policy ratelimit.Policy) *ratelimit.Effective {
	tb.Helper()
	s := ratelimit.DefaultSettings()
	s.Default = policy
	p, err := ratelimit.Compile(s)
	check.OK(tb, err)
	return p.For("any")
}

// waiting returns the policy with a queue: up to places requests of a key wait for at most longest.
// With 0 none wait.
func waiting(p ratelimit.Policy, longest time.Duration, places int) ratelimit.Policy {
	if wait := ratelimit.Duration(longest); longest > 0 {
		p.MaxWait, p.MaxWaiting = &wait, &places
	}
	return p
}

// policyWaiting makes a policy of one limit with a queue: up to places requests of a key wait for
// at most longest.
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

// admits sends the member one request and reports whether it was admitted.
func (m *member) admits(k ratelimit.Key, policy *ratelimit.Effective) bool {
	d := m.take(k, policy, 1)
	return !d.Rejected()
}
