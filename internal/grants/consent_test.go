package grants_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// asked returns the prompt of the client.
func (w *world) asked(id string) *grants.Prompt {
	w.tb.Helper()
	prompt, err := w.service.Authorize(w.tb.Context(), w.authorizeRequest(id))
	check.OK(w.tb, err)
	return prompt
}

// TestConsentPageGivesOneCode answers one page many times, sequentially and concurrently.
func TestConsentPageGivesOneCode(t *testing.T) {
	w := newWorld(t, tenCodes)
	session, page := w.session(), consentAt(w.clock.Now(), "the request")
	prompt := w.asked("shop")
	codes := map[string]int{}
	for range 5 {
		code, err := w.service.Approve(t.Context(), prompt, session, page)
		check.OK(t, err)
		codes[code]++
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			code, err := w.service.Approve(t.Context(), prompt, session, page)
			mu.Lock()
			defer mu.Unlock()
			var limited *oautherr.LimitedError
			switch {
			case err == nil:
				codes[code]++
			case !errors.As(err, &limited):
				t.Error(err)
			}
		})
	}
	all.Wait()
	check.Equal(t, "codes", len(codes), 1)
	for code, times := range codes {
		if times < 10 || times > 100 { // each answer counts as one until the code is stored
			t.Errorf("%d of 205 answers got the code", times)
		}
		w.mustToken("shop", w.redemption("shop", code))
	}
}

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
			session, page, prompt := w.session(), consentAt(w.clock.Now(), "the request"), w.asked("shop")
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
			_, err := w.service.Approve(t.Context(), w.asked("shop"), w.session(), tt.consent)
			check.ErrorIs(t, err, grants.ErrConsentPage)
		})
	}
	// The unused bits of the last character must not allow four spellings of one page.
	good := consentAt(now, "the request")
	same := 0
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		other := good
		other.Page = good.Page[:len(good.Page)-1] + string(last)
		if other.Genuine() {
			same++
		}
	}
	check.Equal(t, "genuine writings of one page", same, 1)
}

// tenCodes sets a limit low enough for tests.
func tenCodes(o *grants.Options) { o.CodesPerSession = 10 }

// TestCodesOfASessionAreLimited opens a new page for each code.
func TestCodesOfASessionAreLimited(t *testing.T) {
	w := newWorld(t, tenCodes)
	session, prompt := w.session(), w.asked("shop")
	for range 10 {
		_, err := w.approve(prompt, session)
		check.OK(t, err)
	}
	_, err := w.approve(prompt, session)
	limited := check.As[*oautherr.LimitedError](t, err)
	if wait := limited.RetryAfter; wait <= 0 || wait > 4*time.Minute {
		t.Errorf("retry after %v", wait)
	}
	_, err = w.approve(prompt, w.session())
	check.OK(t, err, "another session of the same user")
	w.clock.Advance(limited.RetryAfter)
	_, err = w.approve(prompt, session)
	check.OK(t, err, "after the wait")
}

// TestAnsweredPagesAreNotCodes: answering a page again does not count as another code and returns
// the same code, even if the session is at its limit of codes. The number of answers is bounded.
func TestAnsweredPagesAreNotCodes(t *testing.T) {
	w := newWorld(t, tenCodes)
	session, prompt, page := w.session(), w.asked("shop"), consentAt(w.clock.Now(), "the request")
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
