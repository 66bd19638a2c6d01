package e2e

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// TestConsentOnTwoInstances: what a user allows on one instance needs no page on the other, and ends on
// both when it is withdrawn on one.
func TestConsentOnTwoInstances(t *testing.T) {
	cluster := newCluster(t, unlimited)
	flags := []string{"--mongodb-uri", cluster.uri, "--mongodb-database", cluster.database}
	out, err := command(t.Context(), "", append(append([]string{"client", "create", "web", "-o", "json"}, clientArgs["web"]...), flags...)...)
	check.OK(t, err)
	var made struct {
		Secret string `json:"client_secret"`
	}
	check.OK(t, json.Unmarshal(out, &made))
	_, err = command(t.Context(), password+"\n", append([]string{"user", "create", user, "--password-stdin"}, flags...)...)
	check.OK(t, err)
	cluster.grow(2)
	on := func(i int) *oauth2.Config {
		c := cluster.members[i].config("web")
		c.ClientSecret = made.Secret
		return c
	}
	b, verifier := newBrowser(t), oauth2.GenerateVerifier()
	ask := func(i int, parameters ...oauth2.AuthCodeOption) url.Values {
		t.Helper()
		b.open(on(i).AuthCodeURL("s", append(parameters, oauth2.S256ChallengeOption(verifier))...))
		if b.page.left == nil {
			return nil
		}
		return b.page.left.Query()
	}
	none := oauth2.SetAuthURLParam("prompt", "none")

	check.Equal(t, "signed out", ask(0, none).Get("error"), "login_required")
	ask(0)
	b.submit("/sign-in", "username", user, "password", password)
	check.Equal(t, "before the consent", ask(1, none).Get("error"), "consent_required")
	check.Equal(t, "iss", ask(1, none).Get("iss"), "http://127.0.0.1:9096")
	ask(0)
	b.submit("/consent", "decision", "allow")
	code := ask(1, none).Get("code") // on the other instance, and without a page
	token, err := on(0).Exchange(with(t), code, oauth2.VerifierOption(verifier))
	check.OK(t, err)
	ask(0, oauth2.SetAuthURLParam("max_age", "0"))
	if !b.has("/sign-in") {
		t.Errorf("max_age=0 shows no sign-in page:\n%s", b.page.text)
	}

	b.open(cluster.members[1].Issuer + "/consents")
	b.submit("/consents/withdraw")
	if !strings.Contains(b.page.text, "No application has access.") {
		t.Errorf("it was not withdrawn:\n%s", b.page.text)
	}
	token.Expiry = token.Expiry.AddDate(-1, 0, 0)
	if _, err = on(0).TokenSource(with(t), token).Token(); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a refresh after the withdrawal: %v", err)
	}
	check.Equal(t, "after the withdrawal", ask(0, none).Get("error"), "consent_required")
}
