package token

import (
	"encoding/json"
	"fmt"
	"time"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/tokenclient"
)

// tokenResponse is the token response (RFC 6749 section 5.1).
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in,omitempty"` // seconds from now
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
}

// tokenNotes are the client's additions to a token response.
type tokenNotes struct {
	Origin         tokenclient.Origin `json:"origin"`
	ExpiresAt      time.Time          `json:"expires_at,omitzero"`
	CacheFile      string             `json:"cache_file,omitempty"`
	Claims         json.RawMessage    `json:"claims,omitempty"`
	ClaimsVerified bool               `json:"claims_verified"`
	ClaimsProblem  string             `json:"claims_problem,omitempty"`
}

func printToken(c *command.Env, result *tokenclient.Result) error {
	t := result.Token
	response := tokenResponse{
		AccessToken: t.AccessToken, TokenType: t.TokenType, RefreshToken: t.RefreshToken, Scope: t.Scope,
	}
	if !t.ExpiresAt.IsZero() {
		response.ExpiresIn = int64(time.Until(t.ExpiresAt).Round(time.Second).Seconds())
	}
	if c.Output == command.OutputText {
		return printTokenText(c, response, result)
	}
	notes := tokenNotes{Origin: result.Origin, ExpiresAt: t.ExpiresAt, CacheFile: result.CacheFile}
	if claims := result.Claims; claims != nil {
		notes.Claims, notes.ClaimsVerified, notes.ClaimsProblem = claims.Payload, claims.Verified, claims.Problem
	}
	return c.JSON(struct {
		tokenResponse
		tokenNotes
	}{response, notes})
}

func printTokenText(c *command.Env, response tokenResponse, result *tokenclient.Result) error {
	if _, err := fmt.Fprintf(c.Out, "Token response, %s:\n", originWords(result)); err != nil {
		return err
	}
	if err := c.JSON(response); err != nil {
		return err
	}
	claims := result.Claims
	if claims == nil {
		_, err := fmt.Fprintln(c.Out, "The access token is opaque and has no claims to show.")
		return err
	}
	checked := "decoded, and verified with the server's published keys"
	if !claims.Verified {
		checked = "decoded, NOT verified: " + claims.Problem
	}
	if _, err := fmt.Fprintf(c.Out, "Claims of the access token, %s:\n", checked); err != nil {
		return err
	}
	return c.JSON(claims.Payload)
}

func originWords(result *tokenclient.Result) string {
	words := map[tokenclient.Origin]string{
		tokenclient.Issued:    "newly issued",
		tokenclient.Refreshed: "refreshed",
		tokenclient.Reused:    "reused from the cache",
	}[result.Origin]
	if result.CacheFile != "" && result.Origin != tokenclient.Reused {
		words += ", cached in " + result.CacheFile
	}
	return words
}
