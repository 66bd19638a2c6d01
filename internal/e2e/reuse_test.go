package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// reusing is a configuration in which a client gets so many tokens an hour, and its last one above that.
func reusing(requests int) string {
	return limited(requests, "1h", "    over_limit: reuse\n")
}

// A client of golang.org/x/oauth2 that gets a token for each of its requests notices no limit, however it
// sends its credentials.
func TestReuseInALoop(t *testing.T) {
	const limit = 4
	s := start(t, reusing(limit))
	for name, style := range map[string]oauth2.AuthStyle{
		"basic": oauth2.AuthStyleInHeader, "post": oauth2.AuthStyleInParams, "found out by itself": oauth2.AuthStyleAutoDetect,
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := s.credentials("shop"), with(t)
			c.AuthStyle = style
			seen := map[string]bool{}
			var last *oauth2.Token
			for range 50 * limit {
				token, err := c.Token(ctx)
				check.OK(t, err)
				seen[token.AccessToken], last = true, token
			}
			if len(seen) > limit || !last.Valid() {
				t.Fatalf("%d tokens in an hour, want at most %d, and the last one valid until %v", len(seen), limit, last.Expiry)
			}
			check.Equal(t, "sub", verify(t, s, last.AccessToken).Subject, "shop")
			check.Equal(t, "scope", last.Extra("scope"), "read")
		})
	}
}

// The answer over the limit is that of any token request, with the fields that say that nothing is left.
func TestReuseOnTheWire(t *testing.T) {
	s := start(t, reusing(1))
	ask := func() reply { return s.post("/token", "shop", url.Values{"grant_type": {"client_credentials"}}) }
	first, again := ask(), ask()
	first.requireStatus(t, http.StatusOK)
	again.requireStatus(t, http.StatusOK)
	check.Equal(t, "access_token", again.object(t)["access_token"], first.object(t)["access_token"])
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "Retry-After": ""} {
		check.Equal(t, name, again.header.Get(name), want)
	}
	left, _ := rateLimit(t, again.header)
	check.Equal(t, "requests left", left, 0)

	token, _ := again.object(t)["access_token"].(string)
	s.post("/revoke", "shop", url.Values{"token": {token}}).requireStatus(t, http.StatusOK)
	requireOAuthError(t, ask(), http.StatusTooManyRequests, "temporarily_unavailable")
}

// Users are denied, whatever over_limit says.
func TestReuseIsNotForUsers(t *testing.T) {
	s := start(t, reusing(2))
	ctx, c := with(t), s.config("legacy")
	_ = exhaust(t, func() error { _, err := c.PasswordCredentialsToken(ctx, user, password); return err })
}
