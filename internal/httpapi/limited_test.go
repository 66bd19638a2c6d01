package httpapi_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter/oautherr"
)

func limited() *oautherr.LimitedError {
	return &oautherr.LimitedError{
		RetryAfter:    37 * time.Second,
		RateLimit:     oautherr.RateLimit{Policy: `"client-user";q=10;w=60`, Limit: `"client-user";r=0;t=37`},
		QuotaExceeded: true, Violated: []string{"client-user"},
	}
}

func TestLimitedToken(t *testing.T) {
	f := newFake()
	s := newServer(t, f, func(o *httpapi.Options) { o.Issuer = "http://id.example/tenant" })
	r := request{path: "/token", body: form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)}

	f.failToken = limited()
	res := r.send(t, s)
	wantOAuthError(t, res, http.StatusTooManyRequests, oautherr.TemporarilyUnavailable)
	check.Equal(t, "Retry-After", res.Header["Retry-After"], []string{"37"})
	asWritten := map[string][]string(res.Header) // with the capitals of the draft
	check.Equal(t, "RateLimit-Policy", asWritten["RateLimit-Policy"], []string{`"client-user";q=10;w=60`})
	check.Equal(t, "RateLimit", asWritten["RateLimit"], []string{`"client-user";r=0;t=37`})
	holds(t, res.Body, `"error_uri":"http://id.example/tenant/docs/rate-limits"`)
	page := request{method: "GET", path: "/tenant/docs/rate-limits"}.send(t, s)
	wantStatus(t, page, http.StatusOK)
	wantPage(t, page, "'self'")
	holds(t, page.Body, oautherr.AbnormalUsage) // a ban has the same error_uri

	hidden := limited()
	hidden.RateLimit = oautherr.RateLimit{}
	f.failToken = hidden
	res = r.send(t, s)
	check.Equal(t, "Retry-After", res.Header["Retry-After"], []string{"37"})
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		if values, sent := res.Header[name]; sent {
			t.Errorf("%s: %q, want none", name, values)
		}
	}
}

// TestLimitedBody checks that the body has the members of the problem type and of OAuth, and that
// the code is the currently configured one, in the answer, in the log and on the page about it.
func TestLimitedBody(t *testing.T) {
	f := newFake()
	code := oautherr.TemporarilyUnavailable
	var log bytes.Buffer
	s := newServer(t, f, func(o *httpapi.Options) {
		o.LimitedCode = func() oautherr.Code { return code }
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	ask := request{path: "/token", body: form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)}
	f.failToken, f.failSignIn = limited(), limited()
	for _, code = range []oautherr.Code{oautherr.TemporarilyUnavailable, "slow_down", "rate_limited", oautherr.InvalidRequest} {
		log.Reset()
		res := ask.send(t, s)
		wantOAuthError(t, res, http.StatusTooManyRequests, code)
		wantHeader(t, res.Header, "Content-Type", "application/json")
		sameJSON(t, res.Body, `{"error":"`+string(code)+`","error_description":"; retry after 37 seconds.",
			"error_uri":"http://id.example/docs/rate-limits",
			"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["client-user"]}`)
		post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"x"}})
		check.Equal(t, "lines with "+string(code), strings.Count(log.String(), "error="+string(code)), 2)
		page := request{method: "GET", path: "/docs/rate-limits"}.send(t, s)
		holds(t, page.Body, `{"error":"`+string(code)+`"`)
	}
	hidden := limited()
	hidden.RateLimit, hidden.Violated = oautherr.RateLimit{}, nil
	f.failToken = hidden
	lacks(t, ask.send(t, s).Body, "violated-policies")
	holds(t, ask.send(t, s).Body, `"type":`)
	f.failToken = &oautherr.LimitedError{RetryAfter: time.Second, Limit: "failed_attempts"} // without a quota
	sameJSON(t, ask.send(t, s).Body, `{"error":"`+string(code)+`","error_description":"; retry after 1 second.",
		"error_uri":"http://id.example/docs/rate-limits"}`)
	f.failToken = &grants.Error{Code: oautherr.TemporarilyUnavailable, Description: "x"}
	lacks(t, ask.send(t, s).Body, "type")
}

// TestLimitedInspection checks that a limit outside the policies is named in the log too.
func TestLimitedInspection(t *testing.T) {
	f := newFake()
	f.failInspection = &oautherr.LimitedError{RetryAfter: 37 * time.Second, Limit: "inspection"}
	var log bytes.Buffer
	s := newServer(t, f, func(o *httpapi.Options) {
		o.LimitedCode = func() oautherr.Code { return "slow_down" }
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, path := range []string{"/introspect", "/revoke"} {
		log.Reset()
		res := request{path: path, body: form("token", "x", "client_id", "shop", "client_secret", "x")}.send(t, s)
		wantOAuthError(t, res, http.StatusTooManyRequests, "slow_down")
		wantHeader(t, res.Header, "Retry-After", "37")
		holds(t, log.String(), "status=429")
		holds(t, log.String(), "outcome=denied limit=inspection")
	}
}

func TestLimitedSignIn(t *testing.T) {
	f := newFake()
	f.failSignIn = limited()
	s := newServer(t, f, nil)
	for name, authorization := range map[string]string{"with a client": authorization().Encode(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			res := post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"x"}, "authorization": {authorization}})
			wantStatus(t, res, http.StatusTooManyRequests)
			wantHeader(t, res.Header, "Retry-After", "37")
			holds(t, res.Header.Get("Content-Type"), "text/html")
			holds(t, res.Body, "try again in 37 seconds")
			check.Equal(t, "authorization request", hidden(t, res.Body, "authorization"), authorization)
			wantHeader(t, res.Header, "Set-Cookie", "")
		})
	}
}
