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
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
	"oauth-server/internal/syncer/memstore"
)

// refresh is a request of a user.
func refresh(user string) limiter.Request {
	return limiter.Request{
		Key: ratelimit.Key{ClientID: "shop", Username: user}, Grant: "refresh_token", Remote: netip.MustParseAddr("192.0.2.1"),
	}
}

// limited returns settings with limits of requests a minute: for a user, for the total of the
// client, and for a source.
func limited(user, total, source int64) ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Default.User = []ratelimit.Limit{ratelimit.NewLimit("user", user, time.Minute)}
	s.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("client", user, time.Minute)}
	s.Default.Total = []ratelimit.Limit{ratelimit.NewLimit("total", total, time.Minute)}
	s.Default.Source = []ratelimit.Limit{ratelimit.NewLimit("source", source, time.Minute)}
	return s
}

// TestSettleKeepsTheTotal: while a request is settled on another user than it was reserved for, no
// other request takes its place in the total, and the total still counts it.
func TestSettleKeepsTheTotal(t *testing.T) {
	const total = 1000
	for name, rejectsUser := range map[string]bool{"users with room": false, "a user without room": true} {
		t.Run(name, func(t *testing.T) {
			j, _ := limiterBy(t, limited(100, total, total))
			j.Observe = nil
			var issued atomic.Int64
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					for i := range 5 * total {
						v := j.Reserve(t.Context(), refresh(fmt.Sprint("reserved", g)))
						if v.Rejected() {
							continue
						}
						issued.Add(1)
						user := fmt.Sprint("proven", g, i)
						if rejectsUser {
							user = "full"
						}
						j.Settle(t.Context(), &v, user)
					}
				})
			}
			all.Wait()
			check.Equal(t, "issued", issued.Load(), total)
			for key, want := range map[string]int64{ratelimit.TotalUser: total, "reserved0": 0} {
				var used int64
				for _, u := range j.Counters.Usage(j.Clock(), ratelimit.Key{ClientID: "shop", Username: key}) {
					used += u.Unflushed
				}
				check.Equal(t, "counted for "+key, used, want)
			}
		})
	}
}

// TestSettledFields: the RateLimit fields of a settled request have the limits of its user and the
// shared limits.
func TestSettledFields(t *testing.T) {
	for name, r := range map[string]limiter.Request{"of a known user": refresh("eve"), "of an unknown one": unknown()} {
		t.Run(name, func(t *testing.T) {
			j, _ := limiterBy(t, limited(4, 4, 4))
			for _, user := range []string{"ada", "ada", "cy"} {
				j.Admit(t.Context(), refresh(user))
			}
			r.Remote = netip.MustParseAddr("192.0.2.2")
			v := j.Reserve(t.Context(), r)
			d, _ := j.Settle(t.Context(), &v, "ada")
			_, got := d.Headers()
			check.Equal(t, "RateLimit", got, `"user";r=1;t=61, "source";r=3;t=61, "total";r=0;t=61`)
			binding, _ := d.BindingLimit()
			check.Equal(t, "binding", binding.Limit.Name, "total")
		})
	}
}

// waiting returns a limiter in a bubble of synctest. It admits one request of each user in ten
// seconds, and others wait.
func waiting(t *testing.T, mode ratelimit.Mode) (*limiter.Limiter, *[]string) {
	t.Helper()
	longest := ratelimit.Duration(10 * time.Second)
	s := ratelimit.DefaultSettings()
	s.Mode = mode
	s.Default.User = []ratelimit.Limit{ratelimit.NewLimit("user", 1, 10*time.Second)}
	s.Default.Client, s.Default.MaxWait = s.Default.User, &longest
	j, seen := limiterBy(t, s)
	j = limiter.New(limiter.Options{
		Counters: j.Counters, Policies: j.Policies, Clock: time.Now, Observe: j.Observe,
	})
	return j, seen
}

// TestCancelInDryRun: a request that would have waited, and got nothing, is not counted. This holds
// before and after the time at which it would have been admitted.
func TestCancelInDryRun(t *testing.T) {
	for name, upstream := range map[string]time.Duration{"before its turn": time.Second, "after its turn": 7 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				<-time.After(5 * time.Second) // admission is due in five more seconds, at the end of the window
				j, _ := waiting(t, ratelimit.DryRun)
				ada := refresh("ada")
				j.Admit(t.Context(), ada)
				v := j.Reserve(t.Context(), ada)
				check.Equal(t, "outcome", v.Outcome, ratelimit.WouldDelay)
				<-time.After(upstream)
				j.Cancel(&v)
				<-time.After(10*time.Second - upstream) // in the window of its admission
				admission := j.Admit(t.Context(), ada)
				check.Equal(t, "outcome of the next", admission.Outcome, ratelimit.Allowed)
			})
		})
	}
}

// TestSettleAfterAWait: a request that waited, or would have, is settled on its user once, with its
// outcome.
func TestSettleAfterAWait(t *testing.T) {
	for mode, want := range map[ratelimit.Mode]string{ratelimit.Enforce: "bob delayed", ratelimit.DryRun: "bob would_delay"} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				<-time.After(5 * time.Second)
				j, seen := waiting(t, mode)
				j.Admit(t.Context(), refresh("ada"))
				v := j.Reserve(t.Context(), refresh("ada"))
				_, late := j.Settle(t.Context(), &v, "bob")
				check.Equal(t, "late", late, false)
				wantSeen(t, seen, "ada allowed", want)
				<-time.After(12 * time.Second) // it is not counted for ada later either
				admission := j.Admit(t.Context(), refresh("ada"))
				check.Equal(t, "outcome for ada", admission.Outcome, ratelimit.Allowed)
				j.StopWaiting()
			})
		})
	}
}

// TestUnknownUsersWaitBehindNoClient: a request of an unknown user does not wait behind requests of
// the client itself, because their limits do not count it.
func TestUnknownUsersWaitBehindNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(5 * time.Second)
		j, _ := waiting(t, ratelimit.Enforce)
		own := limiter.Request{Key: ratelimit.Key{ClientID: "shop"}, Grant: "client_credentials"}
		j.Admit(t.Context(), own)
		go j.Admit(t.Context(), own)
		synctest.Wait()
		check.Equal(t, "waiting", j.Waiting(), 1)
		v := j.Reserve(t.Context(), unknown())
		check.Equal(t, "outcome", v.Outcome, ratelimit.Allowed)
		check.Equal(t, "waited", v.Waited, 0)
		j.StopWaiting()
	})
}

// TestAdmitAllWithADefect: reservations made before a panic no longer count.
func TestAdmitAllWithADefect(t *testing.T) {
	policies := testworld.Policies(t, limited(1, 9, 9), clientcfg.PolicySet{})
	var broken bool
	j, _ := limiterBy(t, limited(1, 9, 9))
	j = limiter.New(limiter.Options{Counters: j.Counters, Clock: j.Clock, Policies: func() limiter.Policies {
		if broken && len(j.Counters.Usage(j.Clock(), refresh("ada").Key)) > 0 {
			panic("defect")
		}
		return policies
	}})
	broken = true
	check.Equal(t, "ended by", func() (defect any) {
		defer func() { defect = recover() }()
		j.AdmitAll(t.Context(), []limiter.Weighted{hits("ada", 1), hits("bob", 1)})
		return nil
	}(), any("defect"))
	broken = false
	wantRejected(t, "ada rejected", j, refresh("ada"), false)
}

// TestSettleOnAStrictLimit: the user named in a response has no permits here yet.
func TestSettleOnAStrictLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := limited(2, 100, 100)
		settings.Default.User[0].MakeStrict()
		policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
		counters, cfg := counting.NewCounters(0), syncer.DefaultConfig()
		cfg.Clock = clock.New(nil)
		s := syncer.New(counters, &memstore.Store{}, nil, cfg)
		s.Start(t.Context())
		j := limiter.New(limiter.Options{
			Counters: counters, Policies: func() limiter.Policies { return policies }, Clock: cfg.Clock.Now,
		})
		for range 2 {
			v := j.Reserve(t.Context(), unknown())
			_, late := j.Settle(t.Context(), &v, "ada")
			check.Equal(t, "late", late, false)
		}
		third := j.Reserve(t.Context(), refresh("ada"))
		check.Equal(t, "a third one", third.Outcome, ratelimit.Denied)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_, err := s.Stop(ctx)
		check.OK(t, err)
	})
}
