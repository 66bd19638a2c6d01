package grants_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/secret"
)

// waitWorld runs a test of a service that admits 2 tokens per second, and queues one request of a
// key for up to a second. The frames are short, so the first two tokens of the test delay the next
// one by 901 ms.
func waitWorld(t *testing.T, set clientcfg.PolicySet, test func(w *world, seen *[]limiter.Decided)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		settings, wait := ratelimit.DefaultSettings(), ratelimit.Duration(time.Second)
		l := ratelimit.NewLimit("per-second", 2, time.Second)
		l.Frames = 10
		settings.Default.User, settings.Default.Client = []ratelimit.Limit{l}, []ratelimit.Limit{l}
		settings.Default.MaxWait, settings.Default.MaxWaiting = &wait, new(1)
		w, seen := policyWorld(t, settings, set)
		w.reopen(func(o *grants.Options) { o.Clock = time.Now })
		time.Sleep(99 * time.Millisecond) //nolint:forbidigo // simulated
		test(w, seen)
	})
}

// result is the response to a queued request.
type result struct {
	grants.TokenResponse
	err error
}

// waiting sends a request that is queued.
func (w *world) waiting(id string, req grants.TokenRequest) <-chan result {
	w.tb.Helper()
	done := make(chan result, 1)
	go func() {
		answer, err := w.token(id, req)
		done <- result{answer, err}
	}()
	synctest.Wait()
	select {
	case r := <-done:
		w.tb.Fatalf("the request did not wait: %v", r.err)
	default:
	}
	return done
}

// TestWaitForATurn: requests of every grant are queued, and a token's lifetime starts when it is
// issued.
func TestWaitForATurn(t *testing.T) {
	for name, request := range map[string]func(w *world) grants.TokenRequest{
		"client_credentials": func(*world) grants.TokenRequest { return clientCredentials },
		"password":           func(*world) grants.TokenRequest { return byPassword("alice", password) },
		"authorization_code": func(w *world) grants.TokenRequest { return w.redemption("shop", w.code("shop")) },
		"refresh_token": func(w *world) grants.TokenRequest {
			token := w.tokens("shop").RefreshToken
			time.Sleep(2 * time.Second) //nolint:forbidigo // simulated
			return refreshing(token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			waitWorld(t, clientcfg.PolicySet{}, func(w *world, seen *[]limiter.Decided) {
				t := w.tb
				req := request(w)
				*seen = nil
				for range 2 {
					first := clientCredentials
					if name != "client_credentials" {
						first = byPassword("alice", password)
					}
					w.mustToken("shop", first)
				}
				done := w.waiting("shop", req)
				check.Equal(t, "waiting", w.service.Waiting(), 1)
				w.clock.Advance(time.Second)
				got := <-done
				check.OK(t, got.err)
				check.Equal(t, "outcome", (*seen)[2].Decision.Outcome, ratelimit.Delayed)
				check.Equal(t, "waited at all, and less than a second", (*seen)[2].Waited > 0 && (*seen)[2].Waited < time.Second, true)
				claims, err := w.ring.Verify(got.AccessToken, w.clock.Now())
				check.OK(t, err)
				check.Equal(t, "issued", claims.IssuedAt.Equal(w.clock.Now()), true)
			})
		})
	}
}

// TestWhatEndsWhileItWaits: if the grant ends in the queue, nothing is issued, and the next request
// gets the turn.
func TestWhatEndsWhileItWaits(t *testing.T) {
	code := func(w *world) grants.TokenRequest { return w.redemption("shop", w.code("shop")) }
	for name, tt := range map[string]struct {
		request func(w *world) grants.TokenRequest
		end     func(w *world)
		want    oautherr.Code
	}{
		"code of a revoked user":     {code, (*world).revokeUser, oautherr.InvalidGrant},
		"password of a revoked user": {func(*world) grants.TokenRequest { return byPassword("alice", password) }, (*world).revokeUser, oautherr.InvalidGrant},
		"of a client that is gone":   {code, func(w *world) { delete(w.clients, "shop") }, oautherr.InvalidClient},
		"of another grant now": {code, func(w *world) {
			w.changeClient("shop", func(c *clientcfg.Client) { c.Grants = []clientcfg.Grant{clientcfg.Password} })
		}, oautherr.UnauthorizedClient},
		"of another scope now": {func(*world) grants.TokenRequest {
			req := byPassword("alice", password)
			req.Scope = "write"
			return req
		}, func(w *world) {
			w.changeClient("shop", func(c *clientcfg.Client) { c.Scopes = []string{"read"} })
		}, oautherr.InvalidScope},
	} {
		t.Run(name, func(t *testing.T) {
			waitWorld(t, clientcfg.PolicySet{}, func(w *world, _ *[]limiter.Decided) {
				t := w.tb
				req := tt.request(w)
				w.mustToken("shop", byPassword("alice", password))
				w.mustToken("shop", byPassword("alice", password))
				done := w.waiting("shop", req)
				shop := w.clients["shop"]
				tt.end(w)
				_ = w.service.Waiting() // takes the same lock as the request after its wait, so the request sees the change
				wantCode(t, tt.want, (<-done).err)
				w.clients["shop"] = shop
				usage := w.opts.Counters.Usage(time.Now(), ratelimit.Key{ClientID: "shop", Username: "alice"})
				check.Equal(t, "counted", usage[0].Known+usage[0].Unflushed, 2)
			})
		})
	}
}

// TestWaitingHoldsNoPlaceForHashing: a queued request has already been authenticated, so others can
// sign in in the meantime.
func TestWaitingHoldsNoPlaceForHashing(t *testing.T) {
	waitWorld(t, clientcfg.PolicySet{}, func(w *world, _ *[]limiter.Decided) {
		t := w.tb
		f := w.fail(func(o *grants.Options) {
			o.SignIn.Passwords = testworld.Passwords(secret.PasswordOptions{Concurrency: 1})
		})
		w.mustToken("shop", byPassword("alice", password))
		w.mustToken("shop", byPassword("alice", password))
		done := w.waiting("shop", byPassword("alice", password))
		w.mustToken("shop", byPassword("bob", password))

		f.Operation, f.Err = "Get users", errDown
		w.wantDenied("shop", byPassword("alice", password)) // the queue is full
		check.Equal(t, "look-ups of a user who would find no place", f.Hits, 0)
		f.Operation = ""
		_ = w.service.Waiting() // takes the same lock as the request after its wait, so the request sees the change
		check.OK(t, (<-done).err)
	})
}

// TestCandidateDelays: a candidate counts a request on arrival, and never queues it.
func TestCandidateDelays(t *testing.T) {
	set := testworld.Tried("shop", clientcfg.Value{
		Policy: ratelimit.Policy{Client: []ratelimit.Limit{ratelimit.NewLimit("few", 1, time.Second)}},
		Since:  start,
	})
	waitWorld(t, set, func(w *world, seen *[]limiter.Decided) {
		t := w.tb
		w.mustToken("shop", clientCredentials)
		w.mustToken("shop", clientCredentials)
		done := w.waiting("shop", clientCredentials)
		check.OK(t, (<-done).err)
		var got []string
		for _, d := range *seen {
			got = append(got, strings.TrimSpace(d.Decision.Outcome.String()+" "+d.Tried.Outcome.String()+" "+d.Tried.Limit))
		}
		check.Equal(t, "decisions", got, []string{"allowed allowed", "allowed would_delay few", "delayed would_deny few"})
	})
}

// waitBanWorld is a waitWorld in which one denial bans the client shop.
func waitBanWorld(t *testing.T, test func(w *world, keeper *bans.Bans)) {
	t.Helper()
	b := ratelimit.DefaultBan()
	b.Denials = 1
	set := clientcfg.PolicySet{Clients: mapOf("shop", clientcfg.Value{Policy: ratelimit.Policy{Ban: &b}})}
	waitWorld(t, set, func(w *world, _ *[]limiter.Decided) {
		keeper, err := bans.New(w.tb.Context(), bans.Options{Store: bans.NewRepository(w.store), Counters: w.opts.Counters, Clock: time.Now})
		check.OK(w.tb, err)
		w.reopen(func(o *grants.Options) { o.Bans = keeper })
		w.mustToken("shop", clientCredentials)
		w.mustToken("shop", clientCredentials)
		test(w, keeper)
	})
}

// TestWhoWaitedIsNoDenial: a queued request is not a denial when the process stops, after that, or
// when its client disconnects, which makes room for another. A request that finds the queue full is
// denied.
func TestWhoWaitedIsNoDenial(t *testing.T) {
	for name, tt := range map[string]struct {
		deny   func(w *world)
		banned int
	}{
		"stop": {func(w *world) {
			done := w.waiting("shop", clientCredentials)
			w.service.StopWaiting()
			_ = check.As[*oautherr.LimitedError](w.tb, (<-done).err)
		}, 0},
		"after the stop": {func(w *world) {
			w.service.StopWaiting()
			_ = w.deny(1, "shop", clientCredentials)
		}, 0},
		"hanging up": {func(w *world) {
			ctx, hangUp := context.WithTimeout(w.tb.Context(), 100*time.Millisecond)
			defer hangUp()
			req := clientCredentials
			req.Credentials = w.credentials("shop")
			_, err := w.service.Token(ctx, req)
			_ = check.As[*oautherr.LimitedError](w.tb, err)
			check.Equal(w.tb, "waiting", w.service.Waiting(), 0)
			check.OK(w.tb, (<-w.waiting("shop", clientCredentials)).err)
		}, 0},
		"no place": {func(w *world) {
			done := w.waiting("shop", clientCredentials)
			_ = w.deny(1, "shop", clientCredentials)
			<-done
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			waitBanWorld(t, func(w *world, keeper *bans.Bans) {
				tt.deny(w)
				check.Equal(w.tb, "bans", keeper.All(ratelimit.Enforce).Len(), tt.banned)
			})
		})
	}
}

// TestBanWhileItWaits: the queued request is refused with the ban, and the next one gets its turn.
func TestBanWhileItWaits(t *testing.T) {
	waitBanWorld(t, func(w *world, keeper *bans.Bans) {
		t, shop := w.tb, ratelimit.Key{ClientID: "shop"}
		done := w.waiting("shop", clientCredentials)
		keeper.Denied(time.Now(), shop, w.opts.Policies().For("shop"))
		limited := check.As[*oautherr.LimitedError](t, (<-done).err)
		check.Equal(t, "Banned", limited.Banned, true)
		usage := w.opts.Counters.Usage(time.Now(), shop)
		check.Equal(t, "counted", usage[0].Known+usage[0].Unflushed, 2)
	})
}

// TestBanBeginsAtTheDenial: a ban starts at the denial, not at the arrival of the request, which
// may have waited for permits since.
func TestBanBeginsAtTheDenial(t *testing.T) {
	w, _ := banWorld(t, func(s *ratelimit.Settings) { s.Default.Ban.Denials = 1 })
	keeper, err := bans.New(t.Context(), bans.Options{Store: bans.NewRepository(w.store), Counters: w.opts.Counters, Clock: w.clock.Now})
	check.OK(t, err)
	var denied time.Time
	w.reopen(func(o *grants.Options) {
		o.Bans = keeper
		o.Clock = func() time.Time {
			w.clock.Advance(time.Millisecond) // at each look
			return w.clock.Now()
		}
		o.Observe = func(context.Context, limiter.Decided) { denied = w.clock.Now() }
	})
	_ = w.spend("shop", func() grants.TokenRequest { return clientCredentials })
	for _, ban := range keeper.All(ratelimit.Enforce).All() {
		check.Equal(t, "since", ban.Since.Equal(denied), true)
	}
	check.Equal(t, "bans", keeper.All(ratelimit.Enforce).Len(), 1)
}

// TestWhoPassedUncountedGivesNothingBack: a client that becomes trusted while its request is queued
// passes without being counted. If the user is revoked too, there is no turn to give back, because
// it would belong to another request.
func TestWhoPassedUncountedGivesNothingBack(t *testing.T) {
	waitWorld(t, clientcfg.PolicySet{}, func(w *world, seen *[]limiter.Decided) {
		t := w.tb
		settings := ratelimit.DefaultSettings()
		settings.Clients = map[string]ratelimit.Policy{"shop": {Trusted: true}}
		trusting, policies := testworld.Policies(t, settings, clientcfg.PolicySet{}), w.opts.Policies
		var trusted atomic.Bool
		w.reopen(func(o *grants.Options) {
			o.Policies = func() *clientcfg.PolicySnapshot {
				if trusted.Load() {
					return trusting
				}
				return policies()
			}
		})
		w.mustToken("shop", byPassword("alice", password))
		w.mustToken("shop", byPassword("alice", password))
		done := w.waiting("shop", byPassword("alice", password))
		trusted.Store(true)
		w.revokeUser()

		time.Sleep(901 * time.Millisecond) //nolint:forbidigo // simulated: one millisecond before the turn
		key, counting := ratelimit.Key{ClientID: "shop", Username: "alice"}, *trusting.For("shop")
		counting.Trusted = false
		other := w.opts.Counters.Take(time.Now(), key, &counting, 1)
		check.Equal(t, "another request", other.Outcome, ratelimit.Allowed)
		wantCode(t, oautherr.InvalidGrant, (<-done).err)
		check.Equal(t, "outcome", (*seen)[2].Decision.Outcome, ratelimit.Trusted)
		check.Equal(t, "limits under which that is still counted", len(w.opts.Counters.Usage(time.Now(), key)), 1)
	})
}

// strictWorld has a strict limit of 2 per hour for clients. Permits arrive when exchange is called.
func strictWorld(t *testing.T, settings ratelimit.Settings, set clientcfg.PolicySet) (w *world, seen *[]limiter.Decided, exchange func()) {
	t.Helper()
	counters := counting.NewCounters(100)
	syncer := counters.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: time.Second})
	policies := testworld.Policies(t, settings, set)
	seen = new([]limiter.Decided)
	w = newWorld(t, func(o *grants.Options) {
		o.Counters, o.Policies = counters, func() *clientcfg.PolicySnapshot { return policies }
		o.Observe = func(_ context.Context, d limiter.Decided) { *seen = append(*seen, d) }
	})
	w.clock.Advance(time.Second) // well into a frame
	syncer.SetUncertainty(w.clock.Now(), time.Millisecond)
	var seq int64
	exchange = func() {
		t.Helper()
		for _, plan := range syncer.Due(w.clock.Now(), nil) {
			seq++
			if task, ok := syncer.Begin(w.clock.Now(), plan.Ticket, seq); ok {
				syncer.Finish(w.clock.Now(), &task, counting.Result{Status: counting.Applied, Read: true, NewEtag: seq})
			}
		}
		synctest.Wait()
	}
	return w, seen, exchange
}

// perHour is a limit of 2 per hour.
func perHour() ratelimit.Limit {
	l := ratelimit.NewLimit("per-hour", 2, time.Hour)
	l.MakeStrict()
	return l
}

func strictSettings(mode ratelimit.Mode) ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Mode, s.Default.Client = mode, []ratelimit.Limit{perHour()}
	return s
}

// TestAwaitsPermits: a request waits for permits of a strict limit as long as the limit and the
// client do.
func TestAwaitsPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, exchange := strictWorld(t, strictSettings(ratelimit.Enforce), clientcfg.PolicySet{})
		ctx, hangUp := context.WithCancel(t.Context())
		gone, first := w.asking(ctx), w.asking(t.Context())
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // simulated
		hangUp()
		synctest.Wait()
		exchange()
		synctest.Wait()
		_ = check.As[*oautherr.LimitedError](t, gone.err)
		check.OK(t, first.err)
		check.Equal(t, "outcome", (*seen)[1].Decision.Outcome, ratelimit.Allowed)

		late := w.asking(t.Context())
		time.Sleep(49 * time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "answered before lease_wait", late.answered.Load(), false)
		time.Sleep(time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		limited := check.As[*oautherr.LimitedError](t, late.err)
		check.Equal(t, "over a quota", limited.QuotaExceeded, false)
		check.Equal(t, "waited", (*seen)[2].Leased, 50*time.Millisecond)
	})
}

// TestDryRunAwaitsNoPermits: predictions, in dry-run or for a candidate, do not wait for permits,
// and deny everything over the limit.
func TestDryRunAwaitsNoPermits(t *testing.T) {
	for name, tc := range map[string]struct {
		mode ratelimit.Mode
		set  clientcfg.PolicySet
		want func(d limiter.Decided) bool // denied
	}{
		"dry-run": {ratelimit.DryRun, clientcfg.PolicySet{}, func(d limiter.Decided) bool { return d.Decision.Outcome == ratelimit.WouldDeny }},
		"candidate": {ratelimit.Off, testworld.Tried("shop", clientcfg.Value{Policy: ratelimit.Policy{Client: []ratelimit.Limit{perHour()}}}), func(d limiter.Decided) bool {
			return d.Tried.Outcome == ratelimit.WouldDeny
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, seen, _ := strictWorld(t, strictSettings(tc.mode), tc.set)
				for i := range 4 {
					a := w.asking(t.Context())
					check.OK(t, a.err)
					check.Equal(t, "answered", a.answered.Load(), true)
					check.Equal(t, "would be denied", tc.want((*seen)[i]), i >= 2)
				}
			})
		})
	}
}

// TestReuseUnderStrictLimits: a request that waits for permits delays only the requests denied
// because of it, which get its token.
func TestReuseUnderStrictLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strictSettings(ratelimit.Enforce)
		s.Default.OverLimit = ratelimit.OverLimitReuse
		s.Default.Client[0].Requests = 1
		w, _, exchange := strictWorld(t, s, clientcfg.PolicySet{})
		first, second := w.asking(t.Context()), w.asking(t.Context())
		check.Equal(t, "answered", first.answered.Load() || second.answered.Load(), false)
		exchange()
		check.OK(t, first.err)
		check.OK(t, second.err)
		check.Equal(t, "token", second.token, first.token)
	})
}
