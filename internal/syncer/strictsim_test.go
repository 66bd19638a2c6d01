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
)

var strictRuns = flag.Int("strictruns", usualStrictRuns, "how many simulations of strict limits")

// TestStrictSimulation runs clusters in simulated time, each with its own faults, and looks for a
// window with more requests than a strict limit admits. The log is exact: it has the real time of
// each request at the moment of its decision.
//
// The network is kinder than reality in some ways. Answers are lost, late, and slower or quicker
// than requests, but the database itself loses nothing that it has confirmed. It deletes a document
// that has expired by its own clock, which may be wrong by hours. Monotonic time runs at the same
// rate everywhere, and no machine is suspended. A server starts while the clock of the database is
// right. A wall clock and the database are never wrong by the same amount.
//
// A raised or lowered limit reaches one instance after the other. No window has more requests than
// the highest limit that an instance had while any of them was decided. Requests admitted before a
// reset do not count, until two frames after the last instance has done the reset: permits of these
// frames may have been taken before.
func TestStrictSimulation(t *testing.T) {
	runs := *strictRuns
	if testing.Short() {
		runs = min(runs, 100)
	}
	for i := range runs {
		seed := *simSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if i >= onAllProcessors {
				oneProcessor(t)
			}
			synctest.Test(t, func(t *testing.T) { simulateStrict(t, seed) })
			if t.Failed() {
				t.Logf("again: go test ./internal/syncer -run TestStrictSimulation -seed %d -strictruns 1", seed)
			}
		})
	}
}

// strictScenario is a cluster with one strict limit, its traffic and its faults.
type strictScenario struct {
	t      *testing.T
	rand   *rand.Rand
	net    *network
	faults faults
	alive  []*member
	limit  ratelimit.Limit
	offer  int64     // offered requests, as a multiple of the limit
	now    *settings // for instances that start
	of     map[*member]*atomic.Pointer[settings]
	skewed bool
	edges  bool // all requests come at about the time at which a frame ends
	// longest is how long most requests wait in the queue. In most clusters it is 0 and none wait.
	longest time.Duration
	keys    int
	logs    []exactLog

	requests sync.WaitGroup
}

// settings are the limit as an instance has it. It may change.
type settings struct {
	requests int64
	policy   *ratelimit.Effective
}

func simulateStrict(t *testing.T, seed uint64) {
	t.Helper()
	r := newRand(seed)
	s := &strictScenario{
		t: t, rand: r, net: newNetwork(time.Duration(1+r.IntN(8)) * time.Millisecond),
		skewed: r.IntN(2) == 0, edges: r.IntN(3) == 0, keys: 1 + r.IntN(2), of: map[*member]*atomic.Pointer[settings]{},
	}
	s.net.jitter = time.Duration(r.IntN(10)) * time.Millisecond
	if r.IntN(4) == 0 { // both clocks are wrong by the same amount
		s.net.oneWay, s.net.jitter = 40*time.Millisecond, 0
	}
	s.offer = int64(2 + r.IntN(5))
	s.limit = []ratelimit.Limit{
		strictLimit(10, 10*time.Minute), strictLimit(10, time.Minute), strictLimit(100, time.Minute),
		strictLimit(30, 10*time.Second), strictLimit(60, 3*time.Second), strictLimit(8, 2*time.Second), strictLimit(3, 3*time.Second),
	}[r.IntN(7)]
	if r.IntN(4) == 0 {
		s.limit.Frames = []int{1, 2, 5}[r.IntN(3)]
	}
	s.limit.LeaseWait = []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, time.Second}[r.IntN(3)] // the first is less than most round trips
	if seed%3 == 1 {
		s.longest = min(s.limit.Window, time.Duration(1+seed%10)*time.Second)
	}
	s.now, s.logs = s.settingsOf(&s.limit), make([]exactLog, s.keys)
	s.faults = faults{loseRequest: r.IntN(8), loseReply: r.IntN(12), delay: r.IntN(8), unsure: r.IntN(8)}
	s.net.become(s.faults, false)
	for range []int{1, 3, 10}[r.IntN(3)] {
		s.start()
	}
	for range 12 {
		s.event()
	}
	s.finish()
}

func (s *strictScenario) settingsOf(l *ratelimit.Limit) *settings {
	return &settings{l.Requests, policyWaiting(s.t, s.longest, 5, *l)}
}

// start starts an instance. A server does not start without its store, so the network works during
// the start.
func (s *strictScenario) start() {
	s.net.become(faults{}, false)
	defer s.net.become(s.faults, false)
	skew := time.Duration(s.rand.IntN(4001)-2000) * time.Millisecond
	seed := s.rand.Uint64()
	p := newPort(s.net, seed)
	p.lean = []float64{0, 0.5, -0.5, 1, -1}[s.rand.IntN(5)]
	m := startMember(s.t, p, seed, skew, nil)
	s.alive, s.of[m] = append(s.alive, m), &atomic.Pointer[settings]{}
	s.of[m].Store(s.now)
}

// part returns a random fraction of the window.
func (s *strictScenario) part() time.Duration {
	return time.Duration(s.rand.Int64N(int64(max(s.limit.Window/2, 5*time.Second))))
}

// event makes one random event happen to the cluster.
func (s *strictScenario) event() {
	scrape(s.alive)
	m := s.alive[s.rand.IntN(len(s.alive))]
	switch s.rand.IntN(14) {
	case 0:
		m.lines.Close()
		m.syncer.Kill()
		s.replace(m)
	case 1:
		s.requests.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.rand.IntN(10))*time.Second)
		_, _ = m.syncer.Stop(ctx)
		cancel()
		s.replace(m)
	case 2:
		s.net.become(s.faults, true)
		s.traffic(s.part())
		s.net.become(s.faults, false)
	case 3:
		m.wall.step(clockSteps[s.rand.IntN(len(clockSteps))])
		s.traffic(s.part())
	case 4:
		if s.rand.IntN(2) == 0 {
			m = nil
		}
		s.net.lie(m, []time.Duration{3 * time.Minute, 2 * time.Hour, -3 * time.Minute, -2 * time.Hour}[s.rand.IntN(4)])
		for range 6 {
			s.traffic(s.part() / 6)
			s.net.expire()
		}
		s.net.lie(nil, 0)
	case 5:
		s.net.refuse(true)
		s.traffic(s.part())
		s.net.refuse(false)
	case 6:
		id := idOf(s.rand.IntN(s.keys))
		s.net.breakStatements(id, true)
		s.traffic(s.part())
		s.net.breakStatements(id, false)
	case 7:
		wait(s.part())
	case 8:
		s.reset()
	case 9:
		s.change()
	default:
		s.traffic(s.part())
	}
	s.net.expire()
}

// reset forgets all counts, as an operator's reset does: every instance in turn drops its own and
// removes those that are stored.
func (s *strictScenario) reset() {
	for _, m := range s.alive {
		m.counters.ResetClient(keyOf(0).ClientID)
		if err := m.syncer.Settle(context.Background()); err != nil {
			s.t.Error(err)
		}
		s.net.erase()
		for i := range s.logs {
			s.logs[i].forget(time.Now().Add(2 * s.limit.Window / time.Duration(s.limit.Frames)))
		}
		s.traffic(time.Duration(s.rand.IntN(1000)) * time.Millisecond)
	}
}

// change raises or lowers the limit, in one instance after the other. A request may wait across one
// change, but not across two.
func (s *strictScenario) change() {
	s.requests.Wait()
	l := s.limit
	l.Requests = max([]int64{l.Requests / 10, l.Requests / 2, l.Requests, 2 * l.Requests}[s.rand.IntN(4)], 1)
	s.now = s.settingsOf(&l)
	for _, m := range s.alive {
		s.of[m].Store(s.now)
		s.traffic(time.Duration(s.rand.IntN(1000)) * time.Millisecond)
	}
}

// replace starts an instance in place of one that has gone.
func (s *strictScenario) replace(gone *member) {
	s.start()
	for i, m := range s.alive {
		if m == gone {
			s.alive = append(s.alive[:i], s.alive[i+1:]...)
			return
		}
	}
}

// traffic offers a multiple of the limit for d, at times in bursts.
func (s *strictScenario) traffic(d time.Duration) {
	began := time.Now()
	every := float64(s.limit.Window) / float64(s.offer*s.limit.Requests*int64(s.keys))
	for time.Since(began) < d {
		pause, burst := time.Duration(s.rand.ExpFloat64()*every), 1
		if s.rand.IntN(40) == 0 {
			burst = 1 + s.rand.IntN(12)
		}
		if s.edges && s.rand.IntN(4) > 0 {
			frame := s.limit.Window / time.Duration(s.limit.Frames)
			pause = time.Until(time.Now().Add(pause + frame/2).Round(frame))
			pause += time.Duration(s.rand.IntN(160)-110) * time.Millisecond
		}
		wait(pause)
		for range burst {
			m := s.alive[s.rand.IntN(len(s.alive))]
			if s.skewed && s.rand.IntN(10) > 0 {
				m = s.alive[0]
			}
			s.request(m, s.rand.IntN(s.keys), s.rand.IntN(10))
		}
	}
}

// request sends one request; kind selects how it is sent.
func (s *strictScenario) request(m *member, key, kind int) {
	k, log, present := keyOf(key), &s.logs[key], s.of[m]
	with := present.Load()
	patience := time.Duration(s.rand.IntN(30)) * time.Millisecond
	s.requests.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		switch kind {
		case 0: // the client does not wait that long
			defer time.AfterFunc(patience, cancel).Stop()
		case 1: // it does not wait at all
			if d := m.take(k, with.policy, 1); !d.Rejected() {
				log.add(0, with.requests)
			}
			return
		default:
			if s.longest > 0 {
				s.await(ctx, m, k, log, present)
				return
			}
		}
		now := m.now()
		d, waited := m.counters.Await(ctx, now, k, with.policy, 1)
		if d.Rejected() {
			return
		}
		limit := max(with.requests, present.Load().requests)
		log.add(waited, limit)
		if at := time.Now(); kind == 2 { // it fails for another reason
			wait(patience)
			if m.counters.Refund(m.now(), now.Add(waited), k, with.policy, 1) {
				log.remove(admission{at, limit})
			}
		}
	})
}

// await sends a request that waits in the queue.
func (s *strictScenario) await(ctx context.Context, m *member, k ratelimit.Key, log *exactLog, present *atomic.Pointer[settings]) {
	with, began := present.Load(), time.Now()
	t := m.lines.Take(ctx, k, func() *ratelimit.Effective { return present.Load().policy })
	if took := time.Since(began); took > s.limit.LeaseWait+slowest(s.longest) {
		s.t.Errorf("decided after %v, max_wait is %v", took, s.longest)
	}
	if !t.Rejected() {
		log.add(t.Waited+t.Leased, max(with.requests, present.Load().requests))
	}
}

// finish lets everything arrive, and compares the counts.
func (s *strictScenario) finish() {
	s.net.become(faults{}, false)
	s.requests.Wait()
	wait(latest)
	s.traffic(s.limit.Window / 2)
	s.requests.Wait()
	for _, m := range s.alive {
		left, err := m.syncer.Stop(context.Background())
		if err != nil || left.Keys > 0 {
			s.t.Errorf("Stop() = %+v, %v", left, err)
		}
		check.Equal(s.t, "panics", m.syncer.Stats().Panics, 0)
		check.Equal(s.t, "requests in lines", m.lines.Waiting(), 0)
	}
	for i := range s.logs {
		log := &s.logs[i]
		if n, limit := log.excess(s.limit.Window); n > 0 {
			s.t.Errorf("%d were admitted in some window of %v, limit %d", n, s.limit.Window, limit)
		}
		if len(log.waits) == 0 && s.limit.LeaseWait == time.Second && s.limit.Window/time.Duration(s.limit.Frames) > 500*time.Millisecond {
			s.t.Error("nothing was admitted")
		}
	}
}
