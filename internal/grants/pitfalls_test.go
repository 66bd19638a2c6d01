package grants_test

import (
	"encoding/base64"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// Each test below is an attempt that succeeds with the server of go-oauth2 v4.5.4 (ADR 0001).

func TestPitfall01_RefreshAuthenticatesTheClient(t *testing.T) {
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
	for name, prepare := range map[string]func(w *world) grants.TokenRequest{
		"code":    func(w *world) grants.TokenRequest { return w.redemption("shop", w.code("shop")) },
		"refresh": func(w *world) grants.TokenRequest { return refreshing(w.tokens("shop").RefreshToken) },
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
				w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(issued.Load().RefreshToken))
			}
		})
	}
}

// Attack (rfc9700): 2.2.2, 4.14 stolen refresh tokens. Refresh tokens rotate at each use. Reuse
// revokes the family with its access tokens. Also grants.TestPitfall13_NothingIsStoredInClear.
func TestPitfall03_ReuseRevokesTheFamily(t *testing.T) {
	for name, reuse := range map[string]func(w *world, code, refresh grants.TokenRequest) grants.TokenRequest{
		"refresh token": func(_ *world, _, refresh grants.TokenRequest) grants.TokenRequest { return refresh },
		"code":          func(_ *world, code, _ grants.TokenRequest) grants.TokenRequest { return code },
		"code without its verifier": func(_ *world, code, _ grants.TokenRequest) grants.TokenRequest {
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

			w.wantRefused(oautherr.InvalidGrant, "shop", reuse(w, code, refresh))
			for _, token := range []string{first.AccessToken, thief.AccessToken, thief.RefreshToken} {
				w.wantActive(false, token)
			}
			w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(thief.RefreshToken))
			w.wantActive(true, bystander.AccessToken) // the other family is unaffected
			w.mustToken("shop", refreshing(bystander.RefreshToken))
		})
	}
	t.Run("another client cannot revoke by presenting", func(t *testing.T) {
		w := newWorld(t)
		code := w.redemption("shop", w.code("shop"))
		first := w.mustToken("shop", code)
		second := w.mustToken("shop", refreshing(first.RefreshToken))
		for _, claimed := range []grants.TokenRequest{code, refreshing(first.RefreshToken)} {
			w.wantRefused(oautherr.InvalidGrant, "other", claimed)
		}
		w.wantActive(true, second.AccessToken)
	})
}

// Attack (rfc9700): 2.1.1, 4.5, 4.8 PKCE and its downgrade. S256 is required unless a
// confidential client is registered without it. A verifier without a challenge is refused. Also
// grants.FuzzPKCE, clientcfg.TestNeedsPKCE.
func TestPitfall04_PKCE(t *testing.T) {
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
			w.wantRefused(oautherr.InvalidGrant, id, req)
		}
		w.mustToken(id, code)
	}
	t.Run("downgrade", func(t *testing.T) {
		w := newWorld(t)
		bare := func(r *grants.AuthorizeRequest) { r.CodeChallenge, r.CodeChallengeMethod = "", "" }
		code := w.redemption("exempt", w.code("exempt", bare))
		w.wantRefused(oautherr.InvalidGrant, "exempt", code)
		code.CodeVerifier = ""
		w.mustToken("exempt", code)

		code = w.redemption("exempt", w.code("exempt"))
		code.CodeVerifier = ""
		w.wantRefused(oautherr.InvalidGrant, "exempt", code)
	})
}

func TestPitfall05_SecretsAreComparedAsDigests(t *testing.T) {
	w := newWorld(t)
	w.clients["empty"] = &clientcfg.Client{ID: "empty", Grants: clientcfg.Grants()} // Validate would refuse it
	for _, presented := range []string{"", "anything"} {
		_, err := w.service.Token(t.Context(), grants.TokenRequest{
			Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "empty", Secret: presented}, GrantType: "client_credentials",
		})
		wantCode(t, oautherr.InvalidClient, err)
	}
}

// Attack (rfc9700): 2.5 client authentication. Secrets have 256 random bits. **Lacking**:
// `private_key_jwt` and mTLS; assertions are refused. Also
// grants.TestPitfall05_SecretsAreComparedAsDigests, httpapi.TestBadCredentials.
func TestPitfall06_256RandomBits(t *testing.T) {
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
}

// unhashable is an error that cannot be a map key, as some drivers return.
type unhashable []string

func (u unhashable) Error() string { return strings.Join(u, ", ") }

func TestPitfall08_StoreErrorsNeverPanic(t *testing.T) {
	down := unhashable{"connection refused by 10.0.0.7"}
	eachStoreFailure(t, down)
}

func TestPitfall13_NothingIsStoredInClear(t *testing.T) {
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
}
