package clientcfg_test

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
)

func webClient(change func(*clientcfg.Client)) clientcfg.Client {
	c := clientcfg.Client{
		ID:           "web",
		SecretDigest: secret.DigestOf("s"),
		Grants:       []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{"https://app.example/callback"},
		Scopes:       []string{"read"},
	}
	change(&c)
	return c
}

func TestClientValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*clientcfg.Client)
		want   string // part of the error; empty if valid
	}{
		{"confidential web client", func(*clientcfg.Client) {}, ""},
		{"public native client", func(c *clientcfg.Client) {
			c.Public, c.SecretDigest = true, secret.Digest{}
			c.RedirectURIs = []string{"http://127.0.0.1/callback", "com.example.app:/callback"}
		}, ""},
		{"no id", func(c *clientcfg.Client) { c.ID = "" }, "client_id: must have 1 to 128"},
		{"an id too long", func(c *clientcfg.Client) { c.ID = strings.Repeat("x", 129) }, "client_id: must have 1 to 128"},
		{"a space in the id", func(c *clientcfg.Client) { c.ID = "a b" }, "client_id"},
		{"the name of the global candidate", func(c *clientcfg.Client) { c.ID = "_default" }, `client_id: "_default" is the name of the candidate`},
		{"a control character in the id", func(c *clientcfg.Client) { c.ID = "a\x00" }, "client_id"},
		{"no grant", func(c *clientcfg.Client) { c.Grants = nil }, "grant_types: at least one"},
		{"an unknown grant", func(c *clientcfg.Client) { c.Grants[1] = "implicit" }, `grant_types[1]: unknown grant type "implicit"`},
		{"codes without a redirect URI", func(c *clientcfg.Client) { c.RedirectURIs = nil }, "redirect_uris"},
		{"a scope with a quote", func(c *clientcfg.Client) { c.Scopes = []string{`a"`} }, "scope: "},
		{"confidential without a secret", func(c *clientcfg.Client) { c.SecretDigest = secret.Digest{} }, "needs a secret"},
		{"public with a secret", func(c *clientcfg.Client) { c.Public = true }, "has no secret"},
		{"public with client_credentials", func(c *clientcfg.Client) {
			c.Public, c.SecretDigest = true, secret.Digest{}
			c.Grants = []clientcfg.Grant{clientcfg.ClientCredentials}
		}, "cannot use client_credentials"},
		{"first party", func(c *clientcfg.Client) { c.FirstParty = true }, ""},
		{"public first party on the web", func(c *clientcfg.Client) {
			c.FirstParty, c.Public, c.SecretDigest = true, true, secret.Digest{}
		}, ""},
		{"public first party on a device", func(c *clientcfg.Client) {
			c.FirstParty, c.Public, c.SecretDigest = true, true, secret.Digest{}
			c.RedirectURIs = []string{"http://127.0.0.1/callback", "com.example.app:/callback"}
		}, "first_party: a public client needs an https redirect URI"},
		{"first party without users", func(c *clientcfg.Client) {
			c.FirstParty, c.Grants = true, []clientcfg.Grant{clientcfg.ClientCredentials}
		}, "first_party: only the authorization_code grant"},
		{"public without PKCE", func(c *clientcfg.Client) {
			c.Public, c.SecretDigest, c.WithoutPKCE = true, secret.Digest{}, true
		}, "needs PKCE"},
		{"a label twice", func(c *clientcfg.Client) { c.Labels = labels.Of([]string{"team=a", "team=b"}) }, "labels.team: is a duplicate"},
		{"a redirect URI without TLS", func(c *clientcfg.Client) { c.RedirectURIs = []string{"http://app.example/"} }, "redirect_uris[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := webClient(tt.change)
			requireError(t, c.Validate(), tt.want)
		})
	}
}

func TestClientValidateReportsEverythingAtOnce(t *testing.T) {
	c := webClient(func(c *clientcfg.Client) { c.ID, c.Grants, c.Scopes = "", nil, []string{""} })
	for _, want := range []string{"client_id", "grant_types", "scope: "} {
		requireError(t, c.Validate(), want)
	}
}

func TestNeedsPKCE(t *testing.T) {
	if c := webClient(func(*clientcfg.Client) {}); !c.NeedsPKCE() {
		t.Error("a confidential client needs PKCE by default")
	}
	if c := webClient(func(c *clientcfg.Client) { c.WithoutPKCE = true }); c.NeedsPKCE() {
		t.Error("an exempted confidential client needs no PKCE")
	}
	if c := webClient(func(c *clientcfg.Client) { c.Public, c.WithoutPKCE = true, true }); !c.NeedsPKCE() {
		t.Error("nothing exempts a public client")
	}
}

// requireError stops the test unless the error contains want. An empty want means no error.
func requireError(tb testing.TB, err error, want string) {
	tb.Helper()
	if want == "" {
		check.OK(tb, err)
		return
	}
	check.ErrorSays(tb, err, want)
}

// TestTimesThatCannotBeShown: JSON has four-digit years. A client with any other year would break
// every list that contains it.
func TestTimesThatCannotBeShown(t *testing.T) {
	for _, year := range []int{-1, 10_000} {
		at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		for field, c := range map[string]clientcfg.Client{
			"created_at": {CreatedAt: at}, "secret_used_at": {SecretUsed: at},
			"former_secret.valid_until": {Former: clientcfg.FormerSecret{Until: at}}, "former_secret.used_at": {Former: clientcfg.FormerSecret{Used: at}},
		} {
			check.ErrorSays(t, c.Validate(), field)
		}
	}
	c := clientcfg.Client{ID: "shop", Public: true, Grants: []clientcfg.Grant{clientcfg.Password}, CreatedAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
