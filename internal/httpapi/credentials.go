package httpapi

import (
	"encoding/base64"
	"net/http"
	"strings"

	"oauth-server/internal/grants"
)

// readCredentials returns how the client authenticates (RFC 6749 2.3): with Basic, with
// client_secret in the body, or, being public, not at all. More than one way at once is
// invalid_request; a way that the server does not support is invalid_client. It does not check the
// credentials.
func readCredentials(h http.Header, p *params) (grants.Credentials, error) {
	headers := h["Authorization"]
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
	id, secret, ok := parseBasic(header)
	if !ok {
		return grants.Credentials{}, invalidClient("The Authorization header is not well-formed HTTP Basic.")
	}
	if bodyClientID != "" && bodyClientID != id {
		return grants.Credentials{}, invalidRequest("The parameter client_id differs from the one in the Authorization header.")
	}
	if secret == "" {
		return grants.Credentials{Method: grants.AuthNone, ClientID: id}, nil
	}
	return grants.Credentials{Method: grants.AuthBasic, ClientID: id, Secret: secret}, nil
}

// parseBasic decodes "Basic base64(form(id):form(secret))". The inner form encoding is that of RFC
// 6749 2.3.1, which net/http's BasicAuth does not decode.
func parseBasic(header string) (id, secret string, ok bool) {
	scheme, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") || len(rest) > 4096 {
		return "", "", false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimLeft(rest, " "))
	if err != nil {
		return "", "", false
	}
	rawID, rawSecret, found := strings.Cut(string(raw), ":")
	id, idOK := decodeComponent(rawID)
	secret, secretOK := decodeComponent(rawSecret)
	sane := len(id) <= maxLength("client_id") && len(secret) <= maxLength("client_secret")
	return id, secret, found && idOK && secretOK && id != "" && sane
}
