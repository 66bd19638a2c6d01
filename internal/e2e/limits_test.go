package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// limited is a configuration with the same limit for users and clients. With a window of an hour no
// test sees a window end; with one of seconds it can wait for that.
func limited(requests int, window, rest string) string {
	limit := fmt.Sprintf("[ { name: few, requests: %d, window: %s } ]", requests, window)
	return "trusted_proxies: [ 127.0.0.1/32 ]\nrate_limit:\n  default:\n    user: " + limit + "\n    client: " + limit + "\n" + rest
}

// patience is more requests than any limit here admits.
const patience = 50

// exhaust asks until it is refused for asking too often.
func exhaust(tb testing.TB, ask func() error) *oauth2.RetrieveError {
	tb.Helper()
	for range patience {
		if err := ask(); err != nil {
			requireRefused(tb, err, http.StatusTooManyRequests, "temporarily_unavailable")
			var refused *oauth2.RetrieveError
			errors.As(err, &refused)
			return refused
		}
	}
	tb.Fatalf("%d requests, and never limited", patience)
	return nil
}

func TestAnswerToTooManyRequests(t *testing.T) {
	s := start(t, limited(3, "1h", ""))
	ctx := with(t)
	refused := exhaust(t, func() error { _, err := s.credentials("shop").Token(ctx); return err })
	h := refused.Response.Header
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store",
		"WWW-Authenticate": "", // it would hide the error from openid-client
	} {
		check.Equal(t, name, h.Get(name), want)
	}
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	check.OK(t, err)
	if text := fmt.Sprintf("retry after %d second", seconds); seconds <= 0 || !strings.Contains(refused.ErrorDescription, text) {
		t.Fatalf("Retry-After is %d, and the description %q", seconds, refused.ErrorDescription)
	}
	check.Equal(t, "error_uri", refused.ErrorURI, s.Issuer+"/docs/rate-limits")
	page := s.get(strings.TrimPrefix(refused.ErrorURI, s.Issuer))
	page.requireStatus(t, http.StatusOK)
	if !strings.Contains(page.body, "Retry-After") {
		t.Fatalf("the page that the answer names does not explain Retry-After:\n%s", page.body)
	}
	left, wait := rateLimit(t, h)
	check.Equal(t, "requests left", left, 0)
	check.Equal(t, "seconds in RateLimit", wait, seconds)
}

var (
	policyField = regexp.MustCompile(`^"[a-z0-9_.-]+";q=(\d+);w=(\d+)$`)
	limitField  = regexp.MustCompile(`^"[a-z0-9_.-]+";r=(\d+);t=(\d+)$`)
)

// rateLimit reads RateLimit (draft-ietf-httpapi-ratelimit-headers).
func rateLimit(tb testing.TB, h http.Header) (left, wait int) {
	tb.Helper()
	found := limitField.FindStringSubmatch(h.Get("RateLimit"))
	if found == nil || !policyField.MatchString(h.Get("RateLimit-Policy")) {
		tb.Fatalf("RateLimit is %q and RateLimit-Policy %q", h.Get("RateLimit"), h.Get("RateLimit-Policy"))
	}
	left, err := strconv.Atoi(found[1])
	check.OK(tb, err)
	wait, err = strconv.Atoi(found[2])
	check.OK(tb, err)
	return left, wait
}

func TestRateLimitFieldsOnSuccess(t *testing.T) {
	s := start(t, limited(4, "1h", ""))
	for want := 3; want >= 0; want-- {
		r := s.post("/token", "shop", url.Values{"grant_type": {"client_credentials"}})
		r.requireStatus(t, http.StatusOK)
		left, _ := rateLimit(t, r.header)
		check.Equal(t, "requests left", left, want)
		if policy := r.header.Get("RateLimit-Policy"); !strings.Contains(policy, ";q=4;w=3600") {
			t.Fatalf("RateLimit-Policy is %s, want 4 per hour", policy)
		}
	}
	r := s.post("/token", "shop", url.Values{"grant_type": {"client_credentials"}})
	requireOAuthError(t, r, http.StatusTooManyRequests, "temporarily_unavailable")
	o := r.object(t)
	check.Equal(t, "type", o["type"], any("https://iana.org/assignments/http-problem-types#quota-exceeded"))
	name, _, _ := strings.Cut(r.header.Get("RateLimit"), ";")
	check.Equal(t, "limits that deny", fmt.Sprintf("%q", o["violated-policies"]), "["+name+"]")
}

// A client that is denied waits, and then succeeds with the same code, refresh token or password.
func TestDeniedGrantsAreNotBurnt(t *testing.T) {
	t.Parallel() // it mostly waits
	s := start(t, limited(2, "2s", ""))
	ctx := with(t)
	c := s.config("web")

	t.Run("code", func(t *testing.T) {
		b := newBrowser(t)
		var code, verifier string
		refused := exhaust(t, func() error {
			code, verifier = s.code(b, c)
			_, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
			return err
		})
		if refused.Response.Header.Get("Retry-After") == "" {
			t.Fatal("no Retry-After")
		}
		token, err := patiently(ctx, func() (*oauth2.Token, error) {
			return c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
		})
		check.OK(t, err)
		check.Equal(t, "sub", verify(t, s, token.AccessToken).Subject, user)
	})
	t.Run("refresh token", func(t *testing.T) {
		code, verifier := s.code(newBrowser(t), c)
		token, err := patiently(ctx, func() (*oauth2.Token, error) {
			return c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
		})
		check.OK(t, err)
		_ = exhaust(t, func() error {
			next, err := refresh(ctx, c, token.RefreshToken)
			if err == nil {
				token = next
			}
			return err
		})
		next, err := patiently(ctx, func() (*oauth2.Token, error) { return refresh(ctx, c, token.RefreshToken) })
		check.OK(t, err)
		if next.RefreshToken == token.RefreshToken {
			t.Fatal("the refresh token was not rotated")
		}
	})
	t.Run("password", func(t *testing.T) {
		legacy := s.config("legacy")
		_ = exhaust(t, func() error { _, err := legacy.PasswordCredentialsToken(ctx, user, password); return err })
		_, err := patiently(ctx, func() (*oauth2.Token, error) {
			return legacy.PasswordCredentialsToken(ctx, user, password)
		})
		check.OK(t, err)
	})
}

// After a wait of Retry-After the first attempt succeeds.
func TestRetryAfterIsEnough(t *testing.T) {
	t.Parallel() // it mostly waits
	s := start(t, limited(2, "1s", ""))
	ctx := with(t)
	for range 3 {
		_ = exhaust(t, func() error { _, err := s.credentials("shop").Token(ctx); return err })
		attempts := 0
		_, err := patiently(ctx, func() (*oauth2.Token, error) {
			attempts++
			return s.credentials("shop").Token(ctx)
		})
		check.OK(t, err)
		if attempts > 2 {
			t.Fatalf("%d attempts: refused again after the wait", attempts)
		}
	}
}

func TestConcurrentRequestsPassExactly(t *testing.T) {
	const limit = 10
	s := start(t, limited(limit, "1h", ""))
	ctx := with(t)
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if _, err := s.credentials("shop").Token(ctx); err == nil {
				passed.Add(1)
			} else {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	check.Equal(t, "requests passed", passed.Load(), limit)
	check.Equal(t, "requests refused", refused.Load(), 64-limit)
}

// from sends the request as if it came from that address, through a proxy
// that the server trusts.
func (s *server) from(address, path, clientID, secret string, form url.Values) reply {
	s.tb.Helper()
	h := basic(clientID, secret)
	h.Set("X-Forwarded-For", address)
	return rawRequest{body: form.Encode(), header: h}.send(s.tb, newHTTPClient(s.tb), s.Issuer+path)
}

// Requests with a wrong secret use nothing of the client's quota, and do not lock it out.
func TestWrongSecretSpendsNothing(t *testing.T) {
	const limit = 3
	s := start(t, limited(limit, "1h", ""))
	form := url.Values{"grant_type": {"client_credentials"}}
	const stranger, owner = "192.0.2.1", "198.51.100.7"
	seen := map[int]int{}
	for range patience {
		seen[s.from(stranger, "/token", "shop", "wrong", form).status]++
	}
	if seen[401] == 0 || seen[401]+seen[429] != patience {
		t.Fatalf("statuses of %d wrong secrets: %v, want 401 and then 429", patience, seen)
	}
	s.from("192.0.2.2", "/token", "ghost", "wrong", form).requireStatus(t, 401) // another address has limits of its own
	for want := limit - 1; want >= 0; want-- {
		r := s.from(owner, "/token", "shop", secrets["shop"], form)
		r.requireStatus(t, 200)
		left, _ := rateLimit(t, r.header)
		check.Equal(t, "requests left", left, want)
	}
	s.from(owner, "/token", "shop", secrets["shop"], form).requireStatus(t, 429)
}

// Each user of a client has a quota of their own.
func TestUsersAreLimitedApart(t *testing.T) {
	s := start(t, limited(2, "1h", ""))
	ctx := with(t)
	c := s.config("legacy")
	_ = exhaust(t, func() error { _, err := c.PasswordCredentialsToken(ctx, user, password); return err })
	_, err := c.PasswordCredentialsToken(ctx, secondUser, password)
	check.OK(t, err)
	web := s.config("web")
	code, verifier := s.code(newBrowser(t), web)
	_, err = web.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	check.OK(t, err, "the same user with another client")
}

func TestModes(t *testing.T) {
	cases := map[string]struct {
		rest    string
		refused int // of six, with a limit of two
	}{
		"trusted client": {"  clients: { shop: { trusted: true } }\n", 0},
		"off":            {"  mode: \"off\"\n", 0},
		"enforce one, others in dry run": {
			"  mode: dry_run\n  clients: { shop: { mode: enforce } }\n", 4,
		},
		"canary of none":               {"  canary_percent: 0\n", 0},
		"dry run of this one instance": {"  instance_mode: dry_run\n", 0},
		"limits of its own": {
			"  clients: { shop: { client: [ { name: own, requests: 1, window: 1h } ] } }\n", 5,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := start(t, limited(2, "1h", tc.rest))
			refused := 0
			for range 6 {
				r := s.post("/token", "shop", url.Values{"grant_type": {"client_credentials"}})
				if r.status == http.StatusTooManyRequests {
					refused++
					continue
				}
				r.requireStatus(t, http.StatusOK)
			}
			check.Equal(t, "requests refused", refused, tc.refused)
		})
	}
}

// Several limits: all must pass, and the refused one spends nothing of the others.
func TestSeveralLimits(t *testing.T) {
	t.Parallel() // it mostly waits
	s := start(t, limited(100, "1h", `  clients:
    shop: { client: [ { name: long, requests: 5, window: 1h }, { name: short, requests: 2, window: 1s } ] }
`))
	ctx := with(t)
	ask := func() (*oauth2.Token, error) { return s.credentials("shop").Token(ctx) }
	passed := 0
	for passed < 5 {
		_, err := patiently(ctx, ask)
		check.OK(t, err)
		passed++
	}
	refused := exhaust(t, func() error { _, err := ask(); return err })
	seconds, err := strconv.Atoi(refused.Response.Header.Get("Retry-After"))
	check.OK(t, err)
	rest := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)) // of the frame: the estimate falls when the next one begins
	if seconds <= 10 && seconds < int(rest.Seconds()) {
		t.Fatalf("Retry-After is %d s, want what the limit per hour says", seconds)
	}
}

// With --wait the token command waits for Retry-After and retries.
func TestTokenCommandWaits(t *testing.T) {
	t.Parallel() // it mostly waits
	s := start(t, limited(1, "2s", ""))
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	args := []string{
		"token", "--issuer", s.Issuer, "--grant", "client_credentials", "--client-id", "shop",
		"--client-secret", secrets["shop"], "--no-cache",
	}
	var err error
	for range patience {
		if _, err = command(ctx, "", args...); err != nil {
			break
		}
	}
	check.ErrorSays(t, err, "or give --wait")
	out, err := command(ctx, "", append(args, "--wait", "-o", "json")...)
	check.OK(t, err)
	if !strings.Contains(string(out), `"claims_verified": true`) {
		t.Fatalf("the claims are not verified: %s", out)
	}
}
