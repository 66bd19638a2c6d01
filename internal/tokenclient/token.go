package tokenclient

import (
	"time"

	"golang.org/x/oauth2"
)

// Token is an access token with the rest of the token response.
type Token struct {
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Scope        string    `json:"scope,omitempty"`
	ObtainedAt   time.Time `json:"obtained_at"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"` // zero: unknown
}

// maxMargin is the maximum time before its expiry at which a token is no longer used. It keeps a
// token from expiring on the way to the resource server.
const maxMargin = 30 * time.Second

// Fresh reports whether the token can still be used at now: it is until a tenth of its lifetime
// before it expires, at most half a minute. A nil token and a token of unknown lifetime are never
// fresh.
func (t *Token) Fresh(now time.Time) bool {
	if t == nil || t.AccessToken == "" || t.ExpiresAt.IsZero() {
		return false
	}
	margin := min(t.ExpiresAt.Sub(t.ObtainedAt)/10, maxMargin)
	return now.Before(t.ExpiresAt.Add(-margin))
}

// tokenFrom returns the token of an answer that was received at now.
func tokenFrom(answer *oauth2.Token, now time.Time) *Token {
	t := &Token{
		AccessToken:  answer.AccessToken,
		TokenType:    answer.Type(),
		RefreshToken: answer.RefreshToken,
		ObtainedAt:   now.UTC(),
	}
	t.Scope, _ = answer.Extra("scope").(string)
	// expires_in is a JSON number. answer.Expiry is not used, because x/oauth2 computes it with the
	// wall clock instead of now.
	if seconds, ok := answer.Extra("expires_in").(float64); ok && seconds > 0 {
		t.ExpiresAt = t.ObtainedAt.Add(time.Duration(seconds * float64(time.Second)))
	}
	return t
}
