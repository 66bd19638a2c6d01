package grants_test

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

// TestReplayedOften: a spent grant that is presented hundreds of times is written once and logged
// once a minute.
//
// Attack (tokens): A flood of replays. The family is revoked once, and logged once a minute.
// Also e2e.TestSpentTokenReplayed.
func TestReplayedOften(t *testing.T) {
	const times = 250
	for name, spend := range map[string]func(w *world) grants.TokenRequest{
		"refresh token": func(w *world) grants.TokenRequest {
			first := w.tokens("shop")
			w.refresh(first.RefreshToken)
			return refreshing(first.RefreshToken)
		},
		"code": func(w *world) grants.TokenRequest {
			code := w.redemption("shop", w.code("shop"))
			w.mustToken("shop", code)
			return code
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w, f := failingWorld(t, func(o *grants.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			spent := spend(w)
			operations := f.Count()
			replay := func(n int) {
				for range n {
					w.wantRefused(oautherr.InvalidGrant, "shop", spent)
				}
			}
			w.clock.Advance(30 * time.Second) // the next minute begins within a minute from here
			replay(times)
			check.Equal(t, "revocations written", operations["PutAll revocations"], 1)
			check.Equal(t, "lines", strings.Count(log.String(), "grant presented twice"), 1)
			w.clock.Advance(time.Minute - 2*time.Second)
			replay(1)
			check.Equal(t, "lines within the minute", strings.Count(log.String(), "grant presented twice"), 1)
			w.clock.Advance(3 * time.Second)
			replay(2)
			check.Equal(t, "revocations written", operations["PutAll revocations"], 1)
			check.Equal(t, "lines", strings.Count(log.String(), "grant presented twice"), 2)
		})
	}
}

// TestRevokedTwice: an existing revocation is not written again.
func TestRevokedTwice(t *testing.T) {
	w, f := failingWorld(t)
	tokens := w.tokens("shop")
	operations := f.Count()
	for _, token := range []string{tokens.AccessToken, tokens.RefreshToken} {
		for range 10 {
			w.revoke(token)
		}
	}
	check.Equal(t, "revocations written", operations["PutAll revocations"], 2)
}

// few allows 5 invalid grants a minute from an address, 3 of them from the same client.
func few(o *grants.Options) { o.InvalidGrants = attempts.NewLimits(5, 3, time.Minute) }

// present sends a client's grant from an address.
func (w *world) present(from netip.Addr, id string, req grants.TokenRequest) error {
	req.Remote = from
	_, err := w.token(id, req)
	return err
}

// TestInvalidGrantsAreLimited: over the limit, random codes and refresh tokens are refused without
// reading the store, and so are valid ones of the same client from the same address.
//
// Attack (tokens): A flood of invalid tokens. Failures are limited by address and client. Above
// the limit the store is not read. Also grants.TestInvalidGrantsOfOthers.
func TestInvalidGrantsAreLimited(t *testing.T) {
	w, f := failingWorld(t, few)
	good := refreshing(w.tokens("app").RefreshToken)
	invalid := []grants.TokenRequest{w.redemption("app", secret.New()), refreshing(secret.New()), refreshing("x")}
	for _, req := range invalid {
		wantCode(t, oautherr.InvalidGrant, w.present(here, "app", req))
	}
	operations := f.Count()
	for range 10 {
		for _, req := range append(invalid, good) {
			limited := check.As[*oautherr.LimitedError](t, w.present(here, "app", req))
			check.ErrorSays(t, limited, "Too many invalid codes and refresh tokens from this address")
		}
	}
	check.Equal(t, "operations", operations, map[string]int{})

	// The grant is valid from another address, and from this one after the wait.
	wait := check.As[*oautherr.LimitedError](t, w.present(here, "app", good)).RetryAfter
	check.OK(t, w.present(elsewhere, "app", good))
	w.clock.Advance(wait)
	check.OK(t, w.present(here, "app", refreshing(w.tokens("app").RefreshToken)))
}

// TestGuessedCodesAreNotLookedUp: a code that no instance has issued never reaches the store,
// whichever client presents it.
func TestGuessedCodesAreNotLookedUp(t *testing.T) {
	w, f := failingWorld(t)
	issued := w.code("shop")
	raw, err := base64.RawURLEncoding.DecodeString(issued)
	check.OK(t, err)
	check.Equal(t, "bytes of a code", len(raw), 32)
	guesses := []string{secret.New(), issued + "A", issued[:42], issued[:42] + "=", strings.Repeat("A", 43), strings.Repeat("A", 58), ""}
	for i := range raw {
		raw[i]++
		guesses = append(guesses, base64.RawURLEncoding.EncodeToString(raw))
		raw[i]--
	}
	operations := f.Count()
	for _, guess := range guesses {
		for _, id := range []string{"shop", "app"} {
			if err := w.present(here, id, w.redemption(id, guess)); guess != "" {
				wantCode(t, oautherr.InvalidGrant, err)
			}
		}
	}
	check.Equal(t, "operations", operations, map[string]int{})
	check.OK(t, w.present(here, "shop", w.redemption("shop", issued)))
}

// TestInvalidGrantsOfOthers: failures of public clients, which anyone can cause, do not affect an
// authenticated client. Its own failures affect it, and no other client.
func TestInvalidGrantsOfOthers(t *testing.T) {
	w := newWorld(t, few)
	second := *w.clients["app"]
	second.ID = "app2"
	w.clients["app2"] = &second
	for range 3 {
		wantCode(t, oautherr.InvalidGrant, w.present(here, "app", refreshing("x")))
	}
	for range 2 {
		wantCode(t, oautherr.InvalidGrant, w.present(here, "app2", refreshing("x")))
	}
	_ = check.As[*oautherr.LimitedError](t, w.present(here, "app2", refreshing("x")))
	for range 3 {
		wantCode(t, oautherr.InvalidGrant, w.present(here, "shop", refreshing("x")))
	}
	_ = check.As[*oautherr.LimitedError](t, w.present(here, "shop", refreshing("x")))
	check.OK(t, w.present(here, "caller", refreshing(w.tokens("caller").RefreshToken)))
	check.OK(t, w.present(here, "shop", clientCredentials))
}

// TestQueriesAreLimited: the limit is by client. For a public client it is by client and address,
// because anyone can send its requests.
//
// Attack (tokens): Floods of `/introspect` and `/revoke`. Both are limited per client, and for
// public clients per address. Also e2e.TestQueryLimits.
func TestQueriesAreLimited(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.Introspections, o.Revocations = grants.QueryLimit(1), grants.QueryLimit(1) })
	query := func(id string, from netip.Addr) grants.TokenQuery {
		return grants.TokenQuery{Credentials: w.credentials(id), Remote: from, Token: "x"}
	}
	introspect := func(id string, from netip.Addr) error {
		_, err := w.service.Introspect(t.Context(), query(id, from))
		return err
	}
	revoke := func(id string, from netip.Addr) error { return w.service.Revoke(t.Context(), query(id, from)) }
	for name, ask := range map[string]func(id string, from netip.Addr) error{"introspect": introspect, "revoke": revoke} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				check.OK(t, ask("shop", here))
			}
			limited := check.As[*oautherr.LimitedError](t, ask("shop", elsewhere))
			check.ErrorSays(t, limited, "Too many requests of this client to this endpoint")
			check.OK(t, ask("other", here))
			w.clock.Advance(limited.RetryAfter)
			check.OK(t, ask("shop", here))
		})
	}
	for range 10 {
		check.OK(t, revoke("app", here))
	}
	_ = check.As[*oautherr.LimitedError](t, revoke("app", here))
	check.OK(t, revoke("app", elsewhere))
}

// TestProvenInFullMeters: a flood of names and addresses does not limit callers that have
// authenticated: a client with its secret, an address from which a public client got a token, and a
// user at an address with a correct password. Their own failures do limit them.
func TestProvenInFullMeters(t *testing.T) {
	w := newWorld(t, few, strict, func(o *grants.Options) { o.Revocations = grants.QueryLimit(1) })
	revoke := func(id string, from netip.Addr) error {
		return w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials(id), Remote: from, Token: "x"})
	}
	w.reopen(func(o *grants.Options) { o.SignIn.Meters = attempts.NewSet(start, 1) })
	check.OK(t, w.present(here, "app", refreshing(w.tokens("app").RefreshToken)))
	check.OK(t, w.signIn(here, "bob", password))
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }
	for i := range 300 { // far more than shared counters admit
		_ = w.present(address(i), "app", refreshing("x"))
		_ = w.signIn(address(i), "alice", "x")
		for range 4 {
			_ = revoke("app", address(i))
		}
	}
	_ = check.As[*oautherr.LimitedError](t, w.present(elsewhere, "app", refreshing("x")))
	_ = check.As[*oautherr.LimitedError](t, revoke("app", elsewhere))
	check.OK(t, w.present(elsewhere, "shop", refreshing(w.tokens("shop").RefreshToken)))
	check.OK(t, revoke("shop", elsewhere))
	check.OK(t, w.present(here, "app", refreshing(w.tokens("app").RefreshToken)))
	check.OK(t, w.signIn(here, "bob", password))

	valid := refreshing(w.tokens("app").RefreshToken) // its code comes from another address, which may share a counter with the next failures
	for range 3 {
		wantCode(t, oautherr.InvalidGrant, w.present(here, "app", refreshing("x")))
	}
	_ = check.As[*oautherr.LimitedError](t, w.present(here, "app", valid))
}
