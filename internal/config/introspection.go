package config

import (
	"cmp"
	"net/url"
	"strconv"

	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/strict/fielderr"
)

// Introspection is the endpoint (RFC 7662) that a gateway asks for the users of opaque tokens. The
// secret is given by its value or in a file, not both.
type Introspection struct {
	// URL is the URL of the endpoint. Empty disables introspection.
	URL string `json:"url,omitempty" help:"introspection URL for users of opaque tokens (RFC 7662); empty: off" redact:"password"`
	// ClientID authenticates the gateway there. Without it, no credentials are sent.
	ClientID         string `json:"client_id,omitempty" help:"client_id of the gateway there; empty: no credentials"`
	ClientSecret     string `json:"client_secret,omitempty" help:"client secret of the gateway at --introspection-url" redact:"all"`
	ClientSecretFile string `json:"client_secret_file,omitempty" help:"file with the secret"`
}

// Secret returns the secret. It removes a line break at the end of the file. The error is
// [fielderr.Errors].
func (i Introspection) Secret() (string, error) {
	var es fielderr.Errors
	secret := i.secret(&es)
	return secret, es.Err()
}

func (i Introspection) secret(es *fielderr.Errors) string {
	const path = "gateway.introspection.client_secret"
	if i.ClientSecret == Redacted {
		es.Add(path, "is the placeholder for a secret, not the secret")
	}
	return valueOrFile(es, path, i.ClientSecret, i.ClientSecretFile)
}

func (i Introspection) check(es *fielderr.Errors, insecure bool) {
	if i == (Introspection{}) {
		return
	}
	const path = "gateway.introspection"
	u, err := url.Parse(i.URL)
	switch {
	case i.URL == "":
		es.Add(path+".url", "is missing: give the URL of the introspection endpoint, such as https://idp.example.com/oauth2/introspect")
	case !isWeb(u, err):
		es.Add(path+".url", "%q is not a URL such as https://idp.example.com/oauth2/introspect", RedactURI(i.URL))
	case u.User != nil || u.Fragment != "":
		es.Add(path+".url", "must have no user information and no fragment; give credentials in client_id and client_secret")
	case u.Scheme == "http" && !redirecturi.IsLoopback(u.Hostname()) && !insecure:
		es.Add(path+".url", "must be https, because it receives secrets and tokens; on a private network, set insecure to allow http")
	}
	secret := i.ClientSecret != "" || i.ClientSecretFile != ""
	switch {
	case i.ClientID != "" && !secret:
		es.Add(path+".client_secret", "or client_secret_file is required with client_id")
	case i.ClientID == "" && secret:
		es.Add(path+".client_id", "is required with client_secret")
	}
	i.secret(es)
}

// isWeb reports whether a parsed URL is the URL of a web server. err is the error of parsing it.
func isWeb(u *url.URL, err error) bool {
	return err == nil && redirecturi.IsHTTP(u) && u.Hostname() != "" && isPort(cmp.Or(u.Port(), "80"))
}

// isPort reports whether text is a port that a server can have.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
