package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

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
