package tokenlimit_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/tokenlimit"
)

// TestScriptsOfOtherSites checks that scripts may read the answers of the middleware, and the
// fields that it adds to answers that they may read. Fields from an outer middleware stay
// unchanged.
func TestScriptsOfOtherSites(t *testing.T) {
	const allow, credentials, expose = "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers"
	const site, added = "https://app.example", "RateLimit, RateLimit-Policy"
	all := "Retry-After, " + added + ", WWW-Authenticate, X-Request-Id"
	outer := http.Header{allow: {"https://other.example"}, expose: {"X-Outer"}, "Vary": {"Origin"}}
	for name, tc := range map[string]struct {
		outer  http.Header
		token  http.Header // set on an answer with a token
		denied http.Header // set on an answer without one
	}{
		"alone":               {nil, http.Header{}, http.Header{allow: {site}, credentials: {"true"}, expose: {all}, "Vary": {"Origin"}}},
		"in one that says so": {outer, http.Header{allow: outer[allow], expose: {"X-Outer", added}, "Vary": {"Origin"}}, http.Header{allow: outer[allow], expose: {"X-Outer", all}, "Vary": {"Origin"}}},
		"in one that varies":  {http.Header{"Vary": {"Accept"}}, http.Header{"Vary": {"Accept"}}, http.Header{allow: {site}, credentials: {"true"}, expose: {all}, "Vary": {"Accept", "Origin"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
			h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				maps.Copy(rw.Header(), tc.outer.Clone())
				w.limits.Handler(w).ServeHTTP(rw, r)
			})
			for form, want := range map[string]http.Header{credentialsOf("shop"): tc.token, "client_id=a&client_id=b": tc.denied} {
				r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form))
				r.Header.Set("Origin", site)
				got := w.serve(h, r).Header()
				for _, field := range []string{allow, credentials, expose, "Vary"} {
					check.Equal(t, form+": "+field, got[field], want[field])
				}
			}
			r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(credentialsOf("shop")))
			r.Header.Set("Origin", site)
			over := w.serve(h, r)
			check.Equal(t, "status", over.Code, 429)
			check.Equal(t, "over the limit", over.Header()[allow], tc.denied[allow])
		})
	}
}

func credentialsOf(client string) string { return "client_id=" + client + "&" + credentials }
