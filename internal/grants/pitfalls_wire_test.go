package grants_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-oauth2/oauth2/v4"
	lib "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/generates"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
)

func TestPitfall05_SecretsAreComparedAsDigests(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		_, err := s.manager.GenerateAccessToken(t.Context(), oauth2.ClientCredentials,
			&oauth2.TokenGenerateRequest{ClientID: "empty", ClientSecret: "anything"})
		require.NoError(t, err, "an empty secret means no authentication")
		var info oauth2.ClientInfo = &models.Client{}
		_, constantTime := info.(oauth2.ClientPasswordVerifier)
		require.False(t, constantTime)
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		right, wrong := w.credentials("shop"), w.credentials("shop")
		wrong.Secret = secretOf("other")
		_, err := w.service.Token(t.Context(), grants.TokenRequest{Credentials: right, GrantType: "client_credentials"})
		require.NoError(t, err)
		_, err = w.service.Token(t.Context(), grants.TokenRequest{Credentials: wrong, GrantType: "client_credentials"})
		requireCode(t, grants.InvalidClient, err)

		w.clients["empty"] = &clientcfg.Client{ID: "empty", Grants: clientcfg.Grants()} // Validate would refuse it
		for _, presented := range []string{"", "anything"} {
			_, err := w.service.Token(t.Context(), grants.TokenRequest{
				Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "empty", Secret: presented}, GrantType: "client_credentials",
			})
			requireCode(t, grants.InvalidClient, err)
		}
	})
}

func TestPitfall06_256RandomBits(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		raw, err := base64.RawURLEncoding.DecodeString(newStock().code(t))
		require.NoError(t, err)
		require.Len(t, raw, 36, "a UUID in text: 122 bits")
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		for _, secret := range []string{w.code("shop"), w.tokens("shop").RefreshToken} {
			raw, err := base64.RawURLEncoding.DecodeString(secret)
			require.NoError(t, err)
			require.Len(t, raw, 256/8)
		}
	})
}

func TestPitfall07_Statuses(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		status, body, header := s.post(t, url.Values{"grant_type": {"authorization_code"}, "code": {"x"}, "redirect_uri": {"https://example.com/cb"}}, "shop", "s")
		require.Equal(t, http.StatusUnauthorized, status)
		require.Equal(t, "invalid_grant", body["error"])
		require.Empty(t, header.Get("WWW-Authenticate"))
		status, _, _ = s.post(t, url.Values{"grant_type": {"client_credentials"}}, "nobody", "x")
		require.Equal(t, http.StatusInternalServerError, status)
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		refused := func(want grants.ErrorCode, id string, req grants.TokenRequest) {
			_, err := w.token(id, req)
			requireCode(t, want, err) // internal/httpapi tests the status of each code
		}
		refused(grants.InvalidGrant, "shop", w.redemption("shop", "x"))
		refused(grants.UnsupportedGrantType, "shop", grants.TokenRequest{GrantType: "x"})
		refused(grants.InvalidClient, "nobody", grants.TokenRequest{GrantType: "client_credentials"})
	})
}

// unhashable is an error as drivers have them: it cannot be a map key.
type unhashable []string

func (u unhashable) Error() string { return strings.Join(u, ", ") }

func TestPitfall08_StoreErrorsNeverPanic(t *testing.T) {
	down := unhashable{"connection refused by 10.0.0.7"}
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		code := s.code(t)
		s.fail = down
		require.Panics(t, func() {
			s.post(t, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"https://example.com/cb"}}, "shop", "s")
		})
	})
	t.Run("ours", func(t *testing.T) {
		eachStoreFailure(t, down)
	})
}

func TestPitfall09_RedirectURIsMatchExactly(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		r := httptest.NewRequest(http.MethodGet, "/authorize?response_type=code&client_id=shop&redirect_uri="+
			url.QueryEscape("https://evilexample.com/cb"), nil)
		rec := httptest.NewRecorder()
		require.NoError(t, s.server.HandleAuthorizeRequest(rec, r))
		require.Contains(t, rec.Header().Get("Location"), "https://evilexample.com/cb?code=")
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		for _, uri := range []string{
			"https://evilshop.example.com/callback", callback + "/", callback + "?x=1", callback + "#x",
			"https://shop.example.com:8443/callback", "http://shop.example.com/callback", "https://shop.example.com@evil.com/callback",
			"HTTPS://shop.example.com/callback", "https://shop.example.com/callback/../evil", " " + callback, "javascript:alert(1)", "//evil.com",
		} {
			req := w.authorizeRequest("shop")
			req.RedirectURI = uri
			_, err := w.service.Authorize(t.Context(), req)
			requireCode(t, grants.InvalidRequest, err)
			var redirect *grants.RedirectError
			require.NotErrorAs(t, err, &redirect, "never redirect to an unregistered URI")

			prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
			require.NoError(t, err)
			prompt.RedirectURI = uri
			_, err = w.service.Approve(t.Context(), prompt, w.session())
			requireCode(t, grants.InvalidGrant, err)
		}
	})
}

// TestPitfall10_CredentialsAndParameters has only the stock part: "ours" is in
// internal/httpapi, where requests are read.
func TestPitfall10_CredentialsAndParameters(t *testing.T) {
	s := newStock()
	credentials := url.Values{"grant_type": {"client_credentials"}}
	status, _, _ := s.post(t, credentials, "sh%6Fp", "s")
	require.Equal(t, http.StatusInternalServerError, status, "encoded as RFC 6749 2.3.1 asks, the client is not known")

	r := httptest.NewRequest(http.MethodPost, "/token?"+credentials.Encode(), nil)
	r.SetBasicAuth("shop", "s")
	rec := httptest.NewRecorder()
	require.NoError(t, s.server.HandleTokenRequest(rec, r))
	require.Equal(t, http.StatusOK, rec.Code, "parameters in the query count")
}

func TestPitfall11_TokensDiffer(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		gen := generates.NewJWTAccessGenerate("", []byte("k"), jwt.SigningMethodHS256)
		one := func() string {
			access, _, err := gen.Token(t.Context(), &oauth2.GenerateBasic{
				Client: &models.Client{ID: "shop"}, TokenInfo: &models.Token{AccessCreateAt: start},
			}, false)
			require.NoError(t, err)
			return access
		}
		require.Equal(t, one(), one(), "two tokens of one second are the same")
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		one := func() keys.Claims {
			token := w.mustToken("shop", grants.TokenRequest{GrantType: "client_credentials"}).AccessToken
			claims, err := w.ring.Verify(token, start)
			require.NoError(t, err)
			return claims
		}
		a, b := one(), one()
		require.NotEqual(t, a.ID, b.ID)
		require.True(t, a.IssuedAt.Equal(start))
	})
}

func TestPitfall12_RevocationAndIntrospection(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		var s any = newStock().server
		_, revokes := s.(interface {
			HandleRevocationRequest(http.ResponseWriter, *http.Request) error
		})
		_, introspects := s.(interface {
			HandleIntrospectionRequest(http.ResponseWriter, *http.Request) error
		})
		require.False(t, revokes || introspects)
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		tokens := w.tokens("shop")
		require.True(t, w.active(tokens.AccessToken))
		require.NoError(t, w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.AccessToken}))
		require.False(t, w.active(tokens.AccessToken))
	})
}

func TestPitfall13_NothingIsStoredInClear(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		s.hashed = true
		_, err := s.redeem(t.Context(), s.code(t), "")
		require.ErrorIs(t, err, lib.ErrInvalidAuthorizeCode, "a store that hashes breaks the library")
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		code := w.code("shop")
		tokens := w.mustToken("shop", w.redemption("shop", code))
		next := w.mustToken("shop", refreshing(tokens.RefreshToken))
		cookie, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
		require.NoError(t, err)
		file, err := os.ReadFile(w.file)
		require.NoError(t, err)
		kept := string(file)
		require.Contains(t, kept, "alice")
		for _, secret := range []string{code, tokens.RefreshToken, next.RefreshToken, tokens.AccessToken, cookie, password} {
			require.NotContains(t, kept, secret)
		}
	})
}
