package clock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/syncer/clock"
)

// machine is a wall clock, a store's clock, and the clock of a process.
type machine struct {
	wall, store time.Duration // how far each is ahead of real time
	clock       *clock.Clock
}

func newMachine(wall, store time.Duration) *machine {
	m := &machine{wall: wall, store: store}
	m.clock = clock.New(func() time.Time { return time.Now().Add(m.wall) })
	return m
}

func (m *machine) reading() *clock.Reading {
	return &clock.Reading{Time: time.Now().Add(m.store), Error: 5 * time.Millisecond, At: time.Now()}
}

// ahead returns how far process time is ahead of real time.
func (m *machine) ahead() time.Duration { return time.Until(m.clock.Now()).Round(time.Millisecond) }

// peers returns the times of processes that are ahead of real time.
func peers(ahead ...time.Duration) (times []time.Time) {
	for _, d := range ahead {
		times = append(times, time.Now().Add(d))
	}
	return times
}

const hour, five = time.Hour, 5 * time.Minute

// TestBegin: the initial process time.
func TestBegin(t *testing.T) {
	for _, tc := range []struct {
		name        string
		wall, store time.Duration
		unread      bool
		peers       []time.Duration
		want        time.Duration
		alone       clock.Source
	}{
		{"all agree", 0, 0, false, nil, 0, clock.NoClock},
		{"a little apart: the store's", 300 * time.Millisecond, -200 * time.Millisecond, false, nil, -200 * time.Millisecond, clock.NoClock},
		{"the store cannot be read: the wall clock's", hour, 0, true, nil, hour, clock.NoClock},
		{"far apart, alone: the store's", hour, 0, false, nil, 0, clock.Wall},
		{"far apart: the others go by the wall clock's", 0, hour, false, []time.Duration{0, 0}, 0, clock.Store},
		{"far apart: the others go by the store's", hour, 0, false, []time.Duration{0, 0}, 0, clock.Wall},
		{"far apart: one other decides", 0, hour, false, []time.Duration{0}, 0, clock.Store},
		{"a wrong one among the others", 0, hour, false, []time.Duration{0, hour, 0}, 0, clock.Store},
		{"all others go by another time", hour, 2 * hour, false, []time.Duration{0, 0}, 0, clock.AllClocks},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(tc.wall, tc.store)
				reading := m.reading()
				if tc.unread {
					reading = nil
				}
				st := m.clock.Begin(reading, peers(tc.peers...))
				if got := m.ahead(); got != tc.want || st.Alone != tc.alone || m.clock.State() != st {
					t.Errorf("process time is ahead by %v, %+v; want %v, %q alone", got, st, tc.want, tc.alone)
				}
			})
		})
	}
}

// TestOneClockMoves: a single deviating clock is not followed. Two clocks that agree are followed
// forwards.
func TestOneClockMoves(t *testing.T) {
	for _, step := range []time.Duration{five, hour, -five, -hour, -70 * time.Second} {
		for _, tc := range []struct {
			name        string
			wall, store bool
			want        time.Duration // immediately after the move
			alone       clock.Source
		}{
			{"wall", true, false, 0, clock.Wall},
			{"store", false, true, 0, clock.Store},
			{"both", true, true, max(step, 0), clock.Process},
		} {
			t.Run(fmt.Sprintf("%s %v", tc.name, step), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMachine(0, 0)
					m.clock.Begin(m.reading(), nil)
					if tc.wall {
						m.wall += step
					}
					if tc.store {
						m.store += step
					}
					st := m.clock.Adjust(m.reading(), peers(0, 0))
					if got := m.ahead(); got != tc.want || st.Alone != tc.alone || st.Stepped.Round(time.Millisecond) != tc.want {
						t.Errorf("process time is ahead by %v, %+v; want %v, %q alone", got, st, tc.want, tc.alone)
					}
					time.Sleep(10 * time.Second) //nolint:forbidigo // simulated
					if got := m.ahead(); got > tc.want || got < tc.want-time.Second {
						t.Errorf("ten seconds later it is ahead by %v", got)
					}
				})
			})
		}
	}
}

// TestResumedMachine: monotonic time stood still.
func TestResumedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(0, 0)
		m.clock.Begin(m.reading(), nil)
		m.wall, m.store = 10*time.Minute, 10*time.Minute // as if ten minutes were missing
		if st := m.clock.Adjust(m.reading(), nil); st.Alone != clock.Process || m.ahead() != 10*time.Minute {
			t.Errorf("%+v, ahead by %v", st, m.ahead())
		}
		if st := m.clock.Adjust(m.reading(), nil); st.Alone != clock.NoClock || st.Stepped != 0 {
			t.Errorf("afterwards %+v", st)
		}
	})
}

// TestNoneAgree: the other processes decide, if possible.
func TestNoneAgree(t *testing.T) {
	for _, tc := range []struct {
		name  string
		peers []time.Duration
		want  time.Duration
	}{
		{"alone", nil, 0},
		{"the others go by the same time", []time.Duration{0, 0}, 0},
		{"the others go by the store's", []time.Duration{hour, hour}, hour},
		{"the others go by the wall clock's", []time.Duration{five}, five},
		{"the others go by an earlier time", []time.Duration{-hour, -hour}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(0, 0)
				m.clock.Begin(m.reading(), nil)
				m.wall, m.store = five, hour
				if st := m.clock.Adjust(m.reading(), peers(tc.peers...)); st.Alone != clock.AllClocks || m.ahead() != tc.want {
					t.Errorf("%+v, ahead by %v, want %v", st, m.ahead(), tc.want)
				}
			})
		})
	}
}

// TestSlew: a small difference is corrected within a minute, without a step.
func TestSlew(t *testing.T) {
	for _, store := range []time.Duration{900 * time.Millisecond, -900 * time.Millisecond, 20 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(0, 0)
			m.clock.Begin(m.reading(), nil)
			m.store = store
			before := m.clock.Now()
			for range 20 {
				m.clock.Adjust(m.reading(), nil)
				time.Sleep(3 * time.Second) //nolint:forbidigo // simulated
				passed := m.clock.Now().Sub(before)
				if passed < 2850*time.Millisecond || passed > 3150*time.Millisecond {
					t.Fatalf("%v passed in 3 s", passed)
				}
				before = m.clock.Now()
			}
			if got := m.ahead() - store; got.Abs() > 5*time.Millisecond {
				t.Errorf("after a minute it is %v away from the store", got)
			}
		})
	}
}

// TestStoreReadLate: the store could not be read at the start. Process time follows the wall clock
// until the first reading, and then the store.
func TestStoreReadLate(t *testing.T) {
	for _, wall := range []time.Duration{2 * time.Second, -2 * time.Second, -hour} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(wall, 0)
			m.clock.Begin(nil, nil)
			for range 40 {
				m.clock.Adjust(nil, nil)
				m.clock.Adjust(m.reading(), nil)
				time.Sleep(3 * time.Second) //nolint:forbidigo // simulated
			}
			if got := m.ahead(); got.Abs() > 5*time.Millisecond {
				t.Errorf("wall clock %v ahead: after two minutes process time is ahead by %v", wall, got)
			}
		})
	}
}

// TestNoStoreClock: without a store clock process time stays, and a change of the wall clock is
// reported.
func TestNoStoreClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(0, 0)
		m.clock.Begin(nil, nil)
		m.wall = hour
		if st := m.clock.Adjust(nil, nil); st.Alone != clock.Wall || st.Wall != hour || m.ahead() != 0 {
			t.Errorf("%+v, ahead by %v", st, m.ahead())
		}
	})
}

// TestNeverBackwards: process time always advances, regardless of the other clocks. A single wall
// clock or store cannot separate it from the other processes.
func TestNeverBackwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		m := newMachine(0, 0)
		m.clock.Begin(m.reading(), nil)
		last := m.clock.Now()
		for range 20_000 {
			wrong := time.Duration(r.Int64N(int64(4*hour))) - 2*hour
			switch r.IntN(4) {
			case 0:
				m.wall = wrong
			case 1:
				m.wall = 0
			case 2:
				m.store = wrong
			default:
				m.store = 0
			}
			m.clock.Adjust(m.reading(), peers(0, 0, 0, 0))
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond) //nolint:forbidigo // simulated
			now := m.clock.Now()
			if now.Before(last) {
				t.Fatalf("process time went back by %v", last.Sub(now))
			}
			if ahead := m.ahead(); ahead.Abs() > 2*time.Second && (m.wall-m.store).Abs() > 2*time.Second {
				t.Fatalf("process time is ahead by %v, wall clock by %v, store by %v", ahead, m.wall, m.store)
			}
			last = now
		}
	})
}

// TestReadersWhileItChanges: a call that begins after another has returned never returns less, in
// any goroutine, while the line changes continuously.
func TestReadersWhileItChanges(t *testing.T) {
	c := clock.New(nil)
	c.Begin(clock.NewReading(time.Now(), time.Now(), time.Now()), nil)
	var newest atomic.Int64 // latest time returned by a call
	var worst, stop atomic.Int64
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for stop.Load() == 0 {
				before := newest.Load()
				now := c.Now().UnixNano()
				raise(&worst, before-now)
				raise(&newest, now)
			}
		})
	}
	for i := range 100_000 { // fast, slow, and unchanged
		c.Adjust(clock.NewReading(c.Now().Add(time.Duration(i%3-1)*900*time.Millisecond), time.Now(), time.Now()), nil)
	}
	stop.Store(1)
	readers.Wait()
	if back := time.Duration(worst.Load()); back > 0 {
		t.Errorf("process time went back by up to %v", back)
	}
}

// raise makes n at least v.
func raise(n *atomic.Int64, v int64) {
	for old := n.Load(); v > old && !n.CompareAndSwap(old, v); old = n.Load() {
	}
}

func BenchmarkNow(b *testing.B) {
	c := clock.New(nil)
	for b.Loop() {
		c.Now()
	}
}
