package e2e

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// TestOneUserHoweverTyped: every way to type a name is the same user, with one sub and one limit, on the
// sign-in page and in the password grant.
func TestOneUserHoweverTyped(t *testing.T) {
	s := start(t, limited(3, "1h", ""))
	ctx := with(t)
	c := s.config("legacy")
	for _, name := range []string{strings.ToUpper(user), "\uff21da", user} {
		token, err := c.PasswordCredentialsToken(ctx, name, password)
		check.OK(t, err, name)
		check.Equal(t, "sub", verify(t, s, token.AccessToken).Subject, user)
	}
	_, err := c.PasswordCredentialsToken(ctx, strings.ToUpper(user), password)
	requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
	_, err = c.PasswordCredentialsToken(ctx, user+" b", password)
	requireRefused(t, err, http.StatusBadRequest, "invalid_grant")

	web, b := s.config("web"), newBrowser(t)
	verifier := oauth2.GenerateVerifier()
	b.open(web.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier)))
	b.submit("/sign-in", "username", user+" b", "password", password)
	if !strings.Contains(b.page.text, "not a valid user name for a new user") {
		t.Errorf("the page does not say that no new user can have such a name:\n%s", b.page.text)
	}
	b.submit("/sign-in", "username", strings.ToUpper(user), "password", password)
	b.submit("/consent", "decision", "allow")
	token, err := web.Exchange(ctx, b.sentTo().Query().Get("code"), oauth2.VerifierOption(verifier))
	check.OK(t, err)
	check.Equal(t, "sub", verify(t, s, token.AccessToken).Subject, user)
}

// TestWrongPasswordsCountForAllFormsOfAName: a name in other case is not another name to try.
//
// Attack (usernames): A new limit for every spelling. All spellings share one user and one
// limit. Also e2e.TestOneUserHoweverTyped, grants.TestOneNameHoweverTyped.
func TestWrongPasswordsCountForAllFormsOfAName(t *testing.T) {
	s := start(t, unlimited+"failed_attempts: { window: 24h, users: { per_name: 3 } }\n") // over the end of a window one more passes
	ctx := with(t)
	c := s.config("legacy")
	for _, name := range []string{"ada", "Ada", "ADA"} {
		_, err := c.PasswordCredentialsToken(ctx, name, "wrong")
		requireRefused(t, err, http.StatusBadRequest, "invalid_grant")
	}
	_, err := c.PasswordCredentialsToken(ctx, "aDa", password)
	requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
}
