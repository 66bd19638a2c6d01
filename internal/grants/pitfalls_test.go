package grants

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-oauth2/oauth2/v4"
	lib "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/generates"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
)

// Each test below first shows a fault in the stock library ("stock"), then that
// the same attempt fails here ("ours"). If a new version of the library heals
// one, its "stock" part fails and says so. What concerns HTTP alone (how
// credentials are decoded, where parameters are read) is tested in
// internal/httpapi under the same numbers.

func TestPitfall01_RefreshAuthenticatesTheClient(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		first, err := s.redeem(t.Context(), s.code(t), "")
		require.NoError(t, err)
		stolen, err := s.manager.RefreshAccessToken(t.Context(), &oauth2.TokenGenerateRequest{
			ClientID: "other", ClientSecret: "wrong", Refresh: first.GetRefresh(), Scope: "admin",
		})
		require.NoError(t, err)
		require.Equal(t, "admin", stolen.GetScope())
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		first := w.mustToken("shop", w.redemption("shop", w.code("shop", func(r *AuthorizeRequest) { r.Scope = "read" })))
		try := func(c Credentials, scope string) error {
			req := refreshing(first.RefreshToken)
			req.Credentials, req.Scope = c, scope
			_, err := w.service.Token(t.Context(), req)
			return err
		}
		requireCode(t, InvalidClient, try(Credentials{Method: AuthBasic, ClientID: "shop", Secret: "wrong"}, ""))
		requireCode(t, InvalidClient, try(Credentials{Method: AuthNone, ClientID: "shop"}, ""))
		requireCode(t, InvalidGrant, try(w.credentials("other"), ""))
		requireCode(t, InvalidScope, try(w.credentials("shop"), "admin"))
		require.NoError(t, try(w.credentials("shop"), ""))
	})
}

// atOnce calls f from n goroutines that start together and counts the nils.
func atOnce(n int, f func() error) (successes int, failures []error) {
	var (
		begin = make(chan struct{})
		wg    sync.WaitGroup
		mu    sync.Mutex
	)
	for range n {
		wg.Go(func() {
			<-begin
			err := f()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				successes++
			} else {
				failures = append(failures, err)
			}
		})
	}
	close(begin)
	wg.Wait()
	return successes, failures
}

func TestPitfall02_DoubleSpend(t *testing.T) {
	const attempts, rounds = 10, 40
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		code := s.code(t)
		var looked atomic.Int64
		all := make(chan struct{})
		s.looked = func() { // All have looked before anybody takes.
			if looked.Add(1) == attempts {
				close(all)
			}
			<-all
		}
		successes, _ := atOnce(attempts, func() error { _, err := s.redeem(t.Context(), code, ""); return err })
		require.Equal(t, attempts, successes)
	})
	for name, prepare := range map[string]func(w *world) TokenRequest{
		"ours, code":    func(w *world) TokenRequest { return w.redemption("shop", w.code("shop")) },
		"ours, refresh": func(w *world) TokenRequest { return refreshing(w.tokens("shop").RefreshToken) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for range rounds {
				req := prepare(w)
				var issued atomic.Pointer[TokenResponse]
				successes, failures := atOnce(attempts, func() error {
					answer, err := w.token("shop", req)
					if err == nil {
						issued.Store(&answer)
					}
					return err
				})
				require.Equal(t, 1, successes)
				for _, err := range failures {
					requireCode(t, InvalidGrant, err)
				}
				require.False(t, w.active(issued.Load().AccessToken), "the others were replays: the family is revoked")
				_, err := w.token("shop", refreshing(issued.Load().RefreshToken))
				requireCode(t, InvalidGrant, err)
			}
		})
	}
}

func TestPitfall03_ReuseRevokesTheFamily(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		first, err := s.redeem(t.Context(), s.code(t), "")
		require.NoError(t, err)
		refresh := func(token string) (oauth2.TokenInfo, error) {
			return s.manager.RefreshAccessToken(t.Context(), &oauth2.TokenGenerateRequest{Refresh: token})
		}
		thief, err := refresh(first.GetRefresh())
		require.NoError(t, err)
		_, err = refresh(first.GetRefresh())
		require.Error(t, err, "the owner comes second")
		_, err = refresh(thief.GetRefresh())
		require.NoError(t, err, "and the thief goes on")
	})
	for name, reuse := range map[string]func(w *world, code, refresh TokenRequest) TokenRequest{
		"ours, refresh token": func(_ *world, _, refresh TokenRequest) TokenRequest { return refresh },
		"ours, code":          func(_ *world, code, _ TokenRequest) TokenRequest { return code },
		"ours, code without its verifier": func(_ *world, code, _ TokenRequest) TokenRequest {
			code.CodeVerifier = ""
			return code
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			code := w.redemption("shop", w.code("shop"))
			first := w.mustToken("shop", code)
			refresh := refreshing(first.RefreshToken)
			thief := w.mustToken("shop", refresh)
			bystander := w.tokens("shop")

			_, err := w.token("shop", reuse(w, code, refresh))
			requireCode(t, InvalidGrant, err)
			for _, token := range []string{first.AccessToken, thief.AccessToken, thief.RefreshToken} {
				require.False(t, w.active(token))
			}
			_, err = w.token("shop", refreshing(thief.RefreshToken))
			requireCode(t, InvalidGrant, err)
			require.True(t, w.active(bystander.AccessToken), "another family is not touched")
			w.mustToken("shop", refreshing(bystander.RefreshToken))
		})
	}
	t.Run("ours, another client cannot revoke by presenting", func(t *testing.T) {
		w := newWorld(t)
		first := w.tokens("shop")
		second := w.mustToken("shop", refreshing(first.RefreshToken))
		_, err := w.token("other", refreshing(first.RefreshToken))
		requireCode(t, InvalidGrant, err)
		require.True(t, w.active(second.AccessToken))
	})
}

func TestPitfall04_PKCE(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		s.code(t) // no challenge is asked for
		challenge := func(method oauth2.CodeChallengeMethod, value string) func(*oauth2.TokenGenerateRequest) {
			return func(r *oauth2.TokenGenerateRequest) { r.CodeChallenge, r.CodeChallengeMethod = value, method }
		}
		_, err := s.redeem(t.Context(), s.code(t, challenge(oauth2.CodeChallengePlain, verifier)), verifier)
		require.NoError(t, err, "plain passes")

		code := s.code(t, challenge(oauth2.CodeChallengeS256, s256(verifier)))
		_, err = s.redeem(t.Context(), code, "wrong")
		require.Error(t, err)
		_, err = s.redeem(t.Context(), code, verifier)
		require.Error(t, err, "a wrong verifier burns the code")

		status, _, _ := s.post(t, url.Values{
			"grant_type": {"authorization_code"}, "redirect_uri": {"https://example.com/cb"},
			"code": {s.code(t, challenge(oauth2.CodeChallengeS256, s256(verifier)))},
		}, "shop", "s")
		require.Equal(t, http.StatusInternalServerError, status, "a missing verifier is a 500")
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"shop", "app"} {
			for name, edit := range map[string]func(*AuthorizeRequest){
				"no challenge":    func(r *AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = "", "" },
				"plain":           func(r *AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = verifier, "plain" },
				"plain, unspoken": func(r *AuthorizeRequest) { r.CodeChallengeMethod = "" },
			} {
				req := w.authorizeRequest(id)
				edit(&req)
				_, err := w.service.Authorize(t.Context(), req)
				requireCode(t, InvalidRequest, err)
				var redirect *RedirectError
				require.ErrorAs(t, err, &redirect, name)
			}
			code := w.redemption(id, w.code(id))
			for _, wrong := range []string{"", strings.Repeat("a", 43), s256(verifier)} {
				req := code
				req.CodeVerifier = wrong
				_, err := w.token(id, req)
				requireCode(t, InvalidGrant, err)
			}
			w.mustToken(id, code)
		}
	})
	t.Run("ours, downgrade", func(t *testing.T) {
		w := newWorld(t)
		bare := func(r *AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = "", "" }
		code := w.redemption("exempt", w.code("exempt", bare))
		_, err := w.token("exempt", code)
		requireCode(t, InvalidGrant, err)
		code.CodeVerifier = ""
		w.mustToken("exempt", code)

		code = w.redemption("exempt", w.code("exempt"))
		code.CodeVerifier = ""
		_, err = w.token("exempt", code)
		requireCode(t, InvalidGrant, err)
	})
}

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
		info := clientInfo{w.clients["shop"]}
		var _ oauth2.ClientPasswordVerifier = info // or the library compares with !=
		require.Empty(t, info.GetSecret())
		require.True(t, info.VerifyPassword(secretOf("shop")))

		w.clients["empty"] = &clientcfg.Client{ID: "empty", Grants: clientcfg.Grants()} // Validate would refuse it
		for _, presented := range []string{"", "anything"} {
			_, err := w.service.Token(t.Context(), TokenRequest{
				Credentials: Credentials{Method: AuthPost, ClientID: "empty", Secret: presented}, GrantType: "client_credentials",
			})
			requireCode(t, InvalidClient, err)
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
		status := func(id string, req TokenRequest) int {
			_, err := w.token(id, req)
			var oauthErr *Error
			require.ErrorAs(t, err, &oauthErr)
			return oauthErr.Status()
		}
		require.Equal(t, http.StatusBadRequest, status("shop", w.redemption("shop", "x")))
		require.Equal(t, http.StatusBadRequest, status("shop", TokenRequest{GrantType: "x"}))
		require.Equal(t, http.StatusUnauthorized, status("nobody", TokenRequest{GrantType: "client_credentials"}))
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
			requireCode(t, InvalidRequest, err)
			var redirect *RedirectError
			require.NotErrorAs(t, err, &redirect, "never redirect to an unregistered URI")
			require.ErrorIs(t, validateURI(strings.Join(w.clients["shop"].RedirectURIs, "\n"), uri), lib.ErrInvalidRedirectURI)
		}
	})
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
			token := w.mustToken("shop", TokenRequest{GrantType: "client_credentials"}).AccessToken
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
		require.NoError(t, w.service.Revoke(t.Context(), TokenQuery{Credentials: w.credentials("shop"), Token: tokens.AccessToken}))
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
		cookie, _, err := w.service.SignIn(t.Context(), SignIn{Username: "alice", Password: password})
		require.NoError(t, err)
		kept := fmt.Sprintf("%+v", w.store)
		require.Contains(t, kept, "alice")
		for _, secret := range []string{code, tokens.RefreshToken, next.RefreshToken, tokens.AccessToken, cookie, password} {
			require.NotContains(t, kept, secret)
		}
	})
}
