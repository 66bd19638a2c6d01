package observed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/store/observed"
)

// slow is a store whose calls take a time, or until their caller goes.
type slow struct {
	store.Backend
	takes time.Duration

	mu         sync.Mutex
	now, peak  int
	begun, cut int
}

func (s *slow) Now(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	s.now++
	s.begun++
	s.peak = max(s.peak, s.now)
	takes := s.takes
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	select {
	case <-time.After(takes):
		return time.Time{}, nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cut++
		return time.Time{}, ctx.Err()
	}
}

// slowWorld is a slow store behind a lane of four calls at once.
func slowWorld(takes time.Duration) (*observed.Backend, *lane.Lane, *slow) {
	b := &slow{takes: takes}
	l := lane.New(lane.Options{Max: 4, Mode: ratelimit.Enforce})
	return wrap(b, l), l, b
}

// TestSlowStore offers five times what a slow store can do, as requests of three calls each whose callers wait for ten
// seconds. What is let in is finished: each further call waits at most for those that hold the places. Others are refused
// after half a second, work of the server's own begins at once, and in the end no place is held.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, takes = 3, time.Second
		s, l, b := slowWorld(takes)
		var mu sync.Mutex
		var finished, refused int
		var longest time.Duration // wait of a further call
		request := func() {
			ctx, cancel := context.WithTimeout(lane.NewRequest(t.Context()), 10*time.Second)
			defer cancel()
			for i := range calls {
				began := time.Now()
				_, err := s.Now(ctx)
				waited := time.Since(began)
				mu.Lock()
				var shed *admission.ShedError
				switch {
				case i == 0 && errors.As(err, &shed):
					refused++
					check.Equal(t, "waited until refused", waited, time.Second/2)
				case err != nil:
					t.Errorf("call %d: %v after %v", i+1, err, waited)
				case i > 0:
					longest = max(longest, waited-takes)
				}
				finished += (i + 1) / calls
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}
		var requests sync.WaitGroup
		for range 200 { // 6.7 a second for 30 s, of which 1.3 can be worked on
			requests.Go(request)
			time.Sleep(150 * time.Millisecond) //nolint:forbidigo // simulated time
		}
		b.mu.Lock()
		peak := b.peak
		b.mu.Unlock()
		began := time.Now()
		_, err := s.Now(t.Context()) // the server's own
		check.OK(t, err)
		check.Equal(t, "work of the server's own takes", time.Since(began), takes)
		requests.Wait()
		t.Logf("finished %d, refused %d, further calls waited up to %v", finished, refused, longest)
		check.Equal(t, "finished and refused", finished+refused, 200)
		check.Equal(t, "calls at once", peak, 4)
		if longest > 2*takes || finished < 30 {
			t.Errorf("%d finished, and a further call waited for %v", finished, longest)
		}
		st := l.Stats()
		check.Equal(t, "in flight and queued", st.InFlight+st.Queued, 0)
	})
}

// TestCallersWhoGoFreePlaces: those that wait, and those whose calls are at the store, whose places others take at once.
func TestCallersWhoGoFreePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, b := slowWorld(time.Hour)
		gone, leave := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		call := func(ctx context.Context, want error) {
			calls.Go(func() {
				if _, err := s.Now(lane.NewRequest(ctx)); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			})
		}
		for range 10 {
			call(gone, context.Canceled)
		}
		synctest.Wait()
		check.Equal(t, "queued", l.Stats().Queued, 6)
		b.mu.Lock()
		b.takes = time.Second
		b.mu.Unlock()
		for range 4 {
			call(t.Context(), nil)
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		st := l.Stats()
		abandoned := st.Calls.Of(admission.Abandoned)
		check.Equal(t, "queued after they have gone", st.Queued, 0)
		check.Equal(t, "in flight, of others", st.InFlight, 4)
		calls.Wait()
		check.Equal(t, "calls that began", b.begun, 8)
		check.Equal(t, "of which were cut short", b.cut, 4)
		check.Equal(t, "abandoned", abandoned, uint64(6))
	})
}
