package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
)

// fixed answers every request with one token answer, which is as long as a usual one: what a gateway is measured before. That of
// an authorization code has a new refresh token.
func fixed(*peer) (http.HandlerFunc, error) {
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"ES256","typ":"at+jwt"}`)) + "." +
		part([]byte(`{"iss":"https://idp.example","sub":"0b5cf2ea-6f0c-4d55-9f4e-5c5f0f1a7c11","client_id":"shop","scope":"read write","exp":1800000000}`)) +
		"." + part(make([]byte, 64))
	answer := `{"access_token":"` + token + `","token_type":"Bearer","expires_in":3600,"scope":"read write"`
	return func(w http.ResponseWriter, r *http.Request) {
		form, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		end := "}"
		if bytes.Contains(form, []byte("grant_type=authorization_code")) {
			end = `,"refresh_token":"` + rand.Text() + `"}`
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, answer+end)
	}, nil
}
