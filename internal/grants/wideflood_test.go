package grants_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// v4 and v6 are addresses of floods: from many IPv4 networks, and from the /64s of a /56 and of a
// /48.
func v4(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, byte(i), 1}) }

func in56(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%x::1", i%256)) }

func in48(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%x::1", 256*i)) }

// TestFloodsOfManySourcesKeepNoOneOut: a flood fills the whole queue. A user can still sign in
// after few attempts of the flood: from an address with an earlier correct password, whatever the
// flood is, and from a new address unless the flood has more networks than the queue has places.
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
			passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, Queue: room, MaxWait: time.Minute})
			w, f := failingWorld(t, func(o *grants.Options) { o.Passwords = passwords })
			if tc.known {
				check.OK(t, w.signIn(here, "bob", password))
			}
			giveBack := takeOnlyTurn(t, passwords)
			defer giveBack()
			arrived := make(chan struct{}, tc.attempts+1)
			f.begun = func(operation string) {
				if operation == "User" {
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
					_, _, err := w.service.SignIn(ctx, grants.SignIn{Username: fmt.Sprint("stranger", i), Password: "wrong", Remote: tc.source(i)})
					if errors.Is(err, grants.ErrSignIn) {
						hashed.Add(1)
					}
				})
			}
			for range tc.attempts {
				<-arrived
			}
			people.Go(func() {
				if err := w.signIn(here, "bob", password); err != nil {
					t.Errorf("bob: %v", err)
				}
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

// TestFailuresOfASite: an IPv6 /48 may have ten times the failures of an address, spread over any
// of its addresses.
func TestFailuresOfASite(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) {
		l := ratelimit.NewLimit("per-address", 2, time.Minute)
		o.ClientFailures, o.SignInFailures = grants.FailureLimits{PerAddress: l, PerName: l}, grants.FailureLimits{PerAddress: l, PerName: l}
	})
	for i := range 20 {
		wantCode(t, oautherr.InvalidClient, w.attempt(in56(i), "shop", "x"))
		check.ErrorIs(t, w.signIn(in56(i), "alice", "x"), grants.ErrSignIn)
	}
	for _, from := range []netip.Addr{in56(20), in48(1)} {
		wantTooMany(t, w.attempt(from, "shop", "x"))
		wantTooMany(t, w.signIn(from, "alice", password))
	}
	for _, from := range []netip.Addr{here, netip.MustParseAddr("2001:db8:1::1")} {
		check.OK(t, w.attempt(from, "shop", secretOf("shop")))
		check.OK(t, w.signIn(from, "alice", password))
	}
	for i := range 30 { // IPv4 addresses have no such network
		check.ErrorIs(t, w.signIn(number(i), "alice", "x"), grants.ErrSignIn)
	}
}
