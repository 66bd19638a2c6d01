package grants_test

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

const grace = 30 * time.Second

func graceful(o *grants.Options) { o.RefreshGrace = grace }

// refresh presents a refresh token of shop that must be valid.
func (w *world) refresh(token string) grants.TokenResponse {
	w.tb.Helper()
	return w.mustToken("shop", refreshing(token))
}

// wantReplay presents a refresh token of shop that must be treated as stolen.
func (w *world) wantReplay(token string) {
	w.tb.Helper()
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(token), "already used")
}

// TestRepeatedRefresh: a client that lost the response gets the same successor again, with a new
// access token, until the successor is used.
//
// Attack (tokens): A lost response looks like theft. Within the grace period the client gets the
// same successor, until the successor is used. Also grants.TestGenerations,
// e2e.TestRefreshThroughFaults.
func TestRepeatedRefresh(t *testing.T) {
	w := newWorld(t, graceful)
	first := w.tokens("shop")
	second := w.refresh(first.RefreshToken)
	for range 3 {
		w.clock.Advance(grace/3 - time.Nanosecond)
		again := w.refresh(first.RefreshToken)
		check.Equal(t, "successor", again.RefreshToken, second.RefreshToken)
		check.Equal(t, "the access token is another", again.AccessToken != second.AccessToken, true)
		w.wantActive(true, again.AccessToken)
	}
	narrow := refreshing(first.RefreshToken)
	narrow.Scope = "read"
	again := w.mustToken("shop", narrow)
	check.Equal(t, "successor of a refresh with another scope", again.RefreshToken, second.RefreshToken)
	check.Equal(t, "scopes", again.Scopes, []string{"read"})
	wider := w.refresh(second.RefreshToken)
	check.Equal(t, "scopes of the successor", wider.Scopes, first.Scopes)

	w.wantReplay(first.RefreshToken) // its successor was used
	for _, token := range []string{again.AccessToken, wider.AccessToken, wider.RefreshToken} {
		w.wantActive(false, token)
	}
}

// TestRepetitionIsRefused: a repetition is refused whenever the token itself would be.
func TestRepetitionIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(w *world, second grants.TokenResponse)
		by   string
	}{
		"revoked": {func(w *world, second grants.TokenResponse) {
			w.revoke(second.RefreshToken)
		}, "shop"},
		"the user is gone": {func(w *world, _ grants.TokenResponse) {
			check.OK(w.tb, w.store.DeleteUser(w.tb.Context(), "alice", nil))
		}, "shop"},
		"the client is another":       {func(w *world, _ grants.TokenResponse) { w.replaceClient("shop") }, "shop"},
		"the client has lost a grant": {func(w *world, _ grants.TokenResponse) { w.clients["shop"].Grants = clientcfg.Grants()[:2] }, "shop"},
		"another client presents it":  {func(*world, grants.TokenResponse) {}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, graceful)
			first := w.tokens("shop")
			tc.edit(w, w.refresh(first.RefreshToken))
			_, err := w.token(tc.by, refreshing(first.RefreshToken))
			if code := check.As[*grants.Error](t, err).Code; code != oautherr.InvalidGrant && code != oautherr.UnauthorizedClient {
				t.Fatalf("error %v", err)
			}
		})
	}
}

// TestRepetitionWritesNothing: a repetition writes nothing, and counts against the limit.
func TestRepetitionWritesNothing(t *testing.T) {
	w, f := failingWorld(t, graceful)
	first := w.tokens("shop")
	w.refresh(first.RefreshToken)
	var operations []string
	f.Begun = func(operation string) { operations = append(operations, operation) }
	w.refresh(first.RefreshToken)
	slices.Sort(operations)
	check.Equal(t, "operations", operations, []string{"Get grants", "Get revocations", "Get users"})
}

func TestRepetitionIsLimited(t *testing.T) {
	w, _ := limitedWorld(t)
	w.reopen(graceful)
	first := w.tokens("shop")
	w.refresh(first.RefreshToken)
	w.refresh(first.RefreshToken)
	w.wantDenied("shop", refreshing(first.RefreshToken))
}

// TestRefreshedMeanwhile: another request claims the token between look and take.
func TestRefreshedMeanwhile(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		w, f := failingWorld(t, graceful)
		first := w.tokens("shop")
		var meanwhile grants.TokenResponse
		f.Meanwhile("Get grants", func() { meanwhile = w.refresh(first.RefreshToken) })
		check.Equal(t, "successor", w.refresh(first.RefreshToken).RefreshToken, meanwhile.RefreshToken)
	})
	t.Run("and its successor too", func(t *testing.T) {
		w, f := failingWorld(t, graceful)
		first := w.tokens("shop")
		f.Meanwhile("Get grants", func() { w.refresh(w.refresh(first.RefreshToken).RefreshToken) })
		w.wantReplay(first.RefreshToken)
	})
	t.Run("and the family was revoked", func(t *testing.T) {
		w, f := failingWorld(t, graceful)
		first := w.tokens("shop")
		f.Meanwhile("Get grants", func() {
			second := w.refresh(first.RefreshToken)
			w.revoke(second.RefreshToken)
		})
		w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(first.RefreshToken))
	})
}

// TestRepeatedAtAnotherInstance: the grace period starts by the clock of the instance that rotated,
// and ends by the clock of the instance that serves the repetition. A start further in the future
// than the allowed clock skew is not accepted.
func TestRepeatedAtAnotherInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		behind time.Duration
		pass   bool
	}{
		"in step": {0, true}, "behind": {59 * time.Second, true}, "far behind": {time.Minute, false},
		"ahead": {-29 * time.Second, true}, "ahead by the grace period": {-grace, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, graceful)
			w.clock.Advance(time.Hour)
			first := w.tokens("shop")
			w.refresh(first.RefreshToken)
			w.reopen(func(o *grants.Options) { o.Now = func() time.Time { return w.clock.Now().Add(-tc.behind) } })
			_, err := w.token("shop", refreshing(first.RefreshToken))
			check.Equal(t, "passes", err == nil, tc.pass)
		})
	}
}

// withGeneration returns the token with another generation and a matching MAC.
func withGeneration(tb testing.TB, token string, change func(g uint32) uint32) string {
	tb.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token)
	check.OK(tb, err)
	body := raw[:32:32]
	body = binary.BigEndian.AppendUint32(body, change(binary.BigEndian.Uint32(raw[32:])))
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + testworld.Deriver{}.Derive("refresh token", text)[:24]
}

// plus returns a function that adds n generations.
func plus(n int) func(uint32) uint32 { return func(g uint32) uint32 { return uint32(int(g) + n) } }

// forgeries returns texts that no instance has issued, derived from an issued token.
func forgeries(token string) map[string]string {
	flip := func(i int) string {
		other := byte('A')
		if token[i] == other {
			other = 'B'
		}
		return token[:i] + string(other) + token[i+1:]
	}
	return map[string]string{
		"another secret": flip(0), "the secret's end": flip(42), "another generation": flip(47), "another MAC": flip(48),
		"the MAC's end": flip(71), "cut": token[:71], "longer": token + "A", "padded": token + "=", "with a line break": token[:71] + "\n",
		"in two lines": token[:40] + "\n" + token[40:71], "the MAC first": token[48:] + token[:48], "of another alphabet": strings.Repeat("+", 72),
		"no base64url": strings.Repeat("!", 72), "a word": "random", "of no key": token[:48] + strings.Repeat("A", 24),
		"43 characters, not of 32 bytes": strings.Repeat("_", 43),
	}
}

// TestForgedTokens: a token that no instance has issued is refused, counted, and never looked up.
//
// Attack (tokens): Forged codes and refresh tokens. A MAC refuses them before the store is read.
// A code is not accepted as a refresh token. Also grants.FuzzRefreshToken,
// grants.TestGuessedCodesAreNotLookedUp, grants.TestCodeIsNoRefreshToken.
func TestForgedTokens(t *testing.T) {
	w, f := failingWorld(t)
	issued := w.tokens("shop").RefreshToken
	for name, forged := range forgeries(issued) {
		f.Begun = func(operation string) { t.Errorf("%s: %s was called", name, operation) }
		for _, req := range []grants.TokenRequest{refreshing(forged), w.redemption("shop", forged)} {
			w.wantRefused(oautherr.InvalidGrant, "shop", req)
		}
		w.wantActive(false, forged)
		w.revoke(forged)
	}
}

// TestCodeIsNoRefreshToken: a code is the secret of its family, and would need no PKCE verifier if
// it were accepted as a refresh token.
func TestCodeIsNoRefreshToken(t *testing.T) {
	w := newWorld(t, graceful)
	code := w.code("app")
	tokens := w.mustToken("app", w.redemption("app", code))
	w.wantRefused(oautherr.InvalidGrant, "app", refreshing(code), "unknown")
	w.mustToken("app", refreshing(tokens.RefreshToken)) // the family is unchanged
}

// TestGenerations presents every generation around the newest one, at different ages of the newest.
func TestGenerations(t *testing.T) {
	const newest = 4
	type outcome struct {
		says      string // text of the refusal; empty if a token is issued
		successor int    // generation of the issued token, relative to the newest
		revoked   bool
	}
	used, unknown := outcome{says: "already used", revoked: true}, outcome{says: "unknown"}
	for _, tc := range []struct {
		presented int // relative to the newest
		age       time.Duration
		grace     time.Duration
		want      outcome
	}{
		{0, 0, 0, outcome{successor: 1}},
		{0, 0, grace, outcome{successor: 1}},
		{0, 29 * day, grace, outcome{successor: 1}},
		{0, 30 * day, grace, outcome{says: "has expired"}},
		{-1, 0, grace, outcome{}},
		{-1, grace - time.Nanosecond, grace, outcome{}},
		{-1, grace, grace, used},
		{-1, 0, 0, used},
		{-1, -time.Second, 0, used},    // rotated by an instance with its clock ahead
		{-1, 31 * day, 40 * day, used}, // the successor has expired
		{-2, 0, grace, used},
		{-3, 0, grace, used},
		{-newest, 0, grace, used}, // the code that the family began with
		{1, 0, grace, unknown},
		{2, 40 * day, grace, unknown},
	} {
		w := newWorld(t, func(o *grants.Options) { o.RefreshGrace = tc.grace })
		token := w.tokens("shop").RefreshToken
		for range newest - 1 {
			token = w.refresh(token).RefreshToken
		}
		w.clock.Advance(tc.age)
		answer, err := w.token("shop", refreshing(withGeneration(t, token, plus(tc.presented))))
		if tc.want.says != "" {
			wantCode(t, oautherr.InvalidGrant, err)
			check.ErrorSays(t, err, tc.want.says)
		} else {
			check.OK(t, err)
			check.Equal(t, "successor", answer.RefreshToken, withGeneration(t, token, plus(tc.want.successor)))
		}
		if tc.age < day {
			w.wantActive(!tc.want.revoked && tc.want.successor == 0, token)
		}
	}
}

// TestRestoredStore: after a restore the store has an older generation than the client. The client
// has to sign in again, but the family is not revoked, because nothing was stolen.
//
// Attack (tokens): Tokens from before a restore. The client must sign in again, but this is no
// replay. `restore` invalidates earlier tokens by default. Also cli.TestRestoreWhileServing.
func TestRestoredStore(t *testing.T) {
	w := newWorld(t, graceful)
	first := w.tokens("shop")
	lost := withGeneration(t, first.RefreshToken, plus(7))
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(lost))
	w.wantActive(false, lost)
	w.wantActive(true, first.RefreshToken)
	w.revoke(lost)
	w.wantActive(false, first.RefreshToken) // it still belongs to the family
}

// FuzzRefreshToken: only issued tokens are looked up.
func FuzzRefreshToken(f *testing.F) {
	w, store := failingWorld(f)
	issued := w.tokens("shop").RefreshToken
	f.Add(issued)
	f.Add(withGeneration(f, issued, plus(1)))
	f.Add(w.code("shop"))
	for _, forged := range forgeries(issued) {
		f.Add(forged)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var operations []string
		store.Begun = func(operation string) { operations = append(operations, operation) }
		shown, err := w.service.Introspect(t.Context(), w.query("shop", text))
		if text == "" {
			return
		}
		check.OK(t, err)
		check.Equal(t, "active", shown.Active, text == issued)
		looked := len(operations) > 0
		switch len(text) {
		case 72:
			raw, err := base64.RawURLEncoding.DecodeString(text[:48])
			ours := err == nil && len(raw) == 36 && text[48:] == testworld.Deriver{}.Derive("refresh token", text[:48])[:24]
			check.Equal(t, "looked up", looked, ours)
		default:
			check.Equal(t, "looked up", looked, false)
		}
	})
}
