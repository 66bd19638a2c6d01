package grants_test

import (
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// byPassword is a request of the password grant.
func byPassword(name, pw string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "password", Username: name, Password: pw, Remote: here}
}

// subject returns the sub and the username from introspection, which must be equal.
func (w *world) subject(token string) string {
	w.tb.Helper()
	answer, err := w.service.Introspect(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token})
	check.OK(w.tb, err)
	check.Equal(w.tb, "username", answer.Username, answer.Subject)
	return answer.Subject
}

// TestWrongPasswordsOfTheGrant: the password grant says why a sign-in failed, and shares the limits of
// the sign-in page.
func TestWrongPasswordsOfTheGrant(t *testing.T) {
	w := newWorld(t, strict)
	const wrong = "The username or the password is wrong."
	for name, says := range map[string]string{
		"nobody":  wrong,
		"foo bar": wrong + " This is not a valid username for a new user: it is too long, or contains a space, a symbol or another invalid character.",
	} {
		_, err := w.token("shop", byPassword(name, password))
		wantCode(t, oautherr.InvalidGrant, err)
		check.Equal(t, name, check.As[*grants.Error](t, err).Description, says)
	}
	for range 3 {
		_, err := w.token("shop", byPassword("alice", "x"))
		wantCode(t, oautherr.InvalidGrant, err)
	}
	_, err := w.token("shop", byPassword("alice", password))
	wantTooMany(t, err)
	wantTooMany(t, w.signIn(here, "alice", password))
}

// TestOneNameHoweverTyped: case and width do not matter, and every sign-in path finds the same
// user.
func TestOneNameHoweverTyped(t *testing.T) {
	w, _ := limitedWorld(t)
	for _, name := range []string{"Alice", "ALICE", "\uff21lice"} {
		_, session, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: name, Password: password})
		check.OK(t, err, name)
		check.Equal(t, "user of the session", session.Username, "alice")

		answer, err := w.token("shop", byPassword(name, password))
		check.OK(t, err, name)
		check.Equal(t, "sub of "+name, w.subject(answer.AccessToken), "alice")
	}
	if w.limited("shop", byPassword("aLICE", password)) == nil {
		t.Error("the fourth request was admitted, want the limit of alice")
	}
	if w.limited("shop", byPassword("aLiCe", "wrong")) == nil {
		t.Error("a password was checked over the limit of alice")
	}
	if limited := w.limited("shop", byPassword("Bob", password)); limited != nil {
		t.Errorf("bob: %v", limited)
	}
}
