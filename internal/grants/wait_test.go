package grants_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
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

func ofAlice() grants.TokenRequest {
	return grants.TokenRequest{GrantType: "password", Username: "alice", Password: password}
}

// TestWaitForATurn: requests of every grant are queued, and a token's lifetime starts when it is
// issued.
func TestWaitForATurn(t *testing.T) {
	for name, request := range map[string]func(w *world) grants.TokenRequest{
		"client_credentials": func(*world) grants.TokenRequest { return clientCredentials },
		"password":           func(*world) grants.TokenRequest { return ofAlice() },
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
						first = ofAlice()
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
		"password of a revoked user": {func(*world) grants.TokenRequest { return ofAlice() }, (*world).revokeUser, oautherr.InvalidGrant},
		"of a client that is gone":   {code, func(w *world) { delete(w.clients, "shop") }, oautherr.InvalidClient},
		"of another grant now": {code, func(w *world) {
			w.changeClient("shop", func(c *clientcfg.Client) { c.Grants = []clientcfg.Grant{clientcfg.Password} })
		}, oautherr.UnauthorizedClient},
		"of another scope now": {func(*world) grants.TokenRequest {
			req := ofAlice()
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
				w.mustToken("shop", ofAlice())
				w.mustToken("shop", ofAlice())
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
			o.SignIn.Passwords = secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
		})
		w.mustToken("shop", ofAlice())
		w.mustToken("shop", ofAlice())
		done := w.waiting("shop", ofAlice())
		w.mustToken("shop", grants.TokenRequest{GrantType: "password", Username: "bob", Password: password})

		f.Operation, f.Err = "Get users", errDown
		if w.limited("shop", ofAlice()) == nil {
			t.Fatal("got a place in a line that is full")
		}
		check.Equal(t, "look-ups of a user who would find no place", f.Hits, 0)
		f.Operation = ""
		_ = w.service.Waiting() // takes the same lock as the request after its wait, so the request sees the change
		check.OK(t, (<-done).err)
	})
}

// TestStopWaiting: all queued requests are denied at once, with the time when each would have had
// its turn.
func TestStopWaiting(t *testing.T) {
	waitWorld(t, clientcfg.PolicySet{}, func(w *world, seen *[]limiter.Decided) {
		t := w.tb
		w.mustToken("shop", clientCredentials)
		w.mustToken("shop", clientCredentials)
		began := time.Now()
		done := w.waiting("shop", clientCredentials)
		w.service.StopWaiting()
		limited := check.As[*oautherr.LimitedError](t, (<-done).err)
		check.Equal(t, "after", time.Since(began), 0)
		check.Equal(t, "RetryAfter", limited.RetryAfter, time.Second)
		check.Equal(t, "outcome", (*seen)[2].Decision.Outcome, ratelimit.Denied)
	})
}

// TestCandidateDelays: a candidate counts a request on arrival, and never queues it.
func TestCandidateDelays(t *testing.T) {
	set := clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{
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

// TestWhoHangsUp: if its client disconnects, a queued request is denied and leaves the queue.
func TestWhoHangsUp(t *testing.T) {
	waitWorld(t, clientcfg.PolicySet{}, func(w *world, _ *[]limiter.Decided) {
		t := w.tb
		w.mustToken("shop", clientCredentials)
		w.mustToken("shop", clientCredentials)
		ctx, hangUp := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer hangUp()
		req := clientCredentials
		req.Credentials = w.credentials("shop")
		_, err := w.service.Token(ctx, req)
		_ = check.As[*oautherr.LimitedError](t, err)
		check.Equal(t, "waiting", w.service.Waiting(), 0)
		check.OK(t, (<-w.waiting("shop", clientCredentials)).err)
	})
}
