package secret

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
)

const longest = 3 * time.Second // the default

// takeTurn takes a turn with its own name and source.
func takeTurn(t *testing.T, p *Passwords) (giveBack func()) {
	t.Helper()
	own := New()
	turn, err := p.queue.acquire(t.Context(), &Attempt{Name: own, Source: own})
	check.OK(t, err)
	return func() { p.queue.release(turn, 0) }
}

// wantBusy fails the test unless err is a BusyError with that RetryAfter.
func wantBusy(t *testing.T, err error, after time.Duration) {
	t.Helper()
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Starved || busy.RetryAfter != after {
		t.Errorf("error %v, want a BusyError that says %s", err, after)
	}
}

// wantIdle fails the test unless all state of past attempts is gone.
func wantIdle(t *testing.T, p *Passwords) {
	t.Helper()
	type left struct{ Running, Queued, Held, Lines int }
	at := p.queue
	got := left{at.all.hashing(), len(at.waiting[queued].waiting), len(at.waiting[held].waiting), at.size() + len(at.tallies)}
	check.Equal(t, "left", got, left{})
}

// size returns the number of groups.
func (t *hashQueue) size() int { return len(t.waiting[held].groups) + len(t.waiting[queued].groups) }

// slow records the hashes of Passwords that take 20 ms of the test's clock each, or takes.
type slow struct {
	*Passwords
	t     *testing.T
	takes time.Duration // time of a hash
	group sync.WaitGroup

	mu     sync.Mutex
	hashed []string // passwords, in order
	most   int      // maximum number of concurrent hashes
	now    int
	failed map[string]error // by password
}

func newSlow(t *testing.T, opts PasswordOptions) *slow {
	t.Helper()
	s := &slow{Passwords: NewPasswords(opts), t: t, takes: 20 * time.Millisecond, failed: map[string]error{}}
	s.key = func(password, _ []byte, _, _ uint32, _ uint8, n uint32) []byte {
		s.mu.Lock()
		s.hashed = append(s.hashed, string(password))
		s.now++
		s.most = max(s.most, s.now)
		s.mu.Unlock()
		<-time.After(s.takes)
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
		return make([]byte, n)
	}
	return s
}

// attempt starts an attempt, and returns when it waits or hashes. The password identifies it in the
// records.
func (s *slow) attempt(name, source, password string) {
	s.start(Attempt{Name: name, Source: source, Password: password})
}

func (s *slow) start(a Attempt) {
	s.group.Go(func() {
		if err := s.RejectAttempt(s.t.Context(), a); err != nil {
			s.mu.Lock()
			s.failed[a.Password] = err
			s.mu.Unlock()
		}
	})
	synctest.Wait()
}

func (s *slow) flood(n int, name func(i int) string, source func(i int) string) {
	for i := range n {
		s.attempt(name(i), source(i), fmt.Sprint("flood ", i))
	}
}

func always(text string) func(int) string { return func(int) string { return text } }

func numbered(text string) func(int) string {
	return func(i int) string { return fmt.Sprint(text, i) }
}

// TestNoFloodStandsBeforeOthers: however large a flood is, only few of its attempts are hashed
// before the first attempt of another user.
func TestNoFloodStandsBeforeOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		flood        int
		name, source func(int) string
		before       int // maximum number of the flood's attempts
	}{
		"one user, one address":             {150, always("alice"), always("X"), perName},
		"one user, one address, many":       {1050, always("alice"), always("X"), perName},
		"one user, many addresses":          {150, always("alice"), numbered("X"), perName},
		"any users, one address":            {150, numbered("user "), always("X"), perSource},
		"one user, the address of bob":      {1050, always("alice"), always("Y"), perName},
		"the name of bob, from elsewhere":   {1050, always("bob"), always("X"), perName + 1},
		"any users, from that of bob (NAT)": {300, func(i int) string { return fmt.Sprint("user ", i%100) }, always("Y"), 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, PasswordOptions{Concurrency: 1})
				giveBack := takeTurn(t, s.Passwords)
				s.flood(tc.flood, tc.name, tc.source)
				s.attempt("bob", "Y", "bob's")
				giveBack()
				s.group.Wait()
				if n := slices.Index(s.hashed, "bob's"); n < 0 || n > tc.before {
					t.Errorf("%d of the flood were hashed before bob's, want at most %d; bob's: %v", n, tc.before, s.failed["bob's"])
				}
				wantIdle(t, s.Passwords)
			})
		})
	}
}

// TestHeldBackAreServedByTurns: among several users of one address, the user with the most attempts
// gets no more turns than the others.
func TestHeldBackAreServedByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1})
		giveBack := takeTurn(t, s.Passwords)
		for _, name := range []string{"a", "a", "a", "a", "b", "b", "b", "c", "c"} {
			s.attempt(name, "X", name)
		}
		giveBack()
		s.group.Wait()
		if got := strings.Join(s.hashed, ""); got != "aabbacabc" { // four in the queue, then by turns
			t.Errorf("hashed in the order %s", got)
		}
	})
}

// TestLongWaitsAreRefused: an attempt that would be queued for more than three seconds is refused
// at once.
func TestLongWaitsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 2})
		s.attempt("alice", "X", "so that it is known how long a hash takes")
		s.group.Wait()
		s.flood(400, numbered("user "), numbered("X"))
		refused := len(s.failed) // the clock stands still
		if want := 400 - 2 - 301; refused != want {
			t.Errorf("%d of 400 were refused at once, want %d: two of 20 ms are hashed at once", refused, want)
		}
		wantBusy(t, s.failed["flood 399"], 4*time.Second)
		began := time.Now()
		s.group.Wait()
		if took := time.Since(began); took > longest+40*time.Millisecond {
			t.Errorf("the last one waited for %s", took)
		}
		wantIdle(t, s.Passwords)
	})
}

// TestHeldBackAreRefusedInTime: in a flood of one user, attempts that have waited for three seconds
// are refused.
func TestHeldBackAreRefusedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 2})
		s.takes = 21 * time.Millisecond // no turn falls exactly on three seconds
		began := time.Now()
		s.flood(400, always("alice"), always("X"))
		s.group.Wait()
		if took := time.Since(began); took > longest+s.takes {
			t.Errorf("the last one waited for %s", took)
		}
		if n := len(s.hashed); n != 286 {
			t.Errorf("%d were hashed in three seconds at 21 ms each, two at once, want 2 x 143", n)
		}
		wantBusy(t, s.failed["flood 399"], 3*time.Second)
		wantIdle(t, s.Passwords)
	})
}

func TestStuckTurnIsWaitedForThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords(PasswordOptions{Concurrency: 1})
		giveBack := takeTurn(t, p)
		began := time.Now()
		for _, name := range []string{"queued", "held", "held", "held"} {
			go func() { wantBusy(t, p.RejectAttempt(t.Context(), Attempt{Name: name}), longest) }()
		}
		synctest.Wait()
		wantBusy(t, p.RejectAttempt(t.Context(), Attempt{Name: "queued"}), longest)
		if took := time.Since(began); took != longest {
			t.Errorf("refused after %s, want %s", took, longest)
		}
		giveBack()
		synctest.Wait()
		wantIdle(t, p)
	})
}

// TestNothingIsHashedForThoseWhoHaveGone: no password is hashed after its caller has disconnected,
// neither while it waits nor when its turn comes.
func TestNothingIsHashedForThoseWhoHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1})
		giveBack := takeTurn(t, s.Passwords)
		ctx, cancel := context.WithCancel(t.Context())
		for range 50 {
			s.group.Go(func() {
				check.ErrorIs(t, s.RejectAttempt(ctx, Attempt{Name: "alice", Source: "X", Password: "gone"}), context.Canceled)
			})
		}
		synctest.Wait()
		cancel()
		giveBack() // at the same time, so some attempts get their turn after their caller has disconnected
		s.attempt("bob", "Y", "bob's")
		s.group.Wait()
		check.Equal(t, "hashed", s.hashed, []string{"bob's"})
		wantIdle(t, s.Passwords)
	})
}

// TestRoomIsForThoseWhoGoFirst: a flood that fills the room for attempts held back does not keep
// others out.
func TestRoomIsForThoseWhoGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 1, Queue: 10})
		giveBack := takeTurn(t, s.Passwords)
		s.flood(30, always("alice"), always("X"))
		wantBusy(t, s.failed["flood 12"], longest) // two are in the queue
		s.flood(3, always("bob"), always("Z"))
		s.attempt("bob", "Y", "bob's") // has to wait for two attempts with that name
		giveBack()
		s.group.Wait()
		if !slices.Contains(s.hashed, "bob's") {
			t.Errorf("refused: %v", s.failed["bob's"])
		}
		wantIdle(t, s.Passwords)
	})
}

// TestUnknownNamesWaitLikeOthers: queueing does not depend on whether the user exists.
func TestUnknownNamesWaitLikeOthers(t *testing.T) {
	order := func(exists bool) (order []string) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlow(t, PasswordOptions{Concurrency: 1})
			giveBack := takeTurn(t, s.Passwords)
			for i := range 5 {
				a := Attempt{Name: "alice", Source: "X", Password: fmt.Sprint("alice ", i)}
				s.group.Go(func() {
					if exists {
						_, err := s.VerifyAttempt(t.Context(), goodHash, a)
						check.ErrorIs(t, err, nil)
						return
					}
					check.ErrorIs(t, s.RejectAttempt(t.Context(), a), nil)
				})
				synctest.Wait()
				s.attempt("bob", "X", fmt.Sprint("bob ", i))
			}
			giveBack()
			s.group.Wait()
			order = s.hashed
		})
		return order
	}
	check.Equal(t, "order", order(false), order(true))
}

func TestDefaultConcurrency(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		procs  int
		memory int64
		want   int
	}{
		{1, 0, 1},
		{2, 0, 1},
		{8, 0, 4},
		{64, 0, 8},
		{64, 1024 * mib, 8},
		{64, 512 * mib, 6},
		{64, 256 * mib, 3},
		{64, 64 * mib, 1},
		{4, 256 * mib, 2},
	} {
		t.Run(fmt.Sprintf("%d processors, %d MiB", tt.procs, tt.memory/mib), func(t *testing.T) {
			if got := defaultConcurrency(tt.procs, tt.memory); got != tt.want {
				t.Errorf("%d at once, want %d", got, tt.want)
			}
		})
	}
	for _, more := range []int{0, 64} { // GOMAXPROCS above the number of processors adds no processors
		old := runtime.GOMAXPROCS(runtime.NumCPU() + more)
		got := NewPasswords(PasswordOptions{Memory: 1 << 40}).Concurrency()
		runtime.GOMAXPROCS(old)
		if want := defaultConcurrency(runtime.NumCPU(), 1<<40); got != want {
			t.Errorf("%d at once with %d places more, want %d", got, more, want)
		}
	}
	if got := NewPasswords(PasswordOptions{Concurrency: 20, Memory: mib}).Concurrency(); got != 20 {
		t.Errorf("%d at once, want the configured 20", got)
	}
}

// TestManyAtOnce: with many concurrent attempts, no more than allowed are hashed at once, and no
// state is left behind.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, PasswordOptions{Concurrency: 3, Queue: 40})
		for i := range 2000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*30*time.Millisecond+time.Millisecond)
			s.group.Go(func() {
				defer cancel()
				<-time.After(time.Duration(i%50) * 10 * time.Millisecond)
				_ = s.RejectAttempt(ctx, Attempt{Name: fmt.Sprint(i % 11), Source: fmt.Sprint(i % 13)})
			})
		}
		s.group.Wait()
		if s.most != 3 {
			t.Errorf("%d were hashed at once, want 3", s.most)
		}
		wantIdle(t, s.Passwords)
	})
}
