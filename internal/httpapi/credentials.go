package httpapi

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"

	"oauth-server/internal/grants"
)

// pageOf returns the page of another origin that a browser sent a request for; the zero Page if there is none, or it is no
// browser.
func (s *Server) pageOf(r *http.Request) grants.Page {
	if s.guard.Check(r) == nil {
		return grants.Page{}
	}
	return grants.Page{Origin: cmp.Or(r.Header.Get("Origin"), "null"), SameSite: r.Header.Get("Sec-Fetch-Site") == "same-site"}
}

// readCredentials returns how the client authenticates (RFC 6749 2.3): with Basic, with
// client_secret in the body, or, being public, not at all. More than one way at once is
// invalid_request; a way that the server does not support is invalid_client. It does not check the
// credentials.
func readCredentials(h http.Header, p *params) (grants.Credentials, error) {
	headers := h["Authorization"]
	if len(headers) == 1 && namesNobody(headers[0]) {
		headers = nil
	}
	assertion := p.has("client_assertion") || p.has("client_assertion_type")
	switch {
	case len(headers) > 1:
		return grants.Credentials{}, invalidRequest("There is more than one Authorization header.")
	case ways(len(headers) == 1, p.has("client_secret"), assertion) > 1:
		return grants.Credentials{}, invalidRequest("The client authenticates in more than one way.")
	case len(headers) == 1:
		return basicCredentials(headers[0], p.get("client_id"))
	case assertion:
		return grants.Credentials{}, invalidClient("Client assertions are not supported.")
	case !p.has("client_id"):
		return grants.Credentials{}, invalidClient("Client authentication is required.")
	case p.has("client_secret"):
		return grants.Credentials{Method: grants.AuthPost, ClientID: p.get("client_id"), Secret: p.get("client_secret")}, nil
	}
	return grants.Credentials{Method: grants.AuthNone, ClientID: p.get("client_id")}, nil
}

// namesNobody reports whether a header is HTTP Basic with neither a user nor a password, as some libraries send it for a client
// that authenticates in the body.
func namesNobody(header string) bool {
	scheme, rest, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Basic") && strings.Trim(rest, " =") == "Og" // a colon
}

func ways(used ...bool) (n int) {
	for _, u := range used {
		if u {
			n++
		}
	}
	return n
}

// basicCredentials reads an Authorization header. An empty secret counts as none, as in the body:
// golang.org/x/oauth2 sends a public client's credentials so.
func basicCredentials(header, bodyClientID string) (grants.Credentials, error) {
	c, ok := parseBasic(header)
	if !ok {
		return grants.Credentials{}, invalidClient("The Authorization header is not well-formed HTTP Basic.")
	}
	if bodyClientID != "" && bodyClientID != c.ClientID {
		return grants.Credentials{}, invalidRequest("The parameter client_id differs from the one in the Authorization header.")
	}
	return c, nil
}

// parseBasic decodes "Basic base64(form(id):form(secret))". The inner form encoding is that of RFC
// 6749 2.3.1, which net/http's BasicAuth does not decode. Clients that leave it out, such as curl, are understood as well: the
// secret is kept in both spellings, and what cannot be decoded is as it was sent. An id that can be is not kept as it was sent:
// a gateway would count its client as another one.
func parseBasic(header string) (c grants.Credentials, ok bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") || len(rest) > 4096 {
		return c, false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimLeft(rest, " "))
	if err != nil || !isText(string(raw)) {
		return c, false
	}
	id, secret, found := strings.Cut(string(raw), ":")
	c = grants.Credentials{Method: grants.AuthBasic, ClientID: decodedOr(id), Secret: decodedOr(secret)}
	switch secret {
	case "":
		c.Method = grants.AuthNone
	case c.Secret:
	default:
		c.RawSecret = secret
	}
	sane := len(c.ClientID) <= maxLength("client_id") && len(c.Secret) <= maxLength("client_secret")
	return c, found && c.ClientID != "" && sane
}

// decodedOr undoes form encoding, if it is that of text, or else returns the text itself.
func decodedOr(s string) string {
	if decoded, ok := decodeComponent(s); ok {
		return decoded
	}
	return s
}
