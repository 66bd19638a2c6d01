package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
)

// behindProxy trusts the peer of the tests' requests and 10.0.0.0/8.
func behindProxy(o *httpapi.Options) {
	o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
}

// FuzzRequestID checks that a trusted proxy's value is used as the ID only if it fits a log line.
func FuzzRequestID(f *testing.F) {
	for _, seed := range []string{"", "abc-123_x.y", "a b", "a\nlevel=ERROR", strings.Repeat("x", 65), "ä", "\x00"} {
		f.Add(seed)
	}
	fit := regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)
	open, proxied := newServer(f, newFake(), nil), newServer(f, newFake(), behindProxy)
	f.Fuzz(func(t *testing.T, header string) {
		for name, s := range map[string]*httpapi.Server{"open": open, "proxied": proxied} {
			r := request{method: http.MethodGet, path: "/healthz", header: http.Header{"X-Request-Id": {header}}}
			got := r.send(t, s).Header.Get("X-Request-Id")
			if !fit.MatchString(got) {
				t.Errorf("%s: the ID is %q", name, got)
			}
			check.Equal(t, name+": the ID is the header's", got == header, name == "proxied" && fit.MatchString(header))
		}
	})
}

// FuzzCookie checks that only the value of a session signs in.
func FuzzCookie(f *testing.F) {
	for _, seed := range []string{"", "oauth_session=cookie-alice", "oauth_session=x; oauth_session=cookie-alice", "a=b; oauth_session=\"cookie-alice\"", "oauth_session"} {
		f.Add(seed)
	}
	fake := newFake()
	s := newServer(f, fake, nil)
	fake.signedIn("alice")
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/authorize?"+authorization().Encode(), http.NoBody)
		r.Header["Cookie"] = []string{header}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		check.Equal(t, "status", rec.Code, http.StatusOK)
		if !strings.Contains(header, "oauth_session=cookie-alice") && !strings.Contains(header, `oauth_session="cookie-alice"`) {
			lacks(t, rec.Body.String(), `value="allow"`)
		}
	})
}
