package syncer_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

var (
	simSeed = flag.Uint64("seed", 1, "first seed of the simulations")
	simRuns = flag.Int("runs", usualRuns, "how many simulations")
)

// TestSimulation runs whole clusters in simulated time, each with its own faults, and looks for a
// count that was lost, counted twice or stuck. To search longer: go test ./internal/syncer -run
// Simulation -runs 10000
func TestSimulation(t *testing.T) {
	var waited atomic.Int64
	var seeds []uint64
	for i := range *simRuns {
		seeds = append(seeds, *simSeed+uint64(i))
	}
	if !underRace {
		seeds = append(seeds, 700, 825, 850, 900) // large clusters that found bugs before
	}
	for i, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if i >= onAllProcessors {
				oneProcessor(t)
			}
			synctest.Test(t, func(t *testing.T) { simulate(t, seed, &waited) })
			if t.Failed() {
				t.Logf("again: go test ./internal/syncer -run TestSimulation -seed %d -runs 1", seed)
			}
		})
	}
	if waited.Load() == 0 && *simRuns > 10 {
		t.Error("nobody waited for a turn: the test is blind")
	}
}

// scenario is a cluster with its traffic and faults.
type scenario struct {
	t      *testing.T
	rand   *rand.Rand
	net    *network
	faults faults
	alive  []*member
	policy atomic.Pointer[ratelimit.Effective]
	keys   int

	long, short ratelimit.Limit
	total       []ratelimit.Limit // for all keys together; in every third cluster
	source      []ratelimit.Limit // for each source address; in every fourth cluster
	longest     time.Duration     // wait in the queue; in every third cluster, 0 in others

	requests sync.WaitGroup // that may wait
	waited   *atomic.Int64  // of them, in all clusters

	mu       sync.Mutex
	admitted map[ratelimit.Key]int64
	lost     int64 // at most: the counts that killed instances had not written
}

func simulate(t *testing.T, seed uint64, waited *atomic.Int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	// The first limit's window is longer than the simulation, so that none of its counts grows too
	// old to be written: its totals must be exact.
	long := ratelimit.NewLimit("exact", 1+r.Int64N(5000), 24*time.Hour)
	short := ratelimit.NewLimit("short", 1+r.Int64N(200), time.Duration(1+r.IntN(60))*time.Second)
	s := &scenario{
		t: t, rand: r, long: long, short: short, keys: 1 + r.IntN(8), admitted: map[ratelimit.Key]int64{}, waited: waited,
		net: newNetwork(time.Duration(r.IntN(20)) * time.Millisecond),
	}
	switch seed % 3 {
	case 0:
		s.total = []ratelimit.Limit{ratelimit.NewLimit("exact-total", long.Requests+int64(seed)%997, 24*time.Hour)}
	case 1:
		s.longest = time.Duration(1+seed%10) * time.Second
	}
	if seed%4 == 0 {
		s.source = []ratelimit.Limit{ratelimit.NewLimit("exact-source", 1+int64(seed)%997, 24*time.Hour)} // at most the total
	}
	if seed%5 == 0 {
		s.long.Grants = ratelimit.GrantRefresh | ratelimit.GrantPassword
	}
	s.usePolicy()
	s.faults = faults{loseRequest: r.IntN(12), loseReply: r.IntN(12), delay: r.IntN(12), unsure: r.IntN(5)}
	s.setDown(false)
	members := 2 + r.IntN(6)
	if seed%50 == 0 {
		members = 50
	}
	for range members {
		s.start()
	}
	for range 20 + r.IntN(30) {
		s.event()
	}
	s.finish()
}

// start starts an instance. A server does not start without its store, so the network works during
// the start.
func (s *scenario) start() {
	s.net.become(faults{}, false)
	defer s.setDown(false)
	skew := time.Duration(s.rand.IntN(4001)-2000) * time.Millisecond
	s.alive = append(s.alive, newMember(s.t, s.net, s.rand.Uint64(), skew, nil))
}

// event makes one random event happen to the cluster.
func (s *scenario) event() {
	scrape(s.alive)
	switch s.rand.IntN(30) {
	case 0:
		s.stopOne()
	case 1:
		s.killOne()
	case 2:
		s.start()
	case 3:
		s.setDown(true)
		s.traffic(time.Duration(s.rand.IntN(20)) * time.Second)
		s.setDown(false)
	case 4:
		if s.rand.IntN(8) == 0 {
			s.setDown(true)
			s.traffic(10 * time.Minute)
			s.setDown(false)
		}
	case 5:
		wait(time.Duration(s.rand.IntN(180)) * time.Second)
	case 6:
		s.alive[s.rand.IntN(len(s.alive))].wall.step(clockSteps[s.rand.IntN(len(clockSteps))])
		s.traffic(5 * time.Second)
	case 7:
		s.breakOne()
	case 8:
		s.net.refuse(true)
		s.traffic(time.Duration(s.rand.IntN(30)) * time.Second)
		s.net.refuse(false)
	case 9:
		s.jump()
	case 10:
		s.reframe()
	default:
		s.traffic(time.Duration(s.rand.IntN(3000)) * time.Millisecond)
	}
	s.net.db.Expire(time.Now())
}

// scrape reads what metrics, /readyz and operators show, while the instances work: for the race detector.
func scrape(alive []*member) {
	for _, m := range alive {
		_, _ = m.syncer.Stats(), m.syncer.Degraded()
		_, _ = m.counters.Stats(), m.counters.Usage(m.now(), keyOf(0))
	}
}

// clockSteps are the amounts by which a clock is set wrong.
var clockSteps = []time.Duration{5 * time.Minute, time.Hour, -5 * time.Minute, -time.Hour, -70 * time.Second}

// breakOne makes only the writes of one counter fail for 20 s.
func (s *scenario) breakOne() {
	id := idOf(s.rand.IntN(s.keys))
	s.net.breakStatements(id, true)
	s.traffic(20 * time.Second)
	s.net.breakStatements(id, false)
}

// jump makes the clock of the store wrong for a while, for all or for one.
func (s *scenario) jump() {
	ahead := clockSteps[s.rand.IntN(len(clockSteps))]
	m := s.alive[s.rand.IntN(len(s.alive))]
	if s.rand.IntN(2) == 0 {
		m = nil
	}
	s.net.lie(m, ahead)
	s.traffic(time.Duration(s.rand.IntN(20)) * time.Second)
	s.net.lie(nil, 0)
}

// reframe changes how many frames the short limit has, in all instances at once.
func (s *scenario) reframe() {
	s.short.Frames = []int{1, 2, 5}[s.rand.IntN(3)]
	s.usePolicy()
}

func (s *scenario) usePolicy() {
	itself := s.long
	itself.Grants = 0
	s.policy.Store(compiled(s.t, waiting(ratelimit.Policy{
		User: []ratelimit.Limit{s.long, s.short}, Client: []ratelimit.Limit{itself}, Total: s.total, Source: s.source,
	}, s.longest, 5)))
}

// slowest returns how much time passes at most while process time, which may be slewed by 5 %,
// advances by d. It includes the rounding up of the queues' timers.
func slowest(d time.Duration) time.Duration { return d + d/19 + 5*time.Millisecond }

// sources are the addresses that requests come from.
var sources = []string{"192.0.2.1", "2001:db8::/64"}

func (s *scenario) setDown(down bool) { s.net.become(s.faults, down) }

// traffic sends random requests to random instances for d.
func (s *scenario) traffic(d time.Duration) {
	for n := 50 + s.rand.IntN(150); n > 0; n-- {
		k := keyOf(s.rand.IntN(s.keys))
		m := s.alive[s.rand.IntN(len(s.alive))]
		cost := 1 + s.rand.Int64N(3)
		grant, source := ratelimit.GrantCode<<s.rand.IntN(3), sources[s.rand.IntN(len(sources))]
		if s.longest > 0 {
			s.requests.Go(func() { s.await(m, k, grant, source) })
		} else if d := m.take(k, s.policy.Load().ForRequest(grant, source), cost); d.Outcome == ratelimit.Allowed {
			s.count(k, grant, source, cost)
		}
		wait(d / time.Duration(n))
		d -= d / time.Duration(n)
	}
}

// count notes requests that were admitted.
func (s *scenario) count(k ratelimit.Key, grant ratelimit.Grants, source string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.long.Grants == 0 || s.long.Grants&grant != 0 {
		s.admitted[k] += n
	}
	if s.source != nil {
		s.admitted[k.Source(source)] += n
	}
	if s.total != nil {
		s.admitted[k.Total()] += n
	}
}

// await sends one request, which waits in the queue for its max_wait at most.
func (s *scenario) await(m *member, k ratelimit.Key, grant ratelimit.Grants, source string) {
	began := time.Now()
	turn := m.lines.Take(context.Background(), k, func() *ratelimit.Effective { return s.policy.Load().ForRequest(grant, source) })
	if took := time.Since(began); took > slowest(s.longest) {
		s.t.Errorf("decided after %v, max_wait is %v", took, s.longest)
	}
	if turn.Outcome == ratelimit.Delayed {
		s.waited.Add(1)
	}
	if !turn.Rejected() {
		s.count(k, grant, source, 1)
	}
}

// take removes one member from the cluster, but never the last. Requests that wait there in a queue
// are denied. Those that wait for the first read of their key are decided within 250 ms.
func (s *scenario) take() *member {
	if len(s.alive) < 2 {
		return nil
	}
	i := s.rand.IntN(len(s.alive))
	m := s.alive[i]
	s.alive = append(s.alive[:i], s.alive[i+1:]...)
	m.lines.Close()
	wait(300 * time.Millisecond)
	synctest.Wait()
	return m
}

// stopOne stops an instance with a short deadline. It must report the counts that it could not
// write.
func (s *scenario) stopOne() {
	m := s.take()
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.rand.IntN(30))*time.Second)
	defer cancel()
	left, err := m.syncer.Stop(ctx)
	check.Equal(s.t, "an error", err != nil, left.Requests > 0)
	all, exact := m.unflushed()
	check.Equal(s.t, "requests left", left.Requests, all)
	s.lost += exact
}

func (s *scenario) killOne() {
	if m := s.take(); m != nil {
		m.syncer.Kill()
		_, exact := m.unflushed()
		s.lost += exact
	}
}

// finish lets everything arrive, and compares the counts.
func (s *scenario) finish() {
	s.net.become(faults{}, false)
	wait(latest + 2*time.Minute)
	synctest.Wait()
	s.requests.Wait()
	for _, m := range s.alive {
		check.Equal(s.t, "requests in lines", m.lines.Waiting(), 0)
		all, _ := m.unflushed()
		check.Equal(s.t, "requests stuck in an instance", all, 0)
		if n := m.syncer.Stats().Waiting; n > 10*len(s.counted()) {
			s.t.Fatalf("%d counters wait for %d keys", n, s.keys)
		}
	}
	for _, m := range s.alive {
		left, err := m.syncer.Stop(context.Background())
		if err != nil || left != (syncer.Left{}) {
			s.t.Fatalf("Stop() = %+v, %v", left, err)
		}
		check.Equal(s.t, "panics", m.syncer.Stats().Panics, 0)
		check.Equal(s.t, "drift", m.syncer.Stats().Drift, 0)
	}
	if len(s.net.fell) > 0 {
		s.t.Fatalf("live frames have fallen: %v", s.net.fell)
	}
	var admitted, database int64
	for _, k := range s.counted() {
		id := ratelimit.CounterID{ClientID: k.ClientID, Username: k.Username}
		admitted += s.admitted[k]
		n := s.inDatabase(id)
		database += n
		check.Equal(s.t, "counts still there of those applied", n, s.net.applied[id])
		if n > s.admitted[k] {
			s.t.Fatalf("%v: %d in the database, %d admitted: counted twice", k, n, s.admitted[k])
		}
	}
	if database < admitted-s.lost || s.lost == 0 && database != admitted {
		s.t.Fatalf("%d in the database, %d admitted, %d lost with their instances", database, admitted, s.lost)
	}
}

// counted returns the keys of users, and the keys of the sources and of the total if there are any.
func (s *scenario) counted() (keys []ratelimit.Key) {
	for i := range s.keys {
		keys = append(keys, keyOf(i))
	}
	if s.total != nil {
		keys = append(keys, keyOf(0).Total())
	}
	if s.source != nil {
		for _, source := range sources {
			keys = append(keys, keyOf(0).Source(source))
		}
	}
	return keys
}

// inDatabase returns the sum of the counts of a document.
func (s *scenario) inDatabase(id ratelimit.CounterID) (n int64) {
	for _, r := range s.net.db.Documents() {
		if r.ID == id {
			for _, f := range r.Frames {
				n += f.Count
			}
		}
	}
	return n
}
