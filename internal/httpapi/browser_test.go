package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"golang.org/x/oauth2"

	"oauth-server/internal/check"
	"oauth-server/internal/check/browser"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
)

const phoneWidth, phoneHeight = 390, 844

func asPhone(t *testing.T, ctx context.Context) {
	t.Helper()
	check.OK(t, chromedp.Do(ctx, chromedp.EmulateViewport(phoneWidth, phoneHeight, chromedp.EmulateMobile, chromedp.EmulateTouch)))
}

func withoutScript(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	check.OK(t, err)
}

// callback is the client's page at the redirect URI.
type callback struct {
	*httptest.Server
	got chan url.Values
}

// newCallback answers with a page, or redirects to next if it is not empty.
func newCallback(t *testing.T, next string) callback {
	t.Helper()
	c := callback{got: make(chan url.Values, 1)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cb" {
			c.got <- r.URL.Query()
			if next != "" {
				http.Redirect(w, r, next, http.StatusFound)
				return
			}
		}
		_, _ = fmt.Fprint(w, `<p id="welcome">Welcome back</p>`)
	}))
	t.Cleanup(c.Close)
	return c
}

func appClient(redirectURIs ...string) *clientcfg.Client {
	return &clientcfg.Client{
		ID: "app", Name: "Photo Book", Public: true, RedirectURIs: redirectURIs, Scopes: []string{"photos:read", "photos:write"},
		Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
	}
}

func oauthConfig(issuer, redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: "app", RedirectURL: redirect, Scopes: []string{"photos:read", "photos:write"},
		Endpoint: oauth2.Endpoint{AuthURL: issuer + "/authorize", TokenURL: issuer + "/token", AuthStyle: oauth2.AuthStyleInParams},
	}
}

const (
	usernameField = chromedp.CSS(`input[name="username"]`)
	passwordField = chromedp.CSS(`input[name="password"]`)
	submitButton  = chromedp.CSS(`form button[type="submit"]`)
	allowButton   = chromedp.CSS(`button[value="allow"]`)
	alertBox      = chromedp.CSS(`[role="alert"]`)
	welcome       = chromedp.CSS(`#welcome`)
)

func signIn(username, password string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.Clear(usernameField),
		chromedp.SendKeys(usernameField, username),
		chromedp.SendKeys(passwordField, password),
		chromedp.Click(submitButton),
	)
}

// wantFits checks that a page does not scroll sideways on a phone, and that its buttons and links
// are large enough for a thumb (WCAG 2.2, 2.5.8).
func wantFits(t *testing.T, ctx context.Context) {
	t.Helper()
	box, err := chromedp.Run(ctx, chromedp.Dimensions(chromedp.CSS("html")))
	check.OK(t, err)
	if box.Width > phoneWidth {
		t.Fatalf("the page is %d wide on a screen of %d", box.Width, phoneWidth)
	}
	buttons, err := chromedp.Run(ctx, chromedp.Nodes(chromedp.CSSAll("button, input:not([type=hidden])"), chromedp.AtLeast(1)))
	check.OK(t, err)
	for _, b := range buttons {
		box, err := chromedp.Run(ctx, chromedp.Dimensions(chromedp.NodeIDs{b.NodeID}))
		check.OK(t, err)
		if box.Height < 44 {
			t.Fatalf("a field or button is %d high, want 44", box.Height)
		}
	}
}

// TestBrowserFromAuthorizeToToken follows a person with a phone: a wrong password, the right one,
// consent, and back to the app, which exchanges the code.
func TestBrowserFromAuthorizeToToken(t *testing.T) {
	for name, script := range map[string]bool{"with script": true, "without script": false} {
		t.Run(name, func(t *testing.T) {
			app := newCallback(t, "")
			srv := newWorld(t, testworld.Clients{"app": appClient(app.URL + "/cb?lang=en")})
			config := oauthConfig(srv.URL, app.URL+"/cb?lang=en")
			verifier := oauth2.GenerateVerifier()
			ctx := browser.New(t)
			asPhone(t, ctx)
			if !script {
				withoutScript(t, ctx)
			}

			check.OK(t, chromedp.Do(ctx,
				chromedp.Navigate(config.AuthCodeURL("some-state", oauth2.S256ChallengeOption(verifier))),
				chromedp.WaitVisible(usernameField),
			))
			wantFits(t, ctx)
			check.OK(t, chromedp.Do(ctx, signIn("alice", "wrong"), chromedp.WaitVisible(alertBox)))
			typed, err := chromedp.Run(ctx, chromedp.AttributeValue(usernameField, "value"))
			check.OK(t, err)
			check.Equal(t, "username in the form", typed.Value, "alice")
			check.OK(t, chromedp.Do(ctx, signIn("alice", password), chromedp.WaitVisible(allowButton)))
			wantFits(t, ctx)
			shown, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("main")))
			check.OK(t, err)
			for _, text := range []string{"Photo Book", "alice", "Read photos", "Change photos"} {
				holds(t, shown, text)
			}
			check.OK(t, chromedp.Do(ctx, chromedp.Click(allowButton), chromedp.WaitVisible(welcome)))

			got := <-app.got
			check.Equal(t, "lang", got.Get("lang"), "en")
			check.Equal(t, "state", got.Get("state"), "some-state")
			check.Equal(t, "iss", got.Get("iss"), srv.URL)
			token, err := config.Exchange(t.Context(), got.Get("code"), oauth2.VerifierOption(verifier))
			check.OK(t, err)
			if token.AccessToken == "" || token.RefreshToken == "" {
				t.Fatal("a token is missing in the answer")
			}
		})
	}
}

// TestBrowserFollowsWhereTheClientGoesOn checks that form-action does not stop a client that
// redirects from its callback to another origin.
func TestBrowserFollowsWhereTheClientGoesOn(t *testing.T) {
	last := newCallback(t, "")
	app := newCallback(t, strings.Replace(last.URL, "127.0.0.1", "localhost", 1)+"/done")
	srv := newWorld(t, testworld.Clients{"app": appClient(app.URL + "/cb")})
	ctx := browser.New(t)
	check.OK(t, chromedp.Do(ctx,
		chromedp.Navigate(oauthConfig(srv.URL, app.URL+"/cb").AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))),
		signIn("alice", password), chromedp.WaitVisible(allowButton), chromedp.Click(allowButton), chromedp.WaitVisible(welcome),
	))
	where, err := chromedp.Run(ctx, chromedp.Location())
	check.OK(t, err)
	holds(t, where, "://localhost:")
}

// TestBrowserHandsOverToAnApp checks that form-action does not stop a redirect to an app with its
// own scheme (RFC 8252 7.1).
func TestBrowserHandsOverToAnApp(t *testing.T) {
	const redirect = "com.example.app:/cb"
	srv := newWorld(t, testworld.Clients{"app": appClient(redirect)})
	ctx := browser.New(t)
	check.OK(t, chromedp.Do(ctx,
		chromedp.Navigate(oauthConfig(srv.URL, redirect).AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))),
		signIn("alice", password), chromedp.WaitVisible(allowButton),
	))
	asked, failed := chromedp.Events(ctx, network.RequestWillBeSent), chromedp.Events(ctx, network.LoadingFailed)
	check.OK(t, chromedp.Do(ctx, chromedp.Click(allowButton)))
	for e, err := range asked {
		check.OK(t, err)
		if strings.HasPrefix(e.DocumentURL, redirect+"?code=") {
			break
		}
	}
	// There is no such app on this machine, so Chromium gives up.
	for e, err := range failed {
		check.OK(t, err)
		check.Equal(t, "error of the browser", e.ErrorText, "net::ERR_ABORTED")
		check.Equal(t, "blocked by", e.BlockedReason, "")
		break
	}
}

// TestBrowserRefusesForeignPages checks that another site can neither frame our pages nor send our
// forms.
func TestBrowserRefusesForeignPages(t *testing.T) {
	srv := newWorld(t, testworld.Clients{"app": appClient("https://app.example/cb")})
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/frame" {
			_, _ = fmt.Fprintf(w, `<iframe id="frame" src="%s/sign-in"></iframe>`, srv.URL)
			return
		}
		_, _ = fmt.Fprintf(w, `<form method="post" action="%s%s"><input name="username" value="alice">
			<input name="password" value="%s"><input name="decision" value="allow"><button type="submit">Win a prize</button></form>`,
			srv.URL, r.URL.Path, password)
	}))
	t.Cleanup(evil.Close)
	for name, site := range map[string]string{
		"another port": evil.URL, "another host": strings.Replace(evil.URL, "127.0.0.1", "localhost", 1),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := browser.New(t)
			for _, path := range []string{"/sign-in", "/sign-out", "/consent", "/consents/withdraw"} {
				check.OK(t, chromedp.Do(ctx, chromedp.Navigate(site+path), chromedp.Click(submitButton), chromedp.WaitVisible(alertBox)))
				text, err := chromedp.Run(ctx, chromedp.Text(alertBox))
				check.OK(t, err)
				holds(t, text, "another site")
			}
			failed := chromedp.Events(ctx, network.LoadingFailed)
			check.OK(t, chromedp.Do(ctx, chromedp.Navigate(site+"/frame")))
			for e, err := range failed {
				check.OK(t, err)
				check.Equal(t, "error of the browser", e.ErrorText, "net::ERR_BLOCKED_BY_RESPONSE")
				break
			}
		})
	}
}
