package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"oauth-server/internal/grants"
)

// token handles POST /token (RFC 6749 3.2).
func (s *Server) token(c *call) error {
	p, err := readForm(c)
	if err != nil {
		return err
	}
	c.grantType = p.get("grant_type")
	req, err := tokenRequest(c.Request().Header, &p)
	if err != nil {
		return err
	}
	c.clientID, req.Credentials.Page, req.Remote = req.Credentials.ClientID, s.pageOf(c.Request()), c.remote
	answer, err := s.o.Service.Token(c.ctx(), req)
	if err != nil {
		return err
	}
	return writeToken(c, &answer)
}

// tokenRequest returns the request with these header fields and parameters, without its origin.
func tokenRequest(h http.Header, p *params) (grants.TokenRequest, error) {
	if !p.has("grant_type") {
		return grants.TokenRequest{}, invalidRequest("The parameter grant_type is missing.")
	}
	credentials, err := readCredentials(h, p)
	return grants.TokenRequest{
		Credentials:  credentials,
		GrantType:    p.get("grant_type"),
		Scope:        p.get("scope"),
		Code:         p.get("code"),
		RedirectURI:  p.get("redirect_uri"),
		CodeVerifier: p.get("code_verifier"),
		RefreshToken: p.get("refresh_token"),
		Username:     p.get("username"),
		Password:     p.get("password"),
	}, err
}

// tokenBody is the answer of RFC 6749 5.1.
type tokenBody struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
}

func writeToken(c *call, t *grants.TokenResponse) error {
	body, err := json.Marshal(tokenBody{ //nolint:gosec // G117: this endpoint exists to hand tokens out
		AccessToken:  t.AccessToken,
		TokenType:    "Bearer",
		ExpiresIn:    int64(t.ExpiresIn / time.Second),
		RefreshToken: t.RefreshToken,
		Scope:        strings.Join(t.Scopes, " "),
	})
	if err != nil {
		return fmt.Errorf("httpapi: encode token: %w", err)
	}
	t.RateLimit.Set(c.Response().Header())
	writeJSON(c, http.StatusOK, body)
	return nil
}
