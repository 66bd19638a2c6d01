package observed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/store/observed"
)

// slow is a store with slow calls, which end early when their context ends.
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

// slowWorld returns a slow store behind a queue of four concurrent calls.
func slowWorld(takes time.Duration) (*observed.Backend, *storequeue.Queue, *slow) {
	b := &slow{takes: takes}
	l := storequeue.New(storequeue.Options{Max: 4, Mode: ratelimit.Enforce})
	return wrap(b, l), l, b
}

// TestSlowStore offers five times as many requests as a slow store can handle. A request makes
// three calls, and its caller waits for ten seconds. Admitted requests finish: each further call
// waits only for the calls that hold the slots. Other requests are refused after half a second, the
// server's own operations begin at once, and at the end all slots are free.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, takes = 3, time.Second
		s, l, b := slowWorld(takes)
		var mu sync.Mutex
		var finished, refused int
		var longest time.Duration // longest wait of a further call
		request := func() {
			ctx, cancel := context.WithTimeout(storequeue.NewRequest(t.Context()), 10*time.Second)
			defer cancel()
			for i := range calls {
				began := time.Now()
				_, err := s.Now(ctx)
				waited := time.Since(began)
				mu.Lock()
				var shed *overload.ShedError
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
		for range 200 { // 6.7 a second for 30 s; the store can handle 1.3 a second
			requests.Go(request)
			time.Sleep(150 * time.Millisecond) //nolint:forbidigo // simulated time
		}
		b.mu.Lock()
		peak := b.peak
		b.mu.Unlock()
		began := time.Now()
		_, err := s.Now(t.Context()) // an operation of the server itself
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

// TestCallersWhoGoFreePlaces: callers go away while they wait or while their calls are at the
// store. Others get their slots at once.
func TestCallersWhoGoFreePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, b := slowWorld(time.Hour)
		gone, leave := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		call := func(ctx context.Context, want error) {
			calls.Go(func() {
				if _, err := s.Now(storequeue.NewRequest(ctx)); !errors.Is(err, want) {
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
		abandoned := st.Calls.Of(overload.Abandoned)
		check.Equal(t, "queued after they have gone", st.Queued, 0)
		check.Equal(t, "in flight, of others", st.InFlight, 4)
		calls.Wait()
		check.Equal(t, "calls that began", b.begun, 8)
		check.Equal(t, "of which were cut short", b.cut, 4)
		check.Equal(t, "abandoned", abandoned, uint64(6))
	})
}
