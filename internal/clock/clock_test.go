package clock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/clock"
)

// machine is a wall clock, a store's clock, and the clock of a process.
type machine struct {
	wall, store time.Duration // by which each is ahead of real time
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

// ahead is by how much process time is ahead of real time.
func (m *machine) ahead() time.Duration { return time.Until(m.clock.Now()).Round(time.Millisecond) }

// peers are processes that are ahead by so much.
func peers(ahead ...time.Duration) (times []time.Time) {
	for _, d := range ahead {
		times = append(times, time.Now().Add(d))
	}
	return times
}

const hour, five = time.Hour, 5 * time.Minute

// TestBegin: where process time begins.
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

// TestOneClockMoves: a clock that stands alone is not followed; two that agree are, forwards.
func TestOneClockMoves(t *testing.T) {
	for _, step := range []time.Duration{five, hour, -five, -hour, -70 * time.Second} {
		for _, tc := range []struct {
			name        string
			wall, store bool
			want        time.Duration // at once
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

// TestNoneAgree: the other processes decide, if they can.
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

// TestSlew: a small difference is made up for within a minute, without a step.
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

// TestStoreReadLate: the store could not be read at the start. Process time is the wall clock's
// until then, and the store's as soon as it can.
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

// TestNoStoreClock: a store without a clock moves nothing, and a wall clock that is set is
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

// TestNeverBackwards: whatever the clocks do, process time advances, and neither one wall clock nor
// one store takes it away from the others.
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
// whichever goroutine, while the line changes all the time.
func TestReadersWhileItChanges(t *testing.T) {
	c := clock.New(nil)
	c.Begin(clock.NewReading(time.Now(), time.Now()), nil)
	var newest atomic.Int64 // that a call has returned
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
	for i := range 100_000 { // fast, slow, and as it is
		c.Adjust(clock.NewReading(c.Now().Add(time.Duration(i%3-1)*900*time.Millisecond), time.Now()), nil)
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

// TestUncertainty: it is the error of the best reading, what is not slewed yet and what clocks drift
// by, and nothing is known before the store was read.
func TestUncertainty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(0, 0)
		is := func(what string, least, most time.Duration) {
			t.Helper()
			if u := m.clock.Uncertainty(); u < least || u > most {
				t.Errorf("%s: uncertain by %v, want %v to %v", what, u, least, most)
			}
		}
		m.clock.Begin(nil, nil)
		is("before the store was read", clock.Unknown, clock.Unknown)
		m.clock.Adjust(m.reading(), nil)
		is("read to within 5 ms", 5*time.Millisecond, 6*time.Millisecond)
		time.Sleep(10 * time.Second) //nolint:forbidigo // simulated
		is("ten seconds later", 11*time.Millisecond, 12*time.Millisecond)
		m.clock.Adjust(&clock.Reading{Time: time.Now(), Error: 3 * time.Second, At: time.Now()}, nil)
		is("after a slow reading", 11*time.Millisecond, 12*time.Millisecond)
		m.clock.Adjust(nil, nil)
		is("after none", 11*time.Millisecond, 12*time.Millisecond)
		m.store = hour
		m.clock.Adjust(m.reading(), nil)
		is("the store stands alone", 11*time.Millisecond, 12*time.Millisecond)
		m.store = 500 * time.Millisecond
		m.clock.Adjust(m.reading(), nil)
		is("the store is ahead", 505*time.Millisecond, 507*time.Millisecond)
		time.Sleep(5 * time.Second) //nolint:forbidigo // simulated
		is("half is slewed", 257*time.Millisecond, 260*time.Millisecond)
		time.Sleep(15 * time.Second) //nolint:forbidigo // simulated
		is("all is slewed, and no more", 15*time.Millisecond, 17*time.Millisecond)
		m.wall, m.store = 10*time.Minute, 10*time.Minute
		m.clock.Adjust(m.reading(), nil)
		is("stepped with wall clock and store", 5*time.Millisecond, 6*time.Millisecond)
	})
}

// TestUncertaintyWithoutTheStore: while the store's clock cannot be read, a wall clock that moves may
// have been set, or the machine was suspended. A reading shows which.
func TestUncertaintyWithoutTheStore(t *testing.T) {
	for _, moved := range []time.Duration{-100 * time.Millisecond, 300 * time.Millisecond, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(0, 0)
			m.clock.Begin(m.reading(), nil)
			is := func(what string, want time.Duration) {
				t.Helper()
				if u := m.clock.Uncertainty(); u < want || u > want+20*time.Millisecond {
					t.Errorf("%s by %v: uncertain by %v, want %v or a little more", what, moved, u, want)
				}
			}
			m.wall += moved
			is("unnoticed", 0)
			m.clock.Watch()
			is("the wall clock moved, as watched", moved.Abs())
			for range 3 {
				m.clock.Adjust(nil, nil)
				is("the wall clock moved", moved.Abs())
				time.Sleep(3 * time.Second) //nolint:forbidigo // simulated
			}
			m.wall -= 2 * moved
			m.clock.Adjust(nil, nil)
			is("and back, twice", 3*moved.Abs())
			m.clock.Adjust(m.reading(), nil)
			is("the store has not moved", 0)
			m.wall += moved
			m.clock.Adjust(m.reading(), nil)
			is("beside a reading the wall clock moved", 0)
			for range 20 {
				m.wall -= 50 * 365 * 24 * time.Hour
				m.clock.Watch()
				m.wall += 50 * 365 * 24 * time.Hour
				m.clock.Watch()
			}
			if u := m.clock.Uncertainty(); u < 30*365*24*time.Hour {
				t.Errorf("moved by 2000 years in all: uncertain by %v", u)
			}
		})
	}
}

// TestUncertaintyBesideTheStore: process time that was set by the other processes is not the store's.
func TestUncertaintyBesideTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(0, hour)
		m.clock.Begin(m.reading(), peers(0, 0))
		if u := m.clock.Uncertainty(); u != clock.Unknown {
			t.Errorf("begun with the others: uncertain by %v", u)
		}
		m = newMachine(0, 0)
		m.clock.Begin(m.reading(), nil)
		m.wall, m.store = five, hour
		m.clock.Adjust(m.reading(), peers(2*hour, 2*hour))
		if u := m.clock.Uncertainty(); m.ahead() != 2*hour || u != clock.Unknown {
			t.Errorf("stepped with the others, by %v: uncertain by %v", m.ahead(), u)
		}
	})
}

// TestReadingAges: a reading is worth what the store's clock shows when it is used, not when it was
// taken.
func TestReadingAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(0, 0)
		reading := m.reading()
		is := func(what string) {
			t.Helper()
			if off, u := m.ahead().Abs(), m.clock.Uncertainty(); off > u || u > 7*time.Millisecond {
				t.Errorf("%s: off by %v, uncertain by %v", what, off, u)
			}
		}
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // simulated
		m.clock.Begin(reading, nil)
		is("begun with an old reading")
		reading = m.reading()
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // simulated
		if st := m.clock.Adjust(reading, nil); st.Store.Abs() > time.Millisecond {
			t.Errorf("compared with an old reading: %+v", st)
		}
		is("compared with an old reading")
		reading = m.reading()
		m.wall, m.store = 10*time.Minute, 10*time.Minute
		reading.Time = reading.Time.Add(m.store)
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // simulated
		m.clock.Adjust(reading, nil)
		if off := m.ahead() - m.store; off.Abs() > m.clock.Uncertainty() {
			t.Errorf("stepped by an old reading: off by %v, uncertain by %v", off, m.clock.Uncertainty())
		}
	})
}

// TestNewReading: the store's clock was read at some time in the round trip.
func TestNewReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // simulated
		theirs := time.Now()
		time.Sleep(30 * time.Millisecond) //nolint:forbidigo // simulated
		r := clock.NewReading(theirs, began)
		if !r.At.Equal(time.Now()) || r.Error != 20*time.Millisecond || !r.Time.Equal(theirs.Add(20*time.Millisecond)) {
			t.Errorf("%+v", r)
		}
	})
}
