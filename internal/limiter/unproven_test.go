package limiter_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// id returns an ID for a secret.
func id(text string) (i limiter.ID) {
	copy(i[:], text)
	return i
}

// by returns a request with credentials.
func by(r limiter.Request, c limiter.Credentials) limiter.Request {
	r.By = &c
	return r
}

// secretly is a request with this secret of the client.
func secretly(secret string) limiter.Request {
	return by(limiter.Request{Key: ratelimit.Key{ClientID: "shop"}, Grant: "client_credentials"}, limiter.Credentials{Client: id(secret), Secret: true, Network: "192.0.2.1"})
}

// from is a request of a client without a secret.
func from(addr string) limiter.Request {
	r := limiter.Request{Key: ratelimit.Key{ClientID: "shop"}, Grant: "client_credentials", Remote: netip.MustParseAddr(addr)}
	return by(r, limiter.Credentials{Client: id(addr), Network: limiter.NetworkOf(r.Remote)})
}

// code is a request of an unknown user.
func code(secret string) limiter.Request {
	return by(unknown(), limiter.Credentials{Client: id(secret), Secret: true, Network: "192.0.2.1"})
}

// signIn is a password grant.
func signIn(user, password string) limiter.Request {
	r := refresh(user)
	r.Grant = "password"
	return by(r, limiter.Credentials{Client: id("right"), Secret: true, Network: "192.0.2.1", User: id(user + password)})
}

// outcome returns the outcome of a reservation.
func outcome(v *limiter.Reservation) string {
	if v.Crowded() {
		return "crowded"
	}
	return v.Outcome.String()
}

// asks reserves n requests and returns the reservations that pass.
func asks(t *testing.T, j *limiter.Limiter, r limiter.Request, n int) (passed []*limiter.Reservation) {
	t.Helper()
	for range n {
		if v := j.Reserve(t.Context(), r); !v.Rejected() && !v.Crowded() {
			passed = append(passed, &v)
		}
	}
	return passed
}

func settleAll(t *testing.T, j *limiter.Limiter, all []*limiter.Reservation, user string) (late int) {
	t.Helper()
	for _, v := range all {
		if _, isLate := j.Settle(t.Context(), v, user); isLate {
			late++
		}
	}
	return late
}

// prove makes the credentials of a request get a token.
func prove(t *testing.T, j *limiter.Limiter, r limiter.Request) {
	t.Helper()
	check.Equal(t, "late", settleAll(t, j, asks(t, j, r, 1), r.Key.Username), 0)
}

// checked makes the limiter see that the secrets of the client are checked.
func checked(t *testing.T, j *limiter.Limiter) {
	t.Helper()
	j.Refuse(asks(t, j, secretly("refused"), 1)[0], true)
}

// TestSecretsThatNobodyChecks: a server may ignore the secret of a public client. Made-up secrets
// must give no advantage.
func TestSecretsThatNobodyChecks(t *testing.T) {
	const limit = 5
	j, _ := limiterBy(t, limited(limit, 100, 100))
	j.Observe = nil
	issued := 0
	for i := range 100 {
		r := refresh("ada")
		passed := asks(t, j, by(r, limiter.Credentials{Client: id(fmt.Sprint("invented", i)), Secret: true, Network: "192.0.2.1"}), 1)
		issued += len(passed)
		if i%10 == 9 { // gets its token while others are held
			settleAll(t, j, passed, "ada")
		}
	}
	check.Equal(t, "issued", issued, limit)
}

// TestStrangersTakeNoRoom: requests with the right credentials pass up to the limit, regardless of
// the held requests without them. This holds whether or not they have got a token before.
func TestStrangersTakeNoRoom(t *testing.T) {
	const limit = 5
	for name, tt := range map[string]struct {
		settings        ratelimit.Settings
		stranger, right func(i int) limiter.Request
	}{
		"a wrong secret": {
			limited(limit, 100, 100), func(int) limiter.Request { return secretly("wrong") }, func(int) limiter.Request { return secretly("right") },
		},
		"many wrong secrets": {
			limited(limit, 100, 100), func(i int) limiter.Request { return secretly(fmt.Sprint("wrong", i)) }, func(int) limiter.Request { return secretly("right") },
		},
		"the total and the source": {
			limited(limit, limit, limit), func(i int) limiter.Request { return code(fmt.Sprint("wrong", i)) }, func(int) limiter.Request { return code("right") },
		},
		"the name of a user": {
			limited(limit, 10_000, 10_000), func(i int) limiter.Request { return signIn("ada", fmt.Sprint("wrong", i)) }, func(int) limiter.Request { return signIn("ada", "right") },
		},
		"no secret, one IPv6 site": {
			limited(limit, 10_000, 100), func(i int) limiter.Request { return from(fmt.Sprintf("2001:db8:1:%x::1", i)) }, func(int) limiter.Request { return from("192.0.2.1") },
		},
		"no secret, a few addresses": {
			limited(limit, 10_000, 100), func(i int) limiter.Request { return from(fmt.Sprintf("198.51.100.%d", i%(limit-1))) }, func(int) limiter.Request { return from("192.0.2.1") },
		},
	} {
		for what, before := range map[string]bool{"new": false, "proven": true} {
			t.Run(name+", "+what, func(t *testing.T) {
				j, _ := limiterBy(t, tt.settings)
				want := limit
				checked(t, j)
				if before {
					prove(t, j, tt.right(0))
					want--
				}
				for i := range 300 {
					asks(t, j, tt.stranger(i), 1)
				}
				if !tt.right(0).By.Secret && !before {
					want = 1 // the rest is held for others
				}
				passed := asks(t, j, tt.right(0), 3*limit)
				check.Equal(t, "passed", len(passed) >= want, true)
				check.Equal(t, "late", settleAll(t, j, passed, tt.right(0).Key.Username), 0)
			})
		}
	}
}

// TestOneSecretGetsNoMore: concurrent requests with one secret get as many tokens as the limit
// allows, even while the first of them prove it.
func TestOneSecretGetsNoMore(t *testing.T) {
	const limit = 20
	for name, r := range map[string]limiter.Request{"a client": secretly("right"), "a user": signIn("ada", "right")} {
		t.Run(name, func(t *testing.T) {
			j, _ := limiterBy(t, limited(limit, 10_000, 10_000))
			j.Observe = nil
			var issued, late atomic.Int64
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 200 {
						v := j.Reserve(t.Context(), r)
						if v.Rejected() || v.Crowded() {
							continue
						}
						issued.Add(1)
						if _, isLate := j.Settle(t.Context(), &v, r.Key.Username); isLate {
							late.Add(1)
						}
					}
				})
			}
			all.Wait()
			check.Equal(t, "issued", issued.Load(), limit)
			check.Equal(t, "late", late.Load(), 0)
		})
	}
}

// TestManyNetworksGetLittleMore checks the bound in [limiter.Credentials] for a client without a
// secret. It uses the worst order of requests, while requests with proven credentials take all of
// the room.
func TestManyNetworksGetLittleMore(t *testing.T) {
	const limit, networks = 60, 12
	j, _ := limiterBy(t, limited(limit, 10_000, 10_000))
	j.Observe = nil
	right := secretly("right")
	held := asks(t, j, right, limit)
	check.Equal(t, "held for the secret", len(held), limit)
	settleAll(t, j, held[:1], "")
	for _, v := range held[1:] {
		j.Cancel(v)
	}
	const room = limit - 1
	var issued []*limiter.Reservation
	most := 0
	for i := range networks {
		for range 3 { // addresses of one network share its part
			issued = append(issued, asks(t, j, from(fmt.Sprintf("2001:db8:%x:%x::1", i, len(issued)%7)), limit)...)
		}
		most += room / (i + 1)
		check.Equal(t, "not more", len(issued) <= most, true)
	}
	check.Equal(t, "the bound is reached", len(issued) > 2*limit, true)
	settleAll(t, j, asks(t, j, right, 2*limit), "")
	check.Equal(t, "late", settleAll(t, j, issued, ""), len(issued))
	for _, r := range []limiter.Request{right, from("192.0.2.1"), secretly("other")} {
		check.Equal(t, "afterwards", len(asks(t, j, r, 1)), 0)
	}
}

// TestUnprovenAgain: after five successive responses without a token, credentials are no longer
// proven. Requests without a response do not matter.
func TestUnprovenAgain(t *testing.T) {
	j, _ := limiterBy(t, limited(100, 100, 100))
	right := secretly("right")
	check.Equal(t, "before", j.Proven(right.By), false)
	prove(t, j, right)
	for range 2 {
		for range 4 {
			j.Refuse(asks(t, j, right, 1)[0], false)
		}
		for range 10 {
			j.Cancel(asks(t, j, right, 1)[0])
		}
		check.Equal(t, "after four", j.Proven(right.By), true)
		prove(t, j, right)
	}
	for range 5 {
		j.Refuse(asks(t, j, right, 1)[0], false)
	}
	check.Equal(t, "after five", j.Proven(right.By), false)
	at := from("192.0.2.1")
	prove(t, j, at)
	check.Equal(t, "an address", j.Proven(at.By), false)
}

// TestHeldRequests: the possible results of a held request.
func TestHeldRequests(t *testing.T) {
	usage := func(j *limiter.Limiter, user string) (n int64) {
		for _, u := range j.Counters.Usage(j.Clock(), ratelimit.Key{ClientID: "shop", Username: user}) {
			n += u.Unflushed
		}
		return n
	}
	j, seen := limiterBy(t, limited(3, 100, 100))
	v := j.Reserve(t.Context(), secretly("right"))
	check.Equal(t, "counted while it is held", usage(j, ""), 0)
	j.Cancel(&v)
	prove(t, j, secretly("right"))
	check.Equal(t, "counted", []int64{usage(j, ""), usage(j, ratelimit.TotalUser)}, []int64{1, 1})
	checked(t, j)
	crowd := asks(t, j, secretly("other"), 3)
	check.Equal(t, "of another secret", len(crowd), 2)
	third := j.Reserve(t.Context(), secretly("other"))
	check.Equal(t, "the third", outcome(&third), "crowded")
	settleAll(t, j, asks(t, j, secretly("right"), 5), "")
	check.Equal(t, "late", settleAll(t, j, crowd, ""), 2)
	check.Equal(t, "counted for the total", usage(j, ratelimit.TotalUser), 5)
	over := j.Reserve(t.Context(), secretly("other"))
	check.Equal(t, "over the limit", outcome(&over), "denied")
	wantSeen(t, seen, " allowed", " denied", " denied", " denied", " allowed", " allowed", " allowed", " allowed", " denied")
}

// TestHeldNotEnforced: in dry-run no request is crowded, and observers see which ones would have
// been denied. Requests of trusted clients are not held.
func TestHeldNotEnforced(t *testing.T) {
	settings := limited(2, 100, 100)
	settings.Mode = ratelimit.DryRun
	j, seen := limiterBy(t, settings)
	settleAll(t, j, asks(t, j, secretly("right"), 4), "")
	wantSeen(t, seen, " allowed", " allowed", " would_deny", " would_deny")
	settings.Mode = ratelimit.Enforce
	settings.Clients = map[string]ratelimit.Policy{"shop": {Trusted: true}}
	j, _ = limiterBy(t, settings)
	check.Equal(t, "trusted", len(asks(t, j, secretly("right"), 50)), 50)
}

// TestProvenAreKept: a secret in use stays proven, regardless of how many other secrets get a token
// or fail to.
func TestProvenAreKept(t *testing.T) {
	j, _ := limiterBy(t, limited(1_000_000, 1_000_000, 1_000_000))
	j.Observe = nil
	right := secretly("right")
	prove(t, j, right)
	for i := range 120_000 { // both generations are replaced
		stranger := secretly(fmt.Sprint("s", i))
		v := j.Reserve(t.Context(), stranger)
		if i%10 == 0 {
			j.Refuse(&v, true)
		} else {
			j.Settle(t.Context(), &v, "")
		}
		if i%40_000 == 0 {
			check.Equal(t, "proven", j.Proven(right.By), true)
		}
	}
	check.Equal(t, "proven", j.Proven(right.By), true)
}

// TestUnprovenWait: unproven requests wait for requests with the same credentials, and for room,
// but in no queue. They take no place from others.
func TestUnprovenWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(5 * time.Second)
		j, _ := waiting(t, ratelimit.Enforce)
		j.Observe = nil
		checked(t, j)
		ask := func(r limiter.Request) <-chan *limiter.Reservation {
			done := make(chan *limiter.Reservation, 1)
			go func() {
				v := j.Reserve(t.Context(), r)
				done <- &v
			}()
			synctest.Wait()
			return done
		}
		first := <-ask(secretly("right"))
		check.Equal(t, "the first", outcome(first), "allowed")
		second := ask(secretly("right"))
		strangers := []<-chan *limiter.Reservation{ask(secretly("wrong")), ask(secretly("wrong"))}
		check.Equal(t, "waiting", j.Waiting(), 2)
		j.Settle(t.Context(), first, "")
		v := <-second
		check.Equal(t, "the second", outcome(v), "delayed")
		check.Equal(t, "a stranger, at once", outcome(<-strangers[0]), "allowed")
		j.Settle(t.Context(), v, "")
		over, proven := ask(secretly("wrong too")), ask(secretly("right"))
		j.StopWaiting()
		for _, stopped := range []<-chan *limiter.Reservation{strangers[1], over, proven} {
			v := <-stopped
			check.Equal(t, "at the stop", v.Rejected() || v.Crowded(), true)
		}
		check.Equal(t, "waiting at the end", j.Waiting(), 0)
		j.StopWaiting()
	})
}

// TestUnprovenPlaces: unproven requests wait at most max_waiting per key, at most max_wait, and no
// longer than their callers.
func TestUnprovenPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _ := waiting(t, ratelimit.Enforce)
		j.Observe = nil
		places := j.Policies().For("shop").Wait.AtOnce
		first := j.Reserve(t.Context(), secretly("right"))
		ctx, hangUp := context.WithCancel(t.Context())
		began, all := time.Now(), make(chan *limiter.Reservation)
		for i := range places + 3 {
			go func() {
				caller := t.Context()
				if i == 0 {
					caller = ctx
				}
				v := j.Reserve(caller, secretly("right"))
				all <- &v
			}()
			synctest.Wait()
		}
		for range 3 {
			check.Equal(t, "without a place", outcome(<-all), "crowded")
		}
		hangUp()
		check.Equal(t, "hung up", outcome(<-all), "crowded")
		check.Equal(t, "since", time.Since(began), 0)
		for range places - 1 {
			check.Equal(t, "too late", outcome(<-all), "crowded")
		}
		check.Equal(t, "within max_wait", time.Since(began) <= 10*time.Second, true)
		j.Cancel(&first)
	})
}

// TestHeldBeforeTheFirstRead: three requests are held before this process has read their key. The
// others wait for the read, and then nobody waits.
func TestHeldBeforeTheFirstRead(t *testing.T) {
	for used, want := range map[int64]struct{ passed, denied int64 }{0: {20, 0}, 190: {10, 10}, 200: {3, 17}} {
		t.Run(fmt.Sprint(used), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, _ := limiterBy(t, limited(200, 10_000, 10_000))
				j.Observe = nil
				y := j.Counters.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second})
				var passed, denied atomic.Int64
				for range 20 {
					go func() {
						if v := j.Reserve(t.Context(), from("192.0.2.1")); v.Rejected() || v.Crowded() {
							denied.Add(1)
						} else {
							passed.Add(1)
						}
					}()
				}
				synctest.Wait()
				check.Equal(t, "before", []int64{passed.Load(), denied.Load()}, []int64{counting.Unread, 0})
				read := 0
				for i, p := range y.Due(j.Clock().Add(10*time.Millisecond), nil) {
					task, ok := y.Begin(j.Clock(), p.Ticket, int64(i+1))
					if !ok {
						continue // planned again
					}
					read++
					frame := task.Limit.Window.Milliseconds()
					y.Finish(j.Clock(), &task, counting.Result{Read: true, Document: &ratelimit.Document{
						Version: 1, Etag: 1, Frame: frame, Frames: []ratelimit.FrameCount{{Name: ratelimit.FrameName(j.Clock().UnixMilli(), frame), Count: used}},
					}})
				}
				synctest.Wait()
				check.Equal(t, "read", read, 3)
				check.Equal(t, "after", []int64{passed.Load(), denied.Load()}, []int64{want.passed, want.denied})
			})
		})
	}
}
