package tokenclient

import (
	"time"

	"golang.org/x/oauth2"
)

// Token is an access token with what is known about it.
type Token struct {
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Scope        string    `json:"scope,omitempty"`
	ObtainedAt   time.Time `json:"obtained_at"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"` // zero: the server did not say
}

// maxMargin bounds how long before its expiry a token is given up, so that it
// does not expire on its way to whoever will check it.
const maxMargin = 30 * time.Second

// Fresh reports whether the token can still be used at now: until a tenth of
// its lifetime, at most half a minute, before it expires. One whose lifetime is
// unknown is never fresh.
func (t *Token) Fresh(now time.Time) bool {
	if t == nil || t.AccessToken == "" || t.ExpiresAt.IsZero() {
		return false
	}
	margin := min(t.ExpiresAt.Sub(t.ObtainedAt)/10, maxMargin)
	return now.Before(t.ExpiresAt.Add(-margin))
}

// tokenFrom takes the server's answer as received at now.
func tokenFrom(answer *oauth2.Token, now time.Time) *Token {
	t := &Token{
		AccessToken:  answer.AccessToken,
		TokenType:    answer.Type(),
		RefreshToken: answer.RefreshToken,
		ObtainedAt:   now.UTC(),
	}
	t.Scope, _ = answer.Extra("scope").(string)
	// expires_in comes as a JSON number here; Expiry was made by the wall
	// clock and is not used.
	if seconds, ok := answer.Extra("expires_in").(float64); ok && seconds > 0 {
		t.ExpiresAt = t.ObtainedAt.Add(time.Duration(seconds * float64(time.Second)))
	}
	return t
}
