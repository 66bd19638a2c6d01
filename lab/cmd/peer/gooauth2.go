package main

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"

	"github.com/go-oauth2/oauth2/v4/generates"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/go-oauth2/oauth2/v4/server"
	"github.com/go-oauth2/oauth2/v4/store"
	"github.com/golang-jwt/jwt/v5"
)

// goOAuth2 is the stock server of go-oauth2 with its memory stores, for JWT access tokens.
func goOAuth2(p *peer) (http.HandlerFunc, error) {
	der, err := x509.MarshalECPrivateKey(p.key)
	if err != nil {
		return nil, err
	}
	manager := manage.NewDefaultManager()
	manager.MustTokenStorage(store.NewMemoryTokenStore())
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	manager.MapAccessGenerate(generates.NewJWTAccessGenerate("key", key, jwt.SigningMethodES256))
	clients := store.NewClientStore()
	if err := clients.Set(p.id, &models.Client{ID: p.id, Secret: p.secret, Domain: p.issuer}); err != nil {
		return nil, err
	}
	manager.MapClientStorage(clients)
	s := server.NewDefaultServer(manager)
	s.SetClientInfoHandler(server.ClientBasicHandler)
	return func(w http.ResponseWriter, r *http.Request) {
		_ = s.HandleTokenRequest(w, r) // it has written the error
	}, nil
}
