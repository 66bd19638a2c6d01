package issuer

import (
	"context"
	"errors"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"

	"oauth-server/internal/keys"
)

// Signer signs access tokens. [keys.Ring] implements it.
type Signer interface {
	Sign(c keys.Claims) (string, error)
}

// Request says what to issue. The caller has checked the client, the grant and the user.
type Request struct {
	Claims  keys.Claims // of the access token; no Family means no user
	Refresh string      // refresh token to issue; if not empty, the claims must have a Family
	// Store makes the tokens valid, in one durable operation. If it fails, Issue returns its error and
	// no token.
	Store func(ctx context.Context) error
}

// Issuer makes tokens. It is safe for concurrent use.
type Issuer struct{ signer Signer }

// New returns an Issuer that signs access tokens with signer.
func New(signer Signer) *Issuer { return &Issuer{signer} }

// errNoFamily is returned for a refresh token without a family, because it could not be revoked
// with its family. The library would silently omit it.
var errNoFamily = errors.New("issuer: a refresh token needs claims with a family")

// Issue makes an access token and stores it and the refresh token of req, if any. It returns errors
// of the signer and of req.Store, and an error for a refresh token without a family.
func (i *Issuer) Issue(ctx context.Context, req Request) (access, refresh string, err error) {
	if req.Refresh != "" && req.Claims.Family == "" {
		return "", "", errNoFamily
	}
	// A Manager is a handful of pointers. Using one Manager for each request gives the adapter
	// below access to the request without passing it through the context.
	adapter := &adapter{signer: i.signer, req: req, config: manage.Config{IsGenerateRefresh: req.Refresh != ""}}
	manager := manage.NewManager()
	manager.SetPasswordTokenCfg(&adapter.config)
	manager.MapClientStorage(adapter)
	manager.MapAccessGenerate(adapter)
	manager.MapTokenStorage(adapter)

	grant := oauth2.ClientCredentials
	if req.Claims.Family != "" {
		grant = oauth2.PasswordCredentials
	}
	issued, err := manager.GenerateAccessToken(ctx, grant, &oauth2.TokenGenerateRequest{ClientID: req.Claims.ClientID})
	if err != nil {
		return "", "", err
	}
	return issued.GetAccess(), issued.GetRefresh(), nil
}

// adapter presents one request through the interfaces of the library. The grants in use never call
// the other methods of [oauth2.TokenStore].
type adapter struct {
	oauth2.TokenStore
	signer Signer
	req    Request
	client models.Client // has no secret, so the library compares none
	config manage.Config
}

// GetByID implements [oauth2.ClientStore].
func (a *adapter) GetByID(_ context.Context, id string) (oauth2.ClientInfo, error) {
	a.client.ID = id
	return &a.client, nil
}

// Token implements [oauth2.AccessGenerate].
func (a *adapter) Token(_ context.Context, _ *oauth2.GenerateBasic, withRefresh bool) (access, refresh string, err error) {
	if access, err = a.signer.Sign(a.req.Claims); err != nil {
		return "", "", err
	}
	if withRefresh {
		refresh = a.req.Refresh
	}
	return access, refresh, nil
}

// Create implements [oauth2.TokenStore].
func (a *adapter) Create(ctx context.Context, _ oauth2.TokenInfo) error { return a.req.Store(ctx) }
