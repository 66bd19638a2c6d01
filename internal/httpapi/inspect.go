package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// introspect handles POST /introspect (RFC 7662).
func (s *Server) introspect(c *call) error {
	query, err := s.readTokenQuery(c)
	if err != nil {
		return err
	}
	found, err := s.o.Service.Introspect(c.ctx(), query)
	if err != nil {
		return err
	}
	body, err := json.Marshal(introspectionOf(&found))
	if err != nil {
		return fmt.Errorf("httpapi: encode introspection: %w", err)
	}
	writeJSON(c, http.StatusOK, body)
	return nil
}

// revoke handles POST /revoke (RFC 7009). A token that was never valid gets the same answer as one
// that is no longer valid: an empty 200.
func (s *Server) revoke(c *call) error {
	query, err := s.readTokenQuery(c)
	if err != nil {
		return err
	}
	if err := s.o.Service.Revoke(c.ctx(), query); err != nil {
		return err
	}
	oautherr.NoStore(c.Response().Header())
	c.Response().WriteHeader(http.StatusOK)
	return nil
}

// readTokenQuery reads the parameters common to introspection and revocation.
func (s *Server) readTokenQuery(c *call) (grants.TokenQuery, error) {
	p, err := readForm(c)
	if err != nil {
		return grants.TokenQuery{}, err
	}
	if !p.has("token") {
		return grants.TokenQuery{}, invalidRequest("The parameter token is missing.")
	}
	credentials, err := readCredentials(c.Request().Header, &p)
	if err != nil {
		return grants.TokenQuery{}, err
	}
	c.clientID, credentials.Page = credentials.ClientID, s.pageOf(c.Request())
	return grants.TokenQuery{
		Credentials: credentials, Remote: c.remote, Token: p.get("token"), Hint: p.get("token_type_hint"),
	}, nil
}

// introspectionBody is the answer of RFC 7662 2.2. Times are in seconds since the epoch.
type introspectionBody struct {
	Active    bool     `json:"active"`
	Scope     string   `json:"scope,omitempty"`
	ClientID  string   `json:"client_id,omitempty"`
	Username  string   `json:"username,omitempty"`
	TokenType string   `json:"token_type,omitempty"`
	ExpiresAt int64    `json:"exp,omitempty"`
	IssuedAt  int64    `json:"iat,omitempty"`
	Subject   string   `json:"sub,omitempty"`
	Audience  []string `json:"aud,omitempty"`
	Issuer    string   `json:"iss,omitempty"`
	ID        string   `json:"jti,omitempty"`
}

// introspectionOf encodes an introspection. If the token is not active, it encodes only that (RFC
// 7662 2.2) and ignores the rest of i.
func introspectionOf(i *grants.Introspection) introspectionBody {
	if !i.Active {
		return introspectionBody{}
	}
	return introspectionBody{
		Active:    true,
		Scope:     strings.Join(i.Scopes, " "),
		ClientID:  i.ClientID,
		Username:  i.Username,
		TokenType: i.TokenType,
		ExpiresAt: unixSeconds(i.ExpiresAt),
		IssuedAt:  unixSeconds(i.IssuedAt),
		Subject:   i.Subject,
		Audience:  i.Audience,
		Issuer:    i.Issuer,
		ID:        i.ID,
	}
}

func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
