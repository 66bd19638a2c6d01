package grants_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-oauth2/oauth2/v4"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// Each test below first shows a fault in the stock library ("stock"), then that the same attempt
// fails here ("ours"). If a new version of the library fixes a fault, the "stock" part fails and
// says so. Faults that concern only HTTP (how credentials are decoded, where parameters are read)
// are tested in internal/httpapi under the same numbers.

func TestPitfall01_RefreshAuthenticatesTheClient(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		first, err := s.redeem(t.Context(), s.code(t), "")
		check.OK(t, err)
		stolen, err := s.manager.RefreshAccessToken(t.Context(), &oauth2.TokenGenerateRequest{
			ClientID: "other", ClientSecret: "wrong", Refresh: first.GetRefresh(), Scope: "admin",
		})
		check.OK(t, err)
		check.Equal(t, "stolen scope", stolen.GetScope(), "admin")
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		first := w.mustToken("shop", w.redemption("shop", w.code("shop", func(r *grants.AuthorizeRequest) { r.Scope = "read" })))
		try := func(c grants.Credentials, scope string) error {
			req := refreshing(first.RefreshToken)
			req.Credentials, req.Scope = c, scope
			_, err := w.service.Token(t.Context(), req)
			return err
		}
		wantCode(t, oautherr.InvalidClient, try(grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "wrong"}, ""))
		wantCode(t, oautherr.InvalidClient, try(grants.Credentials{Method: grants.AuthNone, ClientID: "shop"}, ""))
		wantCode(t, oautherr.InvalidGrant, try(w.credentials("other"), ""))
		wantCode(t, oautherr.InvalidScope, try(w.credentials("shop"), "admin"))
		check.OK(t, try(w.credentials("shop"), ""))
	})
}

// atOnce calls f from n goroutines that start together, and counts the nil errors.
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

// Attack (rfc9700): 4.2.4 leaked code. It works once and expires. A second use revokes its
// tokens. Also e2e.TestCodeReplayRevokesWhatItBought, grants.TestExpiry.
func TestPitfall02_DoubleSpend(t *testing.T) {
	const attempts, rounds = 10, 40
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		code := s.code(t)
		var looked atomic.Int64
		all := make(chan struct{})
		s.looked = func() { // All requests have looked before any of them takes.
			if looked.Add(1) == attempts {
				close(all)
			}
			<-all
		}
		successes, _ := atOnce(attempts, func() error { _, err := s.redeem(t.Context(), code, ""); return err })
		check.Equal(t, "successes", successes, attempts)
	})
	for name, prepare := range map[string]func(w *world) grants.TokenRequest{
		"ours, code":    func(w *world) grants.TokenRequest { return w.redemption("shop", w.code("shop")) },
		"ours, refresh": func(w *world) grants.TokenRequest { return refreshing(w.tokens("shop").RefreshToken) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for range rounds {
				req := prepare(w)
				var issued atomic.Pointer[grants.TokenResponse]
				successes, failures := atOnce(attempts, func() error {
					answer, err := w.token("shop", req)
					if err == nil {
						issued.Store(&answer)
					}
					return err
				})
				check.Equal(t, "successes", successes, 1)
				for _, err := range failures {
					wantCode(t, oautherr.InvalidGrant, err)
				}
				w.wantActive(false, issued.Load().AccessToken) // the others were replays: the family is revoked
				_, err := w.token("shop", refreshing(issued.Load().RefreshToken))
				wantCode(t, oautherr.InvalidGrant, err)
			}
		})
	}
}

// Attack (rfc9700): 2.2.2, 4.14 stolen refresh tokens. Refresh tokens rotate at each use. Reuse
// revokes the family with its access tokens. Also grants.TestPitfall13_NothingIsStoredInClear.
func TestPitfall03_ReuseRevokesTheFamily(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		first, err := s.redeem(t.Context(), s.code(t), "")
		check.OK(t, err)
		refresh := func(token string) (oauth2.TokenInfo, error) {
			return s.manager.RefreshAccessToken(t.Context(), &oauth2.TokenGenerateRequest{Refresh: token})
		}
		thief, err := refresh(first.GetRefresh())
		check.OK(t, err)
		_, err = refresh(first.GetRefresh())
		if err == nil {
			t.Fatal("the owner, who comes second, got a token")
		}
		_, err = refresh(thief.GetRefresh())
		if err != nil {
			t.Fatalf("the thief cannot go on: %v", err)
		}
	})
	for name, reuse := range map[string]func(w *world, code, refresh grants.TokenRequest) grants.TokenRequest{
		"ours, refresh token": func(_ *world, _, refresh grants.TokenRequest) grants.TokenRequest { return refresh },
		"ours, code":          func(_ *world, code, _ grants.TokenRequest) grants.TokenRequest { return code },
		"ours, code without its verifier": func(_ *world, code, _ grants.TokenRequest) grants.TokenRequest {
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
			wantCode(t, oautherr.InvalidGrant, err)
			for _, token := range []string{first.AccessToken, thief.AccessToken, thief.RefreshToken} {
				w.wantActive(false, token)
			}
			_, err = w.token("shop", refreshing(thief.RefreshToken))
			wantCode(t, oautherr.InvalidGrant, err)
			w.wantActive(true, bystander.AccessToken) // the other family is unaffected
			w.mustToken("shop", refreshing(bystander.RefreshToken))
		})
	}
	t.Run("ours, another client cannot revoke by presenting", func(t *testing.T) {
		w := newWorld(t)
		code := w.redemption("shop", w.code("shop"))
		first := w.mustToken("shop", code)
		second := w.mustToken("shop", refreshing(first.RefreshToken))
		for _, claimed := range []grants.TokenRequest{code, refreshing(first.RefreshToken)} {
			_, err := w.token("other", claimed)
			wantCode(t, oautherr.InvalidGrant, err)
		}
		w.wantActive(true, second.AccessToken)
	})
}

// Attack (rfc9700): 2.1.1, 4.5, 4.8 PKCE and its downgrade. S256 is required unless a
// confidential client is registered without it. A verifier without a challenge is refused. Also
// grants.FuzzPKCE, clientcfg.TestNeedsPKCE.
func TestPitfall04_PKCE(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		s := newStock()
		s.code(t) // no challenge is required
		challenge := func(method oauth2.CodeChallengeMethod, value string) func(*oauth2.TokenGenerateRequest) {
			return func(r *oauth2.TokenGenerateRequest) { r.CodeChallenge, r.CodeChallengeMethod = value, method }
		}
		_, err := s.redeem(t.Context(), s.code(t, challenge(oauth2.CodeChallengePlain, verifier)), verifier)
		if err != nil {
			t.Fatalf("plain does not pass: %v", err)
		}

		code := s.code(t, challenge(oauth2.CodeChallengeS256, s256(verifier)))
		_, err = s.redeem(t.Context(), code, "wrong")
		if err == nil {
			t.Fatal("a wrong verifier passed")
		}
		_, err = s.redeem(t.Context(), code, verifier)
		if err == nil {
			t.Fatal("a wrong verifier did not burn the code")
		}

		status, _, _ := s.post(t, url.Values{
			"grant_type": {"authorization_code"}, "redirect_uri": {"https://example.com/cb"},
			"code": {s.code(t, challenge(oauth2.CodeChallengeS256, s256(verifier)))},
		}, "shop", "s")
		check.Equal(t, "status without a verifier", status, http.StatusInternalServerError)
	})
	t.Run("ours", func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"shop", "app"} {
			for name, edit := range map[string]func(*grants.AuthorizeRequest){
				"no challenge":    func(r *grants.AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = "", "" },
				"plain":           func(r *grants.AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = verifier, "plain" },
				"plain, unspoken": func(r *grants.AuthorizeRequest) { r.CodeChallengeMethod = "" },
			} {
				t.Run(id+", "+name, func(t *testing.T) {
					req := w.authorizeRequest(id)
					edit(&req)
					_, err := w.service.Authorize(t.Context(), req)
					wantCode(t, oautherr.InvalidRequest, err)
					_ = check.As[*grants.RedirectError](t, err)
				})
			}
			code := w.redemption(id, w.code(id))
			for _, wrong := range []string{"", strings.Repeat("a", 43), s256(verifier)} {
				req := code
				req.CodeVerifier = wrong
				_, err := w.token(id, req)
				wantCode(t, oautherr.InvalidGrant, err)
			}
			w.mustToken(id, code)
		}
	})
	t.Run("ours, downgrade", func(t *testing.T) {
		w := newWorld(t)
		bare := func(r *grants.AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = "", "" }
		code := w.redemption("exempt", w.code("exempt", bare))
		_, err := w.token("exempt", code)
		wantCode(t, oautherr.InvalidGrant, err)
		code.CodeVerifier = ""
		w.mustToken("exempt", code)

		code = w.redemption("exempt", w.code("exempt"))
		code.CodeVerifier = ""
		_, err = w.token("exempt", code)
		wantCode(t, oautherr.InvalidGrant, err)
	})
}
