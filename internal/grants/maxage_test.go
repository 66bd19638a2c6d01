package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

const day = 24 * time.Hour

// TestFamiliesEnd: a sign-in ends at its maximum age, however often it is refreshed.
//
// Attack (tokens): A sign-in that never ends. Refreshing does not extend the maximum age. Also
// e2e.TestRefreshEndsByAge.
func TestFamiliesEnd(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.RefreshMaxAge = 40 * day })
	token := w.tokens("shop").RefreshToken
	for range 3 {
		w.clock.Advance(13 * day)
		token = w.refresh(token).RefreshToken
	}
	w.wantActive(true, token) // 39 days
	shown, err := w.service.Introspect(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token})
	check.OK(t, err)
	check.Equal(t, "exp", shown.ExpiresAt, start.Add(40*day))
	w.clock.Advance(day - time.Nanosecond)
	token = w.refresh(token).RefreshToken
	w.clock.Advance(time.Nanosecond)
	w.wantActive(false, token)
	_, err = w.token("shop", refreshing(token))
	wantCode(t, oautherr.InvalidGrant, err)
}

// TestMaxAgeOfOlderTokens: tokens issued without a maximum age, or under a longer one, end too.
func TestMaxAgeOfOlderTokens(t *testing.T) {
	w := newWorld(t)
	token := w.tokens("shop").RefreshToken
	w.reopen(func(o *grants.Options) { o.RefreshMaxAge = day })
	w.clock.Advance(day)
	w.wantActive(false, token)
	_, err := w.token("shop", refreshing(token))
	wantCode(t, oautherr.InvalidGrant, err)
}

// TestSignInTooOldForARefreshToken: the code is redeemed without a refresh token.
func TestSignInTooOldForARefreshToken(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.RefreshMaxAge = time.Second })
	code := w.redemption("shop", w.code("shop"))
	w.clock.Advance(time.Second)
	answer := w.mustToken("shop", code)
	check.Equal(t, "refresh token", answer.RefreshToken, "")
	w.wantActive(true, answer.AccessToken)
}

// TestCodeOutlivesItsClient: a client that is deleted and created again is a different client.
func TestCodeOutlivesItsClient(t *testing.T) {
	w := newWorld(t)
	code := w.redemption("shop", w.code("shop"))
	w.replaceClient("shop")
	_, err := w.token("shop", code)
	wantCode(t, oautherr.InvalidGrant, err)
	w.mustToken("shop", w.redemption("shop", w.code("shop")))
}

// TestCodeScopesOfTheClient: scopes that the client has lost since the consent are left out.
func TestCodeScopesOfTheClient(t *testing.T) {
	w := newWorld(t)
	some, none := w.redemption("shop", w.code("shop")), w.redemption("shop", w.code("shop"))
	w.clients["shop"].Scopes = []string{"write"}
	check.Equal(t, "scopes", w.mustToken("shop", some).Scopes, []string{"write"})
	w.clients["shop"].Scopes = []string{"other"}
	_, err := w.token("shop", none)
	wantCode(t, oautherr.InvalidScope, err)
}
