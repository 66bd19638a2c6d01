package accounts_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/secret"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
	"oauth-server/internal/syncer/memstore"
)

// daily sets the daily limits of wrong passwords, and all other limits so high that they do not
// matter.
func daily(perName, perUser int64) func(*accounts.Options) {
	return func(o *accounts.Options) {
		many := ratelimit.NewLimit("many", 1000, time.Minute)
		o.Failures = attempts.Limits{PerAddress: many, PerName: many}
		o.Guesses = accounts.NewGuessLimits(perName, perUser)
	}
}

// number returns one of many addresses.
func number(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

// wrong fails n sign-ins, each from another address, starting at number(first).
func (w *world) wrong(name string, first, n int) {
	w.tb.Helper()
	for i := range n {
		if err := w.signIn(number(first+i), name, "wrong"); !errors.Is(err, accounts.ErrSignIn) {
			w.tb.Fatalf("attempt %d as %s: %v", i+1, name, err)
		}
	}
}

// wantWait checks that an attempt has to wait, and returns the wait.
func wantWait(t *testing.T, err error, reason string) time.Duration {
	t.Helper()
	limited := check.As[*oautherr.LimitedError](t, err)
	if !strings.HasPrefix(limited.Description(), reason+"; retry after ") {
		t.Errorf("description %q, want %q first", limited.Description(), reason)
	}
	return limited.RetryAfter
}

const (
	dayOver = "Too many failed attempts with this username from this address"
	rowOver = "Too many failed attempts with this username"
)

// TestGuessesOfADay: an address has a number of guesses a day for a username, whether or not the
// user exists, and however slowly it guesses. Other addresses and usernames have their own.
//
// Attack (guessing): Slow guessing. Wrong passwords for one username from one address have a
// daily limit, whether or not the user exists.
func TestGuessesOfADay(t *testing.T) {
	w := newWorld(t, daily(5, 1000))
	for _, name := range []string{"alice", "nobody", "no name\x00"} {
		for range 5 {
			check.ErrorIs(t, w.signIn(here, name, "wrong"), accounts.ErrSignIn)
			w.clock.Advance(20 * time.Minute)
		}
		wait := wantWait(t, w.signIn(here, name, password), dayOver)
		if wait < 6*time.Hour || wait > 15*time.Hour { // the UTC day, plus a fifth of the next
			t.Errorf("%q: to wait for %v", name, wait)
		}
	}
	check.OK(t, w.signIn(here, "bob", password))
	check.OK(t, w.signIn(elsewhere, "alice", password))
	wait := wantWait(t, w.signIn(here, "alice", password), dayOver)
	w.clock.Advance(wait - time.Second)
	wantWait(t, w.signIn(here, "alice", password), dayOver)
	w.clock.Advance(time.Second)
	check.ErrorIs(t, w.signIn(here, "alice", "wrong"), accounts.ErrSignIn)
	wantWait(t, w.signIn(here, "alice", password), dayOver)
	w.clock.Advance(48 * time.Hour)
	check.OK(t, w.signIn(here, "alice", password))
}

// TestRowSlowsDown: after many wrong passwords from many addresses, all new addresses together have
// one attempt every 30 seconds. The same holds for a username without a user.
//
// Attack (guessing): Guessing from many addresses. After many wrong passwords in a row, all new
// addresses together get one attempt every 30 seconds, on all instances. Also
// accounts.TestSlowDownOfAllInstances, accounts.TestRightPasswordEndsTheRow.
func TestRowSlowsDown(t *testing.T) {
	for _, name := range []string{"alice", "nobody"} {
		w := newWorld(t, daily(1000, 10))
		w.wrong(name, 0, 10)
		check.ErrorIs(t, w.signIn(number(10), name, "wrong"), accounts.ErrSignIn)
		for i := range 5 {
			wait := wantWait(t, w.signIn(number(11+i), name, "wrong"), rowOver)
			if wait <= 0 || wait > 31*time.Second {
				t.Errorf("%s: to wait for %v", name, wait)
			}
		}
		w.clock.Advance(wantWait(t, w.signIn(number(20), name, "wrong"), rowOver))
		check.ErrorIs(t, w.signIn(number(21), name, "wrong"), accounts.ErrSignIn)
		wantWait(t, w.signIn(number(22), name, password), rowOver)
		check.OK(t, w.signIn(number(24), "bob", password))
	}
}

// TestRightPasswordEndsTheRow: after a correct password, new addresses guess at the normal rate
// until the next row is full.
func TestRightPasswordEndsTheRow(t *testing.T) {
	w := newWorld(t, daily(1000, 10))
	w.wrong("alice", 0, 9)
	check.OK(t, w.signIn(number(9), "alice", password))
	w.wrong("alice", 10, 10)
	check.OK(t, w.signIn(number(20), "alice", password)) // the one attempt in 30 seconds
	w.wrong("alice", 21, 10)
	wantWait(t, w.signIn(number(31), "alice", password), rowOver)
	w.clock.Advance(48 * time.Hour)
	w.wrong("alice", 40, 10)
}

// TestKnownAddressesAreNotSlowedDown: an address is known if a correct password came from it in the
// last 90 days. The store keeps the last 20 addresses.
//
// Attack (guessing): Locking out a user. Addresses with a correct password in the last 90 days
// are not slowed down. Also accounts.TestKnownAddressesEndWithTheStamp.
func TestKnownAddressesAreNotSlowedDown(t *testing.T) {
	w := newWorld(t, daily(1000, 10))
	attacked := func() {
		t.Helper()
		for i := range 20 {
			var limited *oautherr.LimitedError
			if errors.As(w.signIn(number(1000+i), "alice", "wrong"), &limited) {
				return
			}
		}
		t.Fatal("20 wrong passwords slow down nothing")
	}
	check.OK(t, w.signIn(here, "alice", password))
	w.clock.Advance(time.Minute) // makes it older than the next
	w.reopen()                   // like another instance, which shares only the store
	attacked()
	check.ErrorIs(t, w.signIn(here, "alice", "wrong"), accounts.ErrSignIn)
	wantWait(t, w.signIn(elsewhere, "alice", password), rowOver)
	check.OK(t, w.signIn(here, "alice", password))
	w.clock.Advance(time.Second)
	check.OK(t, w.signIn(elsewhere, "alice", password)) // the row has ended

	known, err := w.store.Known(t.Context(), "alice")
	check.OK(t, err)
	check.Equal(t, "known addresses", len(known.Addresses), 2)
	for stored := range known.Addresses {
		if strings.Contains(stored, "192.0.2") || strings.ContainsAny(stored, ". ") {
			t.Errorf("an address is stored as %q", stored)
		}
	}
	for i := range 19 {
		w.clock.Advance(time.Minute)
		check.OK(t, w.signIn(number(i), "alice", password))
	}
	attacked()
	known, err = w.store.Known(t.Context(), "alice")
	check.OK(t, err)
	check.Equal(t, "known addresses", len(known.Addresses), 20)
	wantWait(t, w.signIn(here, "alice", password), rowOver) // the oldest
	check.ErrorIs(t, w.signIn(elsewhere, "alice", "wrong"), accounts.ErrSignIn)

	w.clock.Advance(91 * 24 * time.Hour)
	attacked()
	wantWait(t, w.signIn(elsewhere, "alice", password), rowOver)
}

// TestKnownAddressesEndWithTheStamp: a revocation ends them, even if an instance an hour ahead
// stored the address, or the old password was being checked at the revocation.
func TestKnownAddressesEndWithTheStamp(t *testing.T) {
	w, f := failingWorld(t, daily(1000, 10))
	w.clock.Advance(time.Hour)
	check.OK(t, w.signIn(here, "alice", password))
	f.Meanwhile("Get users", w.revokeUser)
	w.clock.Advance(-time.Hour)
	check.OK(t, w.signIn(elsewhere, "alice", password))
	w.wrong("alice", 0, 10)
	check.ErrorIs(t, w.signIn(number(10), "alice", "wrong"), accounts.ErrSignIn)
	w.clock.Advance(12 * time.Second)
	wantWait(t, w.signIn(here, "alice", password), rowOver)
	wantWait(t, w.signIn(elsewhere, "alice", password), rowOver)
	w.clock.Advance(30 * time.Second)
	check.OK(t, w.signIn(here, "alice", password)) // the next attempt under the slow-down
	w.wrong("alice", 20, 10)
	wantWait(t, w.signIn(number(30), "alice", "wrong"), rowOver)
	check.OK(t, w.signIn(here, "alice", password)) // known again
}

// TestSuccessWritesOnce: the user's Known is written when it changes, not at every sign-in. If the
// write fails, the user is still signed in.
func TestSuccessWritesOnce(t *testing.T) {
	w, f := failingWorld(t, daily(1000, 1000))
	writes := 0
	f.Begun = func(operation string) {
		if operation == "Put known_addresses" {
			writes++
		}
	}
	for _, step := range []struct {
		what   string
		before func()
		want   int
	}{
		{"a new address", func() {}, 1},
		{"the same again", func() {}, 1},
		{"after a wrong password", func() { w.wrong("alice", 0, 1) }, 2},
		{"a day later", func() { w.clock.Advance(24 * time.Hour) }, 3},
		{"an hour later", func() { w.clock.Advance(time.Hour) }, 3},
		{"which fails", func() {
			f.Operation, f.Err = "Put known_addresses", errDown
			w.clock.Advance(24 * time.Hour)
		}, 4},
	} {
		step.before()
		check.OK(t, w.signIn(here, "alice", password))
		check.Equal(t, "writes after "+step.what, writes, step.want)
	}
}

// TestGuessesAreShared: two instances with one store count together over a day, including counts
// from before a restart. The store does not contain the username or the address.
//
// Attack (guessing): Guessing at every instance. Instances share the counts, and read them again
// after a restart. The store contains neither username nor address.
func TestGuessesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &memstore.Store{}
		w := newWorld(t, daily(6, 1000))
		instance := func() (*accounts.Service, func()) {
			c := clock.New(nil)
			counters := counting.NewCounters(1000)
			cfg := syncer.DefaultConfig()
			cfg.Clock, cfg.Interval, cfg.Beat = c, 10*time.Second, 30*time.Second
			sync := syncer.New(counters, shared, nil, cfg)
			sync.Start(t.Context())
			w.reopen(func(o *accounts.Options) { o.Counters, o.Clock, o.Now = counters, c.Now, time.Now })
			return w.service, func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
				defer cancel()
				_, err := sync.Stop(ctx)
				check.OK(t, err)
			}
		}
		first, stopFirst := instance()
		second, stopSecond := instance()
		guess := func(at *accounts.Service) error {
			_, _, err := at.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong", Remote: here})
			<-time.After(time.Hour)
			return err
		}
		for i := range 6 {
			check.ErrorIs(t, guess([]*accounts.Service{first, second}[i%2]), accounts.ErrSignIn)
		}
		over := func(at *accounts.Service) {
			t.Helper()
			_ = guess(at) // it may have the count of an hour ago, or no count; a failure makes it read the counter
			wantWait(t, guess(at), dayOver)
		}
		over(first)
		over(second)
		stopSecond()
		stopFirst()
		third, stopThird := instance()
		over(third)
		stopThird()
		for _, r := range shared.Documents() {
			if id := r.ID; !strings.HasPrefix(id.ClientID, ratelimit.Internal) || strings.Contains(id.Username, "alice") || strings.Contains(id.Username, "192.0.2") {
				t.Errorf("a counter is stored as %+v", id)
			}
		}
	})
}

// TestWaitingUsesUpNoSlowDown: if an attempt was queued but not hashed, because there was no slot
// or its client disconnected, the one attempt in 30 seconds remains for the next. Of several queued
// at once, one may be made.
func TestWaitingUsesUpNoSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passwords := testworld.Passwords(secret.PasswordOptions{Concurrency: 1})
		w := newWorld(t, daily(1000, 10), func(o *accounts.Options) { o.Passwords = passwords })
		w.wrong("alice", 0, 10)
		giveBack := testworld.TakeHashingSlot(t, passwords)

		err := w.signIn(here, "alice", password)
		_ = check.As[*secret.BusyError](t, err)

		ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
		defer hangUp()
		_, _, err = w.service.SignIn(ctx, accounts.SignIn{Username: "alice", Password: password, Remote: here})
		if err == nil || errors.As(err, new(*oautherr.LimitedError)) {
			t.Errorf("hung up: error %v", err)
		}

		errs := make(chan error, 2)
		for i := range 2 {
			go func() { errs <- w.signIn(number(100+i), "alice", "wrong") }()
		}
		synctest.Wait()
		giveBack()
		first, second := <-errs, <-errs
		if !errors.Is(first, accounts.ErrSignIn) {
			first, second = second, first
		}
		check.ErrorIs(t, first, accounts.ErrSignIn)
		wantWait(t, second, rowOver)
	})
}

// TestSlowDownOfAllInstances: the instances have separate counters here, as if all of them admitted
// an attempt at the same moment. Only one of them makes it.
func TestSlowDownOfAllInstances(t *testing.T) {
	w, f := failingWorld(t, daily(1000, 10))
	var instances []*accounts.Service
	for i := range 3 {
		w.reopen() // with counters of its own
		w.wrong("alice", 100*i, 10)
		instances = append(instances, w.service)
	}
	const frames = 5
	made := 0
	for i := range frames {
		for j, at := range instances {
			_, _, err := at.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong", Remote: number(1000 + 10*i + j)})
			if errors.Is(err, accounts.ErrSignIn) {
				made++
				continue
			}
			if wait := wantWait(t, err, rowOver); wait > 31*time.Second {
				t.Errorf("to wait for %v", wait)
			}
		}
		w.clock.Advance(time.Minute)
	}
	check.Equal(t, "attempts made", made, frames)

	f.Operation, f.Err = "Put revocations", errDown
	err := w.signIn(number(2000), "alice", password)
	check.ErrorIs(t, err, errDown)
}

// TestUnrecordedAttemptUsesUpNothing: if the store cannot record a slowed-down attempt, because its
// queue sheds the call or it is unreachable, the error is the same whether or not the password was
// correct, and the one attempt in 30 seconds remains for the next.
func TestUnrecordedAttemptUsesUpNothing(t *testing.T) {
	for name, cause := range map[string]error{
		"refused": &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store},
		"away":    errDown,
	} {
		t.Run(name, func(t *testing.T) {
			w, f := failingWorld(t, daily(1000, 10))
			w.wrong("alice", 0, 10)
			f.Operation, f.Err = "Put revocations", cause
			for i, typed := range []string{password, "wrong"} {
				check.Equal(t, "cause", errors.Is(w.signIn(number(100+i), "alice", typed), cause), true)
			}
			check.Equal(t, "attempts that were to be recorded", f.Hits, 2)
			f.Operation = ""
			check.ErrorIs(t, w.signIn(number(200), "alice", "wrong"), accounts.ErrSignIn)
			wantWait(t, w.signIn(number(201), "alice", "wrong"), rowOver)
		})
	}
}
