package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/secret"
)

// TestFloodsOfManySourcesKeepNoOneOut: a flood fills the whole queue. A user can still sign in
// after few attempts of the flood: from an address with an earlier correct password, whatever the
// flood is, and from a new address unless the flood has more networks than the queue has places.
//
// Attack (sign-ins): A flood from many networks. Addresses are grouped by network. Addresses
// where the user has signed in before have priority. Also
// secret.TestNewcomersDuringALastingFlood.
func TestFloodsOfManySourcesKeepNoOneOut(t *testing.T) {
	const room = 60
	for name, tc := range map[string]struct {
		attempts int
		source   func(i int) netip.Addr
		known    bool
		before   int
	}{
		"known, 200 networks":   {200, v4, true, 2},
		"known, a /48":          {200, in48, true, 2},
		"unknown, 20 addresses": {200, func(i int) netip.Addr { return v4(i % 20) }, false, 21},
		"unknown, a /56":        {200, in56, false, 2},
		"unknown, a /48":        {200, in48, false, 2},
		"unknown, an IPv4 /24":  {200, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, byte(i)}) }, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			passwords := testworld.Passwords(secret.PasswordOptions{
				Concurrency: 1, Queue: room, MaxWait: time.Minute,
				Separate: func(task secret.Task) ([]byte, error) { _ = task.Do(); return testworld.FastHash(task) }, // as slow as it is
			})
			w, f := failingWorld(t, func(o *accounts.Options) { o.Passwords = passwords })
			if tc.known {
				check.OK(t, w.signIn(here, "bob", password))
			}
			giveBack := testworld.TakeHashingSlot(t, passwords)
			defer giveBack()
			arrived := make(chan struct{}, tc.attempts+1)
			f.Begun = func(operation string) {
				if operation == "Get users" {
					arrived <- struct{}{}
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var people sync.WaitGroup
			defer people.Wait()
			var hashed, before atomic.Int64
			for i := range tc.attempts {
				people.Go(func() {
					_, _, err := w.service.SignIn(ctx, accounts.SignIn{Username: fmt.Sprint("stranger", i), Password: "wrong", Remote: tc.source(i)})
					if errors.Is(err, accounts.ErrSignIn) {
						hashed.Add(1)
					}
				})
			}
			for range tc.attempts {
				<-arrived
			}
			people.Go(func() {
				check.OK(t, w.signIn(here, "bob", password))
				before.Store(hashed.Load())
				stop()
			})
			<-arrived
			giveBack()
			people.Wait()
			if n := before.Load(); n > int64(tc.before+2) { // two more may be done before bob's session is
				t.Errorf("%d of the flood were done before bob's only one, want at most %d", n, tc.before)
			}
		})
	}
}

// TestStarvedAttemptUsesUpNothing: if the password of a slowed-down attempt is not hashed, the one
// attempt in 30 seconds remains for the next, on all instances.
func TestStarvedAttemptUsesUpNothing(t *testing.T) {
	starved := false
	passwords := testworld.Passwords(secret.PasswordOptions{Separate: func(task secret.Task) ([]byte, error) {
		if starved {
			return nil, secret.ErrStarved
		}
		return testworld.FastHash(task)
	}})
	w := newWorld(t, daily(1000, 10), func(o *accounts.Options) { o.Passwords = passwords })
	w.wrong("alice", 0, 10)
	starved = true
	for i := range 3 {
		check.Equal(t, "starved", check.As[*secret.BusyError](t, w.signIn(number(100+i), "alice", password)).Starved, true)
	}
	starved = false
	w.reopen() // as another instance
	w.wrong("alice", 200, 10)
	check.ErrorIs(t, w.signIn(number(300), "alice", "wrong"), accounts.ErrSignIn)
	wantWait(t, w.signIn(number(301), "alice", "wrong"), rowOver)
}

// v4 and v6 are addresses of floods: from many IPv4 networks, and from the /64s of a /56 and of a
// /48.
func v4(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, byte(i), 1}) }

func in56(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%x::1", i%256)) }

func in48(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%x::1", 256*i)) }
