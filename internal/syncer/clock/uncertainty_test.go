package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/syncer/clock"
)

// TestUncertainty: it is the error of the best reading, plus the part that is not slewed yet and
// the drift of clocks. It is unknown before the first reading of the store.
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

// TestUncertaintyWithoutTheStore: while the store's clock cannot be read, a moving wall clock may
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

// TestUncertaintyBesideTheStore: process time that was set by other processes does not follow the
// store.
func TestUncertaintyBesideTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(0, hour)
		m.clock.Begin(m.reading(), peers(0, 0))
		check.Equal(t, "uncertainty after a start with the others", m.clock.Uncertainty(), clock.Unknown)
		m = newMachine(0, 0)
		m.clock.Begin(m.reading(), nil)
		m.wall, m.store = five, hour
		m.clock.Adjust(m.reading(), peers(2*hour, 2*hour))
		if u := m.clock.Uncertainty(); m.ahead() != 2*hour || u != clock.Unknown {
			t.Errorf("stepped with the others, by %v: uncertain by %v", m.ahead(), u)
		}
	})
}

// TestReadingAges: a reading stands for the store's time when it is used, not when it was taken.
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

// TestNewReading: the store's clock was read at some moment of the round trip.
func TestNewReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // simulated
		theirs := time.Now()
		time.Sleep(30 * time.Millisecond) //nolint:forbidigo // simulated
		r := clock.NewReading(theirs, began, time.Now())
		if !r.At.Equal(time.Now()) || r.Error != 20*time.Millisecond || !r.Time.Equal(theirs.Add(20*time.Millisecond)) {
			t.Errorf("%+v", r)
		}
	})
}
