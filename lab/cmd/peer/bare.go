package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

// bare is the least that can be called a token endpoint: it parses the form, makes the claims of our token, signs them
// by ES256, and writes our JSON. It does not authenticate, check, limit, count or log.
func bare(p *peer) (http.HandlerFunc, error) {
	header := base64.RawURLEncoding.EncodeToString(
		[]byte(`{"alg":"ES256","kid":"xVNOOsCgXGSkfLY9RbIrUvHyFkSFiKzvTPAyaWkBl8c","typ":"at+jwt"}`)) + "."
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		now := time.Now().Unix()
		claims, err := json.Marshal(map[string]any{
			"iss": p.issuer, "sub": p.id, "aud": p.issuer, "client_id": p.id,
			"scope": "read write", "iat": now, "exp": now + 3600, "jti": rand.Text(),
		})
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		input := header + base64.RawURLEncoding.EncodeToString(claims)
		signature, err := sign(p.key, input)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token": input + "." + signature, "token_type": "Bearer", "expires_in": 3600, "scope": "read write",
		})
	}, nil
}

func sign(key *ecdsa.PrivateKey, input string) (string, error) {
	digest := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", err
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return base64.RawURLEncoding.EncodeToString(signature[:]), nil
}
