package grants_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// TestConsentPageIsUsedUp: once its code is redeemed or has expired, a page gives no code, not even
// a different one.
func TestConsentPageIsUsedUp(t *testing.T) {
	for name, use := range map[string]func(w *world, code string){
		"redeemed": func(w *world, code string) { w.mustToken("shop", w.redemption("shop", code)) },
		"expired":  func(w *world, _ string) { w.clock.Advance(2 * time.Minute) },
		"swept": func(w *world, _ string) {
			w.clock.Advance(10*time.Minute - 1)
			_, err := w.store.Sweep(t.Context(), w.clock.Now())
			check.OK(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			session, page, prompt := w.session(), consentAt(w.clock.Now(), "the request"), w.prompted("shop")
			code, err := w.service.Approve(t.Context(), prompt, session, page)
			check.OK(t, err)
			use(w, code)
			_, err = w.service.Approve(t.Context(), prompt, session, page)
			check.ErrorIs(t, err, grants.ErrConsentUsed)
			w.clock.Advance(time.Minute)
			_, err = w.service.Approve(t.Context(), prompt, session, page)
			if err == nil {
				t.Error("the page gave another code")
			}
		})
	}
}

func TestConsentPagesThatDoNotCount(t *testing.T) {
	w := newWorld(t)
	now := w.clock.Now()
	page := func(edit func(*grants.Consent)) grants.Consent {
		c := consentAt(now, "the request")
		edit(&c)
		return c
	}
	for name, tt := range map[string]struct {
		consent grants.Consent
		genuine bool
	}{
		"nothing":               {grants.Consent{}, false},
		"no page":               {page(func(c *grants.Consent) { c.Page = "" }), false},
		"no cookie":             {grants.Consent{Request: "r", Page: grants.NewConsentPage(now, "", "r")}, false},
		"another session":       {page(func(c *grants.Consent) { c.Cookie += "x" }), false},
		"another request":       {page(func(c *grants.Consent) { c.Request += "x" }), false},
		"not encoded":           {page(func(c *grants.Consent) { c.Page = strings.Repeat("=", len(c.Page)) }), false},
		"written otherwise":     {page(func(c *grants.Consent) { c.Page = c.Page[:9] + "\n" + c.Page[9:] }), false},
		"longer":                {page(func(c *grants.Consent) { c.Page += "AAAA" }), false},
		"another name":          {page(func(c *grants.Consent) { c.Page = "AAAAAAAA" + c.Page[8:] }), false},
		"ten minutes old":       {consentAt(now.Add(-10*time.Minute), "the request"), true},
		"from the far future":   {consentAt(now.Add(10*time.Minute), "the request"), true},
		"from before the epoch": {consentAt(time.Unix(-1, 0), "the request"), true},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "genuine", tt.consent.Genuine(), tt.genuine)
			_, err := w.service.Approve(t.Context(), w.prompted("shop"), w.session(), tt.consent)
			check.ErrorIs(t, err, grants.ErrConsentPage)
		})
	}
}

// tenCodes sets a limit low enough for tests.
func tenCodes(o *grants.Options) { o.CodesPerSession = 10 }

// TestAnsweredPagesAreNotCodes: answering a page again does not count as another code and returns
// the same code, even if the session is at its limit of codes. The number of answers is bounded.
func TestAnsweredPagesAreNotCodes(t *testing.T) {
	w := newWorld(t, tenCodes)
	session, prompt, page := w.session(), w.prompted("shop"), consentAt(w.clock.Now(), "the request")
	answer := func() (string, error) { return w.service.Approve(t.Context(), prompt, session, page) }
	first, err := answer()
	check.OK(t, err)
	for range 20 {
		again, err := answer()
		check.OK(t, err)
		check.Equal(t, "code", again, first)
	}
	for range 9 {
		_, err = w.approve(prompt, session)
		check.OK(t, err)
	}
	_, err = w.approve(prompt, session)
	_ = check.As[*oautherr.LimitedError](t, err)
	w.mustToken("shop", w.redemption("shop", first))
	for range 100 - 31 {
		_, err = answer()
		check.ErrorIs(t, err, grants.ErrConsentUsed)
	}
	_, err = answer()
	_ = check.As[*oautherr.LimitedError](t, err)
}

// FuzzConsentPage: no other spelling of a page is genuine, in any session or for any request.
func FuzzConsentPage(f *testing.F) {
	const cookie, request = "the cookie", "the request"
	const page = "AAABi8_laABVD45-OVQYDfGOe_qtgRunr9OHnfKrz282NHWdtM7WtFdgUmDL6EDp-yty6BvRho4"
	if known := (&grants.Consent{Cookie: cookie, Request: request, Page: page}); !known.Genuine() {
		f.Fatal("a page of before is not genuine")
	}
	f.Add(page, cookie, request)
	f.Add(page+"\n", cookie, request)
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" { // the last character has unused bits
		f.Add(page[:len(page)-1]+string(last), cookie, request)
	}
	f.Add("", "", "")
	f.Add(strings.Repeat("A", len(page)), "", request)
	f.Fuzz(func(t *testing.T, sent, sentCookie, sentRequest string) {
		c := grants.Consent{Cookie: sentCookie, Request: sentRequest, Page: sent}
		sentCookie = strings.TrimRight(sentCookie, "\x00") // HMAC pads its key with zeros
		if c.Genuine() && (sent != page || sentCookie != cookie || sentRequest != request) {
			t.Errorf("%+v is genuine", c)
		}
	})
}

// TestWithdrawEndsWhatCameOfIt: withdrawing a consent ends everything issued under it, and nothing
// else.
//
// Attack (consent): Tokens survive a withdrawn consent. Withdrawing ends all codes and tokens
// under it. A consent that cannot be stored gives no code. Also
// grants.TestNoCodeWithoutAgreement, e2e.TestConsentOnTwoInstances.
func TestWithdrawEndsWhatCameOfIt(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	mine, later := w.tokens("shop"), w.tokens("shop")
	later = w.mustToken("shop", refreshing(later.RefreshToken))
	other := w.tokens("caller")
	code := w.code("shop")
	bob := session
	bob.Username = "bob"
	stored, err := w.store.User(t.Context(), "bob")
	check.OK(t, err)
	bob.UserStamp = stored.Stamp
	bobsCode, err := w.approve(w.prompted("shop"), bob)
	check.OK(t, err)

	check.OK(t, w.service.Withdraw(t.Context(), "alice", "shop"))
	for _, token := range []string{mine.AccessToken, later.AccessToken, mine.RefreshToken, later.RefreshToken} {
		w.wantActive(false, token)
	}
	for _, req := range []grants.TokenRequest{refreshing(mine.RefreshToken), refreshing(later.RefreshToken), w.redemption("shop", code)} {
		w.wantRefused(oautherr.InvalidGrant, "shop", req)
	}
	w.wantNext(consentPage, &session, "shop")
	check.ErrorIs(t, w.service.Withdraw(t.Context(), "alice", "shop"), store.ErrNotFound)

	w.wantActive(true, other.AccessToken)
	w.mustToken("caller", refreshing(other.RefreshToken))
	w.mustToken("shop", w.redemption("shop", bobsCode))
	again := w.tokens("shop") // agrees again
	w.wantActive(true, again.AccessToken)
	w.mustToken("shop", refreshing(again.RefreshToken))
	w.wantNext(aCode, &session, "shop")
}

// TestWithdrawOutlastsTheTokens: the revocation is kept until the last token under the consent has
// expired.
func TestWithdrawOutlastsTheTokens(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.RefreshTokenLifetime = 90 * 24 * time.Hour })
	token := w.tokens("shop").RefreshToken
	check.OK(t, w.service.Withdraw(t.Context(), "alice", "shop"))
	w.clock.Advance(90*24*time.Hour - time.Second)
	_, err := w.store.Sweep(t.Context(), w.clock.Now())
	check.OK(t, err)
	w.wantRefused(oautherr.InvalidGrant, "shop", refreshing(token))
}

// TestWithdrawThatStopsHalfway: an interrupted withdrawal leaves a void agreement, which can be
// withdrawn again.
func TestWithdrawThatStopsHalfway(t *testing.T) {
	w, f := failingWorld(t)
	session, token := w.session(), w.tokens("shop")
	f.Operation, f.Err = "Delete agreements", errDown
	wantCode(t, oautherr.TemporarilyUnavailable, w.service.Withdraw(t.Context(), "alice", "shop"))
	w.wantActive(false, token.AccessToken)
	w.wantNext(consentPage, &session, "shop")
	f.Operation = ""
	token = w.tokens("shop")
	w.wantActive(true, token.AccessToken)
	w.wantNext(aCode, &session, "shop")
}

// TestConsentIsVoid: a consent is void if it was given to another client, by another user with the
// same name, before a revocation, or too long ago.
//
// Attack (consent): A remembered consent after a change. Consents end with the registration, a
// revocation, a withdrawal, or a year without use.
func TestConsentIsVoid(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"client registered anew": func(w *world) { w.replaceClient("shop") },
		"client revoked":         func(w *world) { w.revokeClient("shop") },
		"user revoked":           (*world).revokeUser,
		"user deleted and created": func(w *world) {
			stored, err := w.store.User(t.Context(), "alice")
			check.OK(t, err)
			check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil))
			stored.CreatedAt, stored.Stamp = w.clock.Now(), secret.NewStamp()
			check.OK(t, w.store.CreateUser(t.Context(), stored, clientcfg.Event{}))
		},
		"not used for a year": func(w *world) { w.clock.Advance(365 * 24 * time.Hour) },
		"withdrawn":           func(w *world) { check.OK(t, w.service.Withdraw(t.Context(), "alice", "shop")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			session := w.session()
			w.allow(session, "shop")
			w.wantNext(aCode, &session, "shop")
			change(w)
			session = w.session()
			w.wantNext(consentPage, &session, "shop")
			w.wantNext("consent_required", &session, "shop", prompt("none"))
			allowed, err := w.service.Allowed(t.Context(), "alice")
			check.OK(t, err)
			check.Equal(t, "allowed", len(allowed), 0)
			w.clock.Advance(time.Minute) // after the revocation
			session = w.session()
			w.allow(session, "shop")
			w.wantNext(aCode, &session, "shop")
		})
	}
}

// TestConsentInUseIsKept: each use restarts the year.
func TestConsentInUseIsKept(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	w.allow(session, "shop")
	for range 4 {
		w.clock.Advance(300 * 24 * time.Hour)
		_, err := w.store.Sweep(t.Context(), w.clock.Now())
		check.OK(t, err)
		session = w.session()
		w.wantNext(aCode, &session, "shop")
	}
}

// TestAllowed lists a user's consents, without scopes that the client has lost.
func TestAllowed(t *testing.T) {
	w := newWorld(t)
	session := w.session()
	w.allow(session, "shop", scope("write read"))
	w.allow(session, "app")
	w.allow(session, "caller", scope("admin"))
	delete(w.clients, "caller")
	w.changeClient("shop", func(c *clientcfg.Client) { c.Scopes = []string{"read", "admin"} })
	w.clock.Advance(time.Hour)
	session = w.session()
	w.allow(session, "shop", scope("admin"))
	allowed, err := w.service.Allowed(t.Context(), "alice")
	check.OK(t, err)
	got := map[string][]string{}
	for _, a := range allowed {
		got[a.Client.ID] = a.Scopes
	}
	check.Equal(t, "allowed", got, map[string][]string{"app": {"read", "write"}, "shop": {"read", "admin"}})
	check.Equal(t, "agreed at", allowed[1].AgreedAt, w.clock.Now())
}

// TestConsentsAtOnce: concurrent answers to several pages of one user and client result in one
// agreement with all their scopes.
func TestConsentsAtOnce(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for _, s := range []string{"read", "write", "admin"} {
		session, p := w.session(), w.prompted("shop", scope(s))
		page := consentAt(w.clock.Now(), s)
		all.Go(func() {
			if _, err := w.service.Approve(t.Context(), p, session, page); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	session := w.session()
	w.wantNext(aCode, &session, "shop", scope("read write admin"))
}

// TestNoCodeWithoutAgreement: if the consent cannot be stored, no code is issued, because it could
// not be withdrawn.
func TestNoCodeWithoutAgreement(t *testing.T) {
	w, f := failingWorld(t)
	f.Operation, f.Err = "Put agreements", errDown
	_, err := w.approve(w.prompted("shop"), w.session())
	wantCode(t, oautherr.TemporarilyUnavailable, err)
	f.Err = store.ErrConflict // other writers win again and again
	_, err = w.approve(w.prompted("shop"), w.session())
	wantCode(t, oautherr.TemporarilyUnavailable, err)
	f.Operation = ""
	w.tokens("shop")
}
