package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
)

// TestBusy checks the answers with a retry time: to clients as JSON, and to people as the form again.
// A request that was refused under overload gets the same answer wherever that happened.
func TestBusy(t *testing.T) {
	shed := &overload.ShedError{RetryAfter: 4 * time.Second, Short: overload.Store}
	const overloaded, reduced = "The server is overloaded; retry after 4 seconds.", `,"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"`
	for name, tc := range map[string]struct {
		err              error
		retry, says, end string
	}{
		"bare":      {shed, "4", overloaded, reduced},
		"wrapped":   {fmt.Errorf("read user: %w", shed), "4", overloaded, reduced},
		"of grants": {grants.Overloaded(fmt.Errorf("read user: %w", shed)), "4", overloaded, reduced},
		"a long queue": {&grants.Error{
			Code: oautherr.TemporarilyUnavailable, Description: "Too many people are signing in; retry after 3 seconds.",
			Cause: errors.New("the queue is long"), RetryAfter: 3 * time.Second,
		}, "3", "Too many people are signing in; retry after 3 seconds.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.failToken, f.failSignIn = tc.err, tc.err
			var log bytes.Buffer
			s := newServer(t, f, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			res := request{path: "/token", body: form("grant_type", "password", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
			wantStatus(t, res, http.StatusServiceUnavailable)
			wantHeader(t, res.Header, "Retry-After", tc.retry)
			check.Equal(t, "body", res.Body, `{"error":"temporarily_unavailable","error_description":"`+tc.says+`"`+tc.end+"}")
			for _, request := range []string{authorization().Encode(), ""} {
				page := post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"x"}, "authorization": {request}})
				wantStatus(t, page, http.StatusServiceUnavailable)
				wantHeader(t, page.Header, "Retry-After", tc.retry)
				wantHeader(t, page.Header, "Content-Type", "text/html; charset=utf-8")
				holds(t, page.Body, `value="alice"`)
				holds(t, page.Body, tc.says)
			}
			lacks(t, log.String(), "level=ERROR") // no operator can mend it
		})
	}
}
