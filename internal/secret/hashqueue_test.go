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

// takeSlot takes a slot with its own name and source.
func takeSlot(t *testing.T, p *Passwords) (giveBack func()) {
	t.Helper()
	own := New()
	slot, err := p.queue.acquire(t.Context(), &Attempt{Name: own, Source: own})
	check.OK(t, err)
	return func() { p.queue.release(slot, 0) }
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

// whileBusy sends attempts while the only slot is taken, waits until all have ended, and checks that
// no state is left.
func whileBusy(t *testing.T, opts PasswordOptions, send func(s *slow)) (s *slow) {
	t.Helper()
	opts.Concurrency = 1
	synctest.Test(t, func(t *testing.T) {
		s = newSlow(t, opts)
		giveBack := takeSlot(t, s.Passwords)
		send(s)
		giveBack()
		s.group.Wait()
		wantIdle(t, s.Passwords)
	})
	return s
}

// wantSoon checks that the attempt with the password was hashed after at most before others.
func (s *slow) wantSoon(t *testing.T, password string, before int) {
	t.Helper()
	if n := slices.Index(s.hashed, password); n < 0 || n > before {
		t.Errorf("%d were hashed before %s, want at most %d; it failed with %v", n, password, before, s.failed[password])
	}
}

func always(text string) func(int) string { return func(int) string { return text } }

func numbered(text string) func(int) string {
	return func(i int) string { return fmt.Sprint(text, i) }
}

// in48 returns an attempt with its own name from a source in a /56 of a /48.
func in48(name string, wide, narrow, source int) Attempt {
	site, customer := fmt.Sprintf("site %d", wide), fmt.Sprintf("customer %d.%d", wide, narrow)
	return Attempt{
		Name: name, Password: name, Networks: []string{site, customer},
		Source: fmt.Sprintf("source %d.%d.%d", wide, narrow, source),
	}
}

// flooding is a flood, and an attempt after it.
type flooding struct {
	name    string
	room    int // 0: the default
	flood   int
	attempt func(i int) Attempt
	last    Attempt
	before  int // maximum number of attempts that are hashed before the last
	// filled: it is known that a hash takes 140 ms, so the flood fills more than three seconds
	filled bool
}

func (f *flooding) run(t *testing.T) {
	f.last.Password = "last"
	s := whileBusy(t, PasswordOptions{Queue: f.room}, func(s *slow) {
		if f.filled {
			s.takes = 140 * time.Millisecond
			s.queue.average = s.takes
		}
		for i := range f.flood {
			a := f.attempt(i)
			a.Password = fmt.Sprint("flood ", i)
			s.start(a)
		}
		s.start(f.last)
	})
	s.wantSoon(t, "last", f.before)
}

// TestNoFloodStandsBeforeOthers: however large a flood is, only few of its attempts are hashed
// before the first attempt of another user, and none refuses it.
//
// Attack (sign-ins): A flood delays other users. The queue serves usernames and sources in turn,
// so others wait behind few attempts of a flood, even from its address. Also
// secret.TestSignInsOfTheDayDelayNoOther.
func TestNoFloodStandsBeforeOthers(t *testing.T) {
	of := func(name, source func(int) string) func(int) Attempt {
		return func(i int) Attempt { return Attempt{Name: name(i), Source: source(i)} }
	}
	known := func(name func(int) string) func(int) Attempt {
		return func(i int) Attempt { return Attempt{Name: name(i), Source: "X", Known: true} }
	}
	bob, knownBob := Attempt{Name: "bob", Source: "Y"}, Attempt{Name: "bob", Source: "Y", Known: true}
	then := func(n int, first, second func(int) Attempt) func(int) Attempt {
		return func(i int) Attempt {
			if i < n {
				return first(i)
			}
			return second(i)
		}
	}
	all := []flooding{
		{name: "one user, one address", flood: 150, attempt: of(always("alice"), always("X")), last: bob, before: perName},
		{name: "one user, one address, many", flood: 1050, attempt: of(always("alice"), always("X")), last: bob, before: perName},
		{name: "one user, many addresses", flood: 150, attempt: of(always("alice"), numbered("X")), last: bob, before: perName},
		{name: "any users, one address", flood: 150, attempt: of(numbered("user "), always("X")), last: bob, before: perSource},
		{name: "one user, the address of bob", flood: 1050, attempt: of(always("alice"), always("Y")), last: bob, before: perName},
		{name: "the name of bob, from elsewhere", flood: 1050, attempt: of(always("bob"), always("X")), last: bob, before: perName + 1},
		{
			name: "any users, from that of bob (NAT)", flood: 300, last: bob, before: 100,
			attempt: of(func(i int) string { return fmt.Sprint("user ", i%100) }, always("Y")),
		},
		{name: "a known user", flood: 100, attempt: known(always("alice")), last: knownBob, before: perName},
		{name: "known users", flood: 100, attempt: known(numbered("user ")), last: knownBob, before: perSource},
		{
			name: "known users fill three seconds", flood: 400, last: bob, before: 4, filled: true,
			attempt: func(i int) Attempt {
				return Attempt{Name: fmt.Sprint("user ", i), Source: fmt.Sprint("address ", i), Known: true}
			},
		},
		// They fill the room for attempts held back, and bob waits for two attempts with his name.
		{
			name: "little room, one user", room: 10, flood: 33, last: bob, before: 33,
			attempt: then(30, of(always("alice"), always("X")), of(always("bob"), always("Z"))),
		},
		{
			name: "little room, any users", room: 10, flood: 32, last: bob, before: 7,
			attempt: then(30, of(numbered("user "), always("X")), of(always("bob"), always("Z"))),
		},
		// Within the /48 of a flood too, a smaller network that sends less goes first.
		{name: "another /56", flood: 400, attempt: in56, last: in48("bob", 1, 2, 1), before: 4, filled: true},
		{name: "another /64", flood: 400, attempt: in56, last: in48("bob", 1, 1, 1000), before: 4, filled: true},
	}
	for name, wide := range map[string]struct {
		before  int // for an unknown attempt from elsewhere: one of each network
		attempt func(i int) Attempt
	}{
		"20 addresses":              {20, func(i int) Attempt { return Attempt{Source: fmt.Sprint("address ", i%20)} }},
		"20 addresses, 8 at a time": {20, func(i int) Attempt { return Attempt{Source: fmt.Sprint("address ", i/8%20)} }},
		"a /56":                     {1, func(i int) Attempt { return in48("", 1, 1, i%256) }},
		"a /48":                     {1, func(i int) Attempt { return in48("", 1, i%256, i%1000) }},
		"one address":               {4, func(int) Attempt { return Attempt{Source: "address"} }},
	} {
		strangers := func(i int) Attempt {
			a := wide.attempt(i)
			a.Name = fmt.Sprint("stranger ", i)
			return a
		}
		one := strangers(0)
		one.Known = true
		all = append(all,
			flooding{name: name, flood: 400, attempt: strangers, last: bob, before: wide.before, filled: true},
			flooding{name: name + ", and a known user", flood: 400, attempt: strangers, last: knownBob, before: 1, filled: true},
			flooding{name: name + ", and a known user as one of them", flood: 400, attempt: strangers, last: one, before: 1, filled: true})
	}
	for _, f := range all {
		t.Run(f.name, f.run)
	}
}

// in56 returns attempts from four sources of one /56.
func in56(i int) Attempt { return in48(fmt.Sprint("stranger ", i), 1, 1, i%4) }

// TestSlotsAreShared: among several users of one address, the user with the most attempts gets no
// more slots than the others. Known attempts get three of four slots, however many of each class
// there are.
func TestSlotsAreShared(t *testing.T) {
	s := whileBusy(t, PasswordOptions{}, func(s *slow) {
		for _, name := range []string{"a", "a", "a", "a", "b", "b", "b", "c", "c"} {
			s.attempt(name, "X", name)
		}
	})
	check.Equal(t, "users", strings.Join(s.hashed, ""), "aabbacabc") // four in the queue, then by turns
	s = whileBusy(t, PasswordOptions{}, func(s *slow) {
		for i := range 12 {
			s.start(Attempt{Name: fmt.Sprint("a", i), Source: fmt.Sprint("a", i), Password: "u"})
			s.start(Attempt{Name: fmt.Sprint("b", i), Source: fmt.Sprint("b", i), Password: "K", Known: true})
		}
	})
	check.Equal(t, "classes", strings.Join(s.hashed, ""), "KKKuKKKuKKKuKKK"+"uuuuuuuuu")
}

// TestLongWaitsAreRefused: an attempt that would be queued for more than three seconds is refused
// at once.
//
// Attack (sign-ins): A full queue. An attempt that would wait longer than three seconds gets 503
// with `Retry-After` at once. Also httpapi.TestBusy.
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
		s.takes = 21 * time.Millisecond // no slot is freed exactly on three seconds
		began := time.Now()
		s.flood(400, always("alice"), always("X"))
		s.group.Wait()
		if took := time.Since(began); took > longest+s.takes {
			t.Errorf("the last one waited for %s", took)
		}
		check.Equal(t, "hashed in three seconds at 21 ms each, two at once", len(s.hashed), 286)
		wantBusy(t, s.failed["flood 399"], 3*time.Second)
		wantIdle(t, s.Passwords)
	})
}

func TestStuckSlotIsWaitedForThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords(PasswordOptions{Concurrency: 1})
		giveBack := takeSlot(t, p)
		began := time.Now()
		for _, name := range []string{"queued", "held", "held", "held"} {
			go func() { wantBusy(t, p.RejectAttempt(t.Context(), Attempt{Name: name}), longest) }()
		}
		synctest.Wait()
		wantBusy(t, p.RejectAttempt(t.Context(), Attempt{Name: "queued"}), longest)
		check.Equal(t, "refused after", time.Since(began), longest)
		giveBack()
		synctest.Wait()
		wantIdle(t, p)
	})
}

// TestNothingIsHashedForThoseWhoHaveGone: no password is hashed after its caller has disconnected,
// neither while it waits nor when it gets a slot.
//
// Attack (sign-ins): Work for callers that hung up. Their attempts leave the queue and are not
// hashed. Also e2e.TestNothingIsHashedForThoseWhoHungUp.
func TestNothingIsHashedForThoseWhoHaveGone(t *testing.T) {
	s := whileBusy(t, PasswordOptions{}, func(s *slow) {
		ctx, cancel := context.WithCancel(s.t.Context())
		for range 50 {
			s.group.Go(func() {
				check.ErrorIs(s.t, s.RejectAttempt(ctx, Attempt{Name: "alice", Source: "X", Password: "gone"}), context.Canceled)
			})
		}
		synctest.Wait()
		cancel()
		// At the same time as the slot is freed, so some get it after their caller has disconnected.
		s.group.Go(func() { _ = s.RejectAttempt(s.t.Context(), Attempt{Name: "bob", Source: "Y", Password: "bob's"}) })
	})
	check.Equal(t, "hashed", s.hashed, []string{"bob's"})
}

// TestUnknownNamesWaitLikeOthers: queueing does not depend on whether the user exists.
//
// Attack (sign-ins): Finding usernames by time. Unknown names are queued and hashed like known
// ones.
func TestUnknownNamesWaitLikeOthers(t *testing.T) {
	order := func(exists bool) []string {
		return whileBusy(t, PasswordOptions{}, func(s *slow) {
			for i := range 5 {
				a := Attempt{Name: "alice", Source: "X", Password: fmt.Sprint("alice ", i)}
				s.group.Go(func() {
					if exists {
						_, err := s.VerifyAttempt(s.t.Context(), goodHash, a)
						check.OK(s.t, err)
						return
					}
					check.OK(s.t, s.RejectAttempt(s.t.Context(), a))
				})
				synctest.Wait()
				s.attempt("bob", "X", fmt.Sprint("bob ", i))
			}
		}).hashed
	}
	check.Equal(t, "order", order(false), order(true))
}

// Attack (sign-ins): Many sign-ins exhaust memory. Concurrent hashes are bounded by processors
// and memory, at most eight by default.
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
		check.Equal(t, fmt.Sprintf("%d processors, %d MiB", tt.procs, tt.memory/mib), defaultConcurrency(tt.procs, tt.memory), tt.want)
	}
	for _, more := range []int{0, 64} { // GOMAXPROCS above the number of processors adds no processors
		old := runtime.GOMAXPROCS(runtime.NumCPU() + more)
		got := NewPasswords(PasswordOptions{Memory: 1 << 40}).Concurrency()
		runtime.GOMAXPROCS(old)
		if want := defaultConcurrency(runtime.NumCPU(), 1<<40); got != want {
			t.Errorf("%d at once with %d places more, want %d", got, more, want)
		}
	}
	check.Equal(t, "at once", NewPasswords(PasswordOptions{Concurrency: 20, Memory: mib}).Concurrency(), 20)
}

// TestHashesAtOnce: at most two hashes with one name and four from one source run at once, known
// and unknown together.
//
// Attack (sign-ins): One account signs in over and over. At most two hashes with one username
// and four from one source run at once. Above the sign-in limit nothing is hashed. Also
// e2e.TestOneAccountBlocksNoOtherSignIn, accounts.TestSignInsOfOneUserAreLimited.
func TestHashesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		name, source func(int) string
		most         int
	}{
		"one name":   {always("alice"), numbered("X"), perName},
		"one source": {numbered("user "), always("X"), perSource},
	} {
		for order, known := range map[string]func(i int) bool{
			"by turns":      func(i int) bool { return i%2 == 0 },
			"known first":   func(i int) bool { return i < 20 },
			"unknown first": func(i int) bool { return i >= 20 },
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSlow(t, PasswordOptions{Concurrency: 12})
					for i := range 40 {
						s.start(Attempt{Name: tc.name(i), Source: tc.source(i), Password: fmt.Sprint(known(i)), Known: known(i)})
					}
					s.group.Wait()
					if s.most != tc.most || len(s.hashed) != 40 {
						t.Errorf("%d of %d were hashed at once, want %d of 40", s.most, len(s.hashed), tc.most)
					}
					// While both classes wait, each has half, except for hashes that started before
					// the other class arrived.
					for i := tc.most; i+tc.most <= 32; i += tc.most {
						check.Equal(t, fmt.Sprint("known ones hashed from ", i, " on"), strings.Count(strings.Join(s.hashed[i:i+tc.most], " "), "true"), tc.most/2)
					}
					wantIdle(t, s.Passwords)
				})
			})
		}
	}
}
