package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter/oautherr"
)

// authorizationWith returns a valid authorization request with additional or changed parameters.
func authorizationWith(pairs ...string) string {
	v := authorization()
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return "/authorize?" + v.Encode()
}

// TestCodeWithoutPage checks that a user who agreed before goes straight back to the client.
func TestCodeWithoutPage(t *testing.T) {
	f := newFake()
	f.next.Code = "a-code"
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	q := wantRedirect(t, get(t, s, authorizationWith(), cookie), appTarget+"&")
	check.Equal(t, "code", q.Get("code"), "a-code")
	check.Equal(t, "state", q.Get("state"), "st&ate")

	res := request{method: "HEAD", path: authorizationWith("prompt", "none"), header: http.Header{"Cookie": {cookie}}}.send(t, s)
	wantStatus(t, res, http.StatusOK) // and no code
}

// TestRefusedWithoutPage checks that the client gets an error (with the issuer of RFC 9207) if it
// allows no page but one is needed.
func TestRefusedWithoutPage(t *testing.T) {
	f := newFake()
	f.failProceed = &grants.RedirectError{RedirectURI: appTarget, State: "st&ate", Err: &grants.Error{
		Code: oautherr.LoginRequired, Description: "The user must sign in.",
	}}
	s := newServer(t, f, nil)
	q := wantRedirect(t, get(t, s, authorizationWith("prompt", "none"), ""), appTarget+"&")
	check.Equal(t, "error", q.Get("error"), "login_required")
	check.Equal(t, "description", q.Get("error_description"), "The user must sign in.")
	check.Equal(t, "state", q.Get("state"), "st&ate")
	check.Equal(t, "asked", f.proceeded.Silent, true)
}

// TestSilentFailures checks that failures of silent requests also go to the client, which waits for
// an answer. Others are shown.
func TestSilentFailures(t *testing.T) {
	for name, fail := range map[string]func(*fake){
		"session":  func(f *fake) { f.failSession = errDisk },
		"decision": func(f *fake) { f.failProceed = errDisk },
		"limit":    func(f *fake) { f.failProceed = &oautherr.LimitedError{RetryAfter: 1e9} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := newServer(t, f, func(o *httpapi.Options) {
				o.LimitedCode = func() oautherr.Code { return "slow_down" } // only for answers with a 429
			})
			cookie := f.signedIn("alice")
			fail(f)
			q := wantRedirect(t, get(t, s, authorizationWith("prompt", "none"), cookie), appTarget+"&")
			check.Equal(t, "error", q.Get("error"), "temporarily_unavailable")
			if res := get(t, s, authorizationWith(), cookie); res.StatusCode < 400 {
				t.Errorf("status %d, want a page about the failure", res.StatusCode)
			}
		})
	}
}

// TestSignInAnswersPromptAndMaxAge checks that a sign-in satisfies prompt=login and max_age, and
// that all other parameters are kept.
func TestSignInAnswersPromptAndMaxAge(t *testing.T) {
	for prompt, left := range map[string]string{
		"login": "", "login consent": "consent", "consent login select_account": "consent select_account", "consent": "consent",
	} {
		s := newServer(t, newFake(), nil)
		page := get(t, s, authorizationWith("prompt", prompt, "max_age", "0", "login_hint", "alice"), "").Body
		holds(t, page, `name="username" value="alice"`)
		res := post(t, s, "/sign-in", "", url.Values{
			"authorization": {hidden(t, page, "authorization")}, "username": {"alice"}, "password": {"pass-alice"},
		})
		wantStatus(t, res, http.StatusSeeOther)
		back, err := url.Parse(res.Header.Get("Location"))
		check.OK(t, err)
		want := authorization()
		want.Set("login_hint", "alice")
		if left != "" {
			want.Set("prompt", left)
		}
		check.Equal(t, "query after "+prompt, back.Query(), want)
	}
}

func TestRepeatedPromptIsRefused(t *testing.T) {
	s := newServer(t, newFake(), nil)
	for _, name := range []string{"prompt", "max_age", "login_hint"} {
		q := wantRedirect(t, get(t, s, authorizationWith()+"&"+name+"=1&"+name+"=1", ""), appTarget+"&")
		check.Equal(t, "error", q.Get("error"), "invalid_request")
	}
}

// TestAnswerThatDoesNotCountGivesNoCode checks that a user who answered a page of another request
// is asked, even if no question is needed otherwise.
func TestAnswerThatDoesNotCountGivesNoCode(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	form := consentPageOf(t, s, cookie)
	form.Set("binding", "x")
	form.Set("decision", "deny")
	f.next.Code = "a-code"
	res := post(t, s, "/consent", cookie, form)
	wantStatus(t, res, http.StatusForbidden)
	holds(t, res.Body, `name="decision" value="allow"`)
}

// TestConsentPageShowsWhatIsNew checks the marks of new scopes if the user allowed the others
// before.
func TestConsentPageShowsWhatIsNew(t *testing.T) {
	f := newFake()
	f.next.Known = []string{"orders:read"}
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	page := get(t, s, authorizationWith("scope", "orders:read orders:write"), cookie).Body
	holds(t, page, "You allowed it some of this before.")
	holds(t, page, `Change orders <strong class="new">new</strong>`)
	lacks(t, page, `Read orders <strong`)
	lacks(t, get(t, s, authorizationWith(), cookie).Body, `class="new"`)
}

func (f *fake) allows(username string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allowed = map[string]*grants.Agreement{username: {ClientID: "shop", Scopes: []string{"orders:read"}}}
}

// TestConsentsPage signs in, reads the list of consents, and withdraws one.
func TestConsentsPage(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	f.allows("alice")
	page := get(t, s, "/consents", "").Body
	check.Equal(t, "then", hidden(t, page, "then"), "consents")
	page = post(t, s, "/sign-in", "", url.Values{"then": {"consents"}, "username": {"alice"}, "password": {"x"}}).Body
	res := post(t, s, "/sign-in", "", url.Values{
		"then": {hidden(t, page, "then")}, "username": {"alice"}, "password": {"pass-alice"},
	})
	wantStatus(t, res, http.StatusSeeOther)
	wantHeader(t, res.Header, "Location", "/consents")

	cookie := "oauth_session=cookie-alice"
	res = get(t, s, "/consents", cookie)
	wantPage(t, res, "'self'")
	for _, text := range []string{"The Shop", "shop", "Read orders", "alice", "Allowed on"} {
		holds(t, res.Body, text)
	}
	answer := url.Values{"client_id": {hidden(t, res.Body, "client_id")}, "binding": {hidden(t, res.Body, "binding")}}
	wantHeader(t, post(t, s, "/consents/withdraw", "", answer).Header, "Location", "/consents")
	res = post(t, s, "/consents/withdraw", cookie, answer)
	wantStatus(t, res, http.StatusOK)
	holds(t, res.Body, "Withdrawn: <strong>shop</strong> can get no new access unless you allow it.")
	holds(t, res.Body, "No application has access.")
	wantStatus(t, post(t, s, "/consents/withdraw", cookie, answer), http.StatusOK) // pressed twice
	lacks(t, get(t, s, "/consents", f.signedIn("bob")).Body, "The Shop")
}

// TestConsentsPageOfTheFirstParty covers a client that needs no consent and can get access again
// after a withdrawal.
func TestConsentsPageOfTheFirstParty(t *testing.T) {
	f := newFake()
	f.client.FirstParty = true
	s := newServer(t, f, nil)
	f.allows("alice")
	cookie := f.signedIn("alice")
	page := get(t, s, "/consents", cookie).Body
	holds(t, page, "It belongs to this service and can get access without asking you. Access given on")
	lacks(t, page, "Allowed on")
	lacks(t, page, "you allowed")
	answer := url.Values{"client_id": {"shop"}, "binding": {hidden(t, page, "binding")}}
	for range 2 { // pressed twice
		page = post(t, s, "/consents/withdraw", cookie, answer).Body
		holds(t, page, "Withdrawn: what <strong>shop</strong> had is revoked. It belongs to this service, so it can get new access without asking you.")
		lacks(t, page, "no new access")
	}
}

// TestWithdrawalsThatDoNotCount covers withdrawals from another session, for another client, or
// from no page.
func TestWithdrawalsThatDoNotCount(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	f.allows("alice")
	cookie := f.signedIn("alice")
	good := grants.FormToken("cookie-alice", "/consents/withdraw", "shop")
	for name, token := range map[string]string{
		"none": "", "of another session": grants.FormToken("cookie-bob", "/consents/withdraw", "shop"),
		"for another client": grants.FormToken("cookie-alice", "/consents/withdraw", "web"),
		"for another action": grants.FormToken("cookie-alice", "/consents", "shop"), "longer": good + "A",
	} {
		res := post(t, s, "/consents/withdraw", cookie, url.Values{"client_id": {"shop"}, "binding": {token}})
		if res.StatusCode != http.StatusForbidden || f.allowed["alice"] == nil {
			t.Errorf("%s: status %d, left %v", name, res.StatusCode, f.allowed["alice"])
		}
	}
	wantStatus(t, post(t, s, "/consents/withdraw", cookie, url.Values{"client_id": {"shop"}, "binding": {good}}), http.StatusOK)
	check.Equal(t, "left", f.allowed["alice"] == nil, true)
}

// TestConsentPagesDiffer checks that each page shown is different, and that each can be answered.
func TestConsentPagesDiffer(t *testing.T) {
	f := newFake()
	s := newServer(t, f, nil)
	cookie := f.signedIn("alice")
	first, second := consentPageOf(t, s, cookie), consentPageOf(t, s, cookie)
	if first.Get("binding") == second.Get("binding") {
		t.Error("two showings of the page are the same")
	}
	wantRedirect(t, post(t, s, "/consent", cookie, second), appTarget)
	wantRedirect(t, post(t, s, "/consent", cookie, first), appTarget)
}

// TestAnswersThatComeTooLate checks that late answers are shown to the user and never sent to the
// client, which may have the code of the page.
func TestAnswersThatComeTooLate(t *testing.T) {
	for name, tt := range map[string]struct {
		err      error
		status   int
		retry    string
		contents []string
	}{
		"old": {
			fmt.Errorf("approve: %w", grants.ErrConsentPage), http.StatusForbidden, "",
			[]string{"has expired", `name="decision" value="allow"`},
		},
		"used": {
			fmt.Errorf("approve: %w", grants.ErrConsentUsed), http.StatusBadRequest, "",
			[]string{"<h1>Your decision was not recorded</h1>", "was already answered", "Go back to the application"},
		},
		"too many": {
			&oautherr.LimitedError{RetryAfter: 250e9}, http.StatusTooManyRequests, "250",
			[]string{"<h1>Your decision was not recorded</h1>", "try again in about 5 minutes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := newServer(t, f, nil)
			cookie := f.signedIn("alice")
			form := consentPageOf(t, s, cookie)
			f.failApprove = tt.err
			res := post(t, s, "/consent", cookie, form)
			wantStatus(t, res, tt.status)
			wantHeader(t, res.Header, "Location", "")
			check.Equal(t, "Retry-After", res.Header.Get("Retry-After"), tt.retry)
			for _, text := range tt.contents {
				holds(t, res.Body, text)
			}
		})
	}
}
