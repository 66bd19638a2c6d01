package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/ory/fosite"
	"github.com/ory/fosite/compose"
	"github.com/ory/fosite/handler/oauth2"
	"github.com/ory/fosite/storage"
	"github.com/ory/fosite/token/jwt"
)

// hashed compares secrets by their SHA-256, as we do. Fosite's own bcrypt, for secrets that people choose, takes tens
// of milliseconds.
type hashed struct{}

// Hash implements [fosite.Hasher].
func (hashed) Hash(_ context.Context, data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	return sum[:], nil
}

// Compare implements [fosite.Hasher].
func (hashed) Compare(_ context.Context, hash, data []byte) error {
	sum := sha256.Sum256(data)
	if subtle.ConstantTimeCompare(hash, sum[:]) != 1 {
		return errors.New("wrong secret")
	}
	return nil
}

// fositeServer is fosite as its documentation composes it, with its memory store, for JWT access tokens.
func fositeServer(p *peer) (http.HandlerFunc, error) {
	secret, err := hashed{}.Hash(context.Background(), []byte(p.secret)) //nolint:forbidigo // at the start of the program
	if err != nil {
		return nil, err
	}
	store := storage.NewMemoryStore()
	store.Clients[p.id] = &fosite.DefaultClient{
		ID: p.id, Secret: secret, GrantTypes: []string{"client_credentials"}, Scopes: []string{"read", "write"},
	}
	config := &fosite.Config{
		AccessTokenLifespan: time.Hour, AccessTokenIssuer: p.issuer, ClientSecretsHasher: hashed{},
		GlobalSecret: []byte("32 bytes that no token here needs"),
	}
	strategy := compose.NewOAuth2JWTStrategy(func(context.Context) (any, error) { return p.key, nil },
		compose.NewOAuth2HMACStrategy(config), config)
	provider := compose.Compose(config, store, strategy, compose.OAuth2ClientCredentialsGrantFactory)
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		session := &oauth2.JWTSession{
			JWTClaims: &jwt.JWTClaims{Subject: p.id, Issuer: p.issuer, Audience: []string{p.issuer}, IssuedAt: time.Now()},
			JWTHeader: &jwt.Headers{},
		}
		request, err := provider.NewAccessRequest(ctx, r, session)
		if err != nil {
			provider.WriteAccessError(ctx, w, request, err)
			return
		}
		for _, scope := range request.GetRequestedScopes() {
			request.GrantScope(scope)
		}
		response, err := provider.NewAccessResponse(ctx, request)
		if err != nil {
			provider.WriteAccessError(ctx, w, request, err)
			return
		}
		provider.WriteAccessResponse(ctx, w, request, response)
	}, nil
}
