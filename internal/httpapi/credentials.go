package httpapi

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"

	"oauth-server/internal/grants"
)

// pageOf returns the page of another origin that made a browser send the request. It returns the
// zero Page if there is no such page, or if the client is not a browser.
func (s *Server) pageOf(r *http.Request) grants.Page {
	if s.guard.Check(r) == nil {
		return grants.Page{}
	}
	return grants.Page{Origin: cmp.Or(r.Header.Get("Origin"), "null"), SameSite: r.Header.Get("Sec-Fetch-Site") == "same-site"}
}

// readCredentials returns the client's credentials (RFC 6749 2.3): from Basic, from client_secret
// in the body, or only the client_id of a public client. More than one method at once is
// invalid_request. An unsupported method is invalid_client. readCredentials does not check the
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

// namesNobody reports whether a header is HTTP Basic with an empty user and password. Some
// libraries send it for a client that authenticates in the body.
func namesNobody(header string) bool {
	scheme, rest, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Basic") && strings.Trim(rest, " =") == "Og" // the base64 of a colon
}

func ways(used ...bool) (n int) {
	for _, u := range used {
		if u {
			n++
		}
	}
	return n
}

// basicCredentials parses an Authorization header. An empty secret counts as no secret, as in the
// body, because golang.org/x/oauth2 sends a public client's credentials that way.
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

// parseBasic decodes "Basic base64(form(id):form(secret))". RFC 6749 2.3.1 requires the inner form
// encoding, which net/http's BasicAuth does not decode. Clients that omit it, such as curl, are
// accepted too: the secret is kept in both forms, and text that cannot be decoded is kept as sent.
// An ID that can be decoded is kept only in decoded form. Otherwise a gateway would count its
// client as a different one.
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

// decodedOr decodes form-encoded text, or returns s unchanged if it is not valid form encoding.
func decodedOr(s string) string {
	if decoded, ok := decodeComponent(s); ok {
		return decoded
	}
	return s
}
