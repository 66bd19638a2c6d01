package grants_test

import (
	"encoding/base64"
	"errors"
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

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/oautherr"
)

func TestPitfall05_SecretsAreComparedAsDigests(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		_, err := s.manager.GenerateAccessToken(t.Context(), oauth2.ClientCredentials,
			&oauth2.TokenGenerateRequest{ClientID: "empty", ClientSecret: "anything"})
		if err != nil {
			t.Fatalf("an empty secret needs authentication now: %v", err)
		}
		var info oauth2.ClientInfo = &models.Client{}
		_, constantTime := info.(oauth2.ClientPasswordVerifier)
		if constantTime {
			t.Fatal("the library compares secrets in constant time now")
		}
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		w.clients["empty"] = &clientcfg.Client{ID: "empty", Grants: clientcfg.Grants()} // Validate would refuse it
		for _, presented := range []string{"", "anything"} {
			_, err := w.service.Token(t.Context(), grants.TokenRequest{
				Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "empty", Secret: presented}, GrantType: "client_credentials",
			})
			wantCode(t, oautherr.InvalidClient, err)
		}
	})
}

// Attack (rfc9700): 2.5 client authentication. Secrets have 256 random bits. **Lacking**:
// `private_key_jwt` and mTLS; assertions are refused. Also
// grants.TestPitfall05_SecretsAreComparedAsDigests, httpapi.TestBadCredentials.
func TestPitfall06_256RandomBits(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		raw, err := base64.RawURLEncoding.DecodeString(newStock().code(t))
		check.OK(t, err)
		check.Equal(t, "length of the code, a UUID of 122 bits as text", len(raw), 36)
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		for secret, length := range map[string]int{
			w.code("shop"): 256 / 8,
			// The secret of its family, the generation and a MAC of 144 bits.
			w.tokens("shop").RefreshToken: 256/8 + 4 + 144/8,
		} {
			raw, err := base64.RawURLEncoding.DecodeString(secret)
			check.OK(t, err)
			check.Equal(t, "length", len(raw), length)
		}
	})
}

// TestPitfall07_Statuses has only the stock part. The "ours" part is TestTokenRefuses, and
// internal/httpapi tests the status of each code.
func TestPitfall07_Statuses(t *testing.T) {
	s := newStock()
	status, body, header := s.post(t, url.Values{"grant_type": {"authorization_code"}, "code": {"x"}, "redirect_uri": {"https://example.com/cb"}}, "shop", "s")
	check.Equal(t, "status", status, http.StatusUnauthorized)
	check.Equal(t, "error", body["error"], "invalid_grant")
	check.Equal(t, "WWW-Authenticate", header.Get("WWW-Authenticate"), "")
	status, _, _ = s.post(t, url.Values{"grant_type": {"client_credentials"}}, "nobody", "x")
	check.Equal(t, "status", status, http.StatusInternalServerError)
}

// unhashable is an error that cannot be a map key, as some drivers return.
type unhashable []string

func (u unhashable) Error() string { return strings.Join(u, ", ") }

func TestPitfall08_StoreErrorsNeverPanic(t *testing.T) {
	down := unhashable{"connection refused by 10.0.0.7"}
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		code := s.code(t)
		s.fail = down
		defer func() {
			if recover() == nil {
				t.Error("the library survives an error that cannot be a map key")
			}
		}()
		s.post(t, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"https://example.com/cb"}}, "shop", "s")
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
		check.OK(t, s.server.HandleAuthorizeRequest(rec, r))
		if got := rec.Header().Get("Location"); !strings.HasPrefix(got, "https://evilexample.com/cb?code=") {
			t.Fatalf("redirect to %q", got)
		}
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
			wantCode(t, oautherr.InvalidRequest, err)
			var redirect *grants.RedirectError
			if errors.As(err, &redirect) {
				t.Fatalf("redirect to the unregistered %q", redirect.RedirectURI)
			}

			prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
			check.OK(t, err)
			prompt.RedirectURI = uri
			_, err = w.approve(prompt, w.session())
			wantCode(t, oautherr.InvalidGrant, err)
		}
	})
}

// TestPitfall10_CredentialsAndParameters has only the stock part: "ours" is in internal/httpapi,
// where requests are read.
func TestPitfall10_CredentialsAndParameters(t *testing.T) {
	s := newStock()
	credentials := url.Values{"grant_type": {"client_credentials"}}
	status, _, _ := s.post(t, credentials, "sh%6Fp", "s")
	check.Equal(t, "status of credentials encoded as RFC 6749 2.3.1 asks", status, http.StatusInternalServerError)

	r := httptest.NewRequest(http.MethodPost, "/token?"+credentials.Encode(), nil)
	r.SetBasicAuth("shop", "s")
	rec := httptest.NewRecorder()
	check.OK(t, s.server.HandleTokenRequest(rec, r))
	check.Equal(t, "status of parameters in the query", rec.Code, http.StatusOK)
}

func TestPitfall11_TokensDiffer(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		gen := generates.NewJWTAccessGenerate("", []byte("k"), jwt.SigningMethodHS256)
		one := func() string {
			access, _, err := gen.Token(t.Context(), &oauth2.GenerateBasic{
				Client: &models.Client{ID: "shop"}, TokenInfo: &models.Token{AccessCreateAt: start},
			}, false)
			check.OK(t, err)
			return access
		}
		check.Equal(t, "second token of one second", one(), one())
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		one := func() keys.Claims {
			token := w.mustToken("shop", grants.TokenRequest{GrantType: "client_credentials"}).AccessToken
			claims, err := w.ring.Verify(token, start)
			check.OK(t, err)
			return claims
		}
		a, b := one(), one()
		if a.ID == b.ID {
			t.Fatalf("two tokens with the jti %s", a.ID)
		}
		check.Equal(t, "iat", a.IssuedAt, start)
	})
}

// TestPitfall12_RevocationAndIntrospection has only the stock part: "ours" is TestRevoke.
func TestPitfall12_RevocationAndIntrospection(t *testing.T) {
	var s any = newStock().server
	_, revokes := s.(interface {
		HandleRevocationRequest(http.ResponseWriter, *http.Request) error
	})
	_, introspects := s.(interface {
		HandleIntrospectionRequest(http.ResponseWriter, *http.Request) error
	})
	if revokes || introspects {
		t.Fatal("the library revokes or introspects now")
	}
}

func TestPitfall13_NothingIsStoredInClear(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		s.hashed = true
		_, err := s.redeem(t.Context(), s.code(t), "")
		check.ErrorIs(t, err, lib.ErrInvalidAuthorizeCode) // the library cannot work with a store that hashes
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		code := w.code("shop")
		tokens := w.mustToken("shop", w.redemption("shop", code))
		next := w.mustToken("shop", refreshing(tokens.RefreshToken))
		cookie, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
		check.OK(t, err)
		file, err := os.ReadFile(w.file)
		check.OK(t, err)
		kept := string(file)
		if !strings.Contains(kept, "alice") {
			t.Fatal("the file does not hold the user")
		}
		for _, secret := range []string{code, tokens.RefreshToken, next.RefreshToken, tokens.AccessToken, cookie, password} {
			if strings.Contains(kept, secret) {
				t.Errorf("the file holds %q in clear", secret)
			}
		}
	})
}
