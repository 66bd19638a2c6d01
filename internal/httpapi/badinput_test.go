package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

func basic(id, secret string) []string {
	return []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))}
}

// wantOAuthError checks everything that RFC 6749 5.2 requires of an error answer.
func wantOAuthError(tb testing.TB, res *reply, status int, code oautherr.Code) {
	tb.Helper()
	body := res.Body
	wantStatus(tb, res, status)
	wantHeader(tb, res.Header, "Content-Type", "application/json")
	wantHeader(tb, res.Header, "Cache-Control", "no-store")
	wantHeader(tb, res.Header, "X-Content-Type-Options", "nosniff")
	var e struct {
		Error       oautherr.Code `json:"error"`
		Description string        `json:"error_description"`
	}
	check.OK(tb, json.Unmarshal([]byte(body), &e))
	check.Equal(tb, "error", e.Error, code)
	if e.Description == "" {
		tb.Fatalf("no description in %s", body)
	}
	lacks(tb, e.Description, `"`)
	challenge := res.Header.Get("WWW-Authenticate")
	if status == http.StatusUnauthorized {
		if !strings.HasPrefix(challenge, "Basic realm=") {
			tb.Fatalf("challenge %q, want one for Basic", challenge)
		}
	} else {
		check.Equal(tb, "challenge", challenge, "")
	}
}

// TestBadForm sends invalid forms to all OAuth endpoints.
func TestBadForm(t *testing.T) {
	good := form("grant_type", "client_credentials", "token", "good", "client_id", "shop", "client_secret", secretOf)
	long := strings.Repeat("x", 64<<10)
	cases := map[string]request{
		"no content type":        {body: good, header: http.Header{"Content-Type": nil}},
		"json":                   {body: `{"grant_type":"client_credentials"}`, header: http.Header{"Content-Type": {"application/json"}}},
		"multipart":              {body: good, header: http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}},
		"two content types":      {body: good, header: http.Header{"Content-Type": {formType, formType}}},
		"content type and list":  {body: good, header: http.Header{"Content-Type": {formType + ", text/plain"}}},
		"text with an attribute": {body: good, header: http.Header{"Content-Type": {"text/plain; x=" + formType}}},
		"compressed":             {body: good, header: http.Header{"Content-Encoding": {"gzip"}}},
		"body too long":          {body: good + "&pad=" + long},
		"chunked body too long":  {body: good + "&pad=" + long, chunked: true},
		"repeated":               {body: good + "&scope=a&scope=b"},
		"repeated alike":         {body: good + "&client_id=shop"},
		"repeated, one encoded":  {body: good + "&client%5Fid=shop"},
		"repeated unknown":       {body: good + "&x=1&x=2"},
		"bad percent encoding":   {body: good + "&scope=%zz"},
		"cut percent encoding":   {body: good + "&scope=%4"},
		"bad name encoding":      {body: good + "&%zz=a"},
		"invalid UTF-8":          {body: good + "&scope=%ff"},
		"raw invalid UTF-8":      {body: good + "&scope=\xff"},
		"NUL":                    {body: good + "&scope=a%00"},
		"raw NUL":                {body: good + "&scope=a\x00"},
		"too many parameters":    {body: good + strings.Repeat("&x=1", 100)},
		"scope too long":         {body: good + "&scope=" + long[:5000]},
		"password too long":      {body: good + "&password=" + long[:2000]},
		"query parameters":       {path: "?scope=read", body: good},
		"credentials in query":   {path: "?client_id=shop&client_secret=" + secretOf, body: form("grant_type", "client_credentials", "token", "x")},
		"Basic and secret":       {body: good, header: http.Header{"Authorization": basic("shop", secretOf)}},
		"Basic and another id":   {body: form("grant_type", "client_credentials", "token", "x", "client_id", "other"), header: http.Header{"Authorization": basic("shop", secretOf)}},
		"two Basic":              {body: good, header: http.Header{"Authorization": {basic("shop", secretOf)[0], basic("shop", secretOf)[0]}}},
		"nobody and the secret":  {body: good, header: http.Header{"Authorization": basic("", secretOf)}},
		"secret and assertion":   {body: good + "&client_assertion=x"},
		"empty body":             {body: ""},
		"nothing but separators": {body: "&&=&==&"},
	}
	for _, endpoint := range []string{"/token", "/introspect", "/revoke"} {
		for name, r := range cases {
			t.Run(endpoint+" "+name, func(t *testing.T) {
				r.path = endpoint + r.path
				wantOAuthError(t, r.send(t, newServer(t, newFake(), nil)), http.StatusBadRequest, oautherr.InvalidRequest)
			})
		}
	}
}

func TestBadCredentials(t *testing.T) {
	rest := []string{"grant_type", "client_credentials", "token", "good"}
	authorization := func(v string) http.Header { return http.Header{"Authorization": {v}} }
	b64 := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	cases := map[string]request{
		"none":                     {},
		"secret without id":        {body: form("client_secret", secretOf)},
		"wrong secret":             {body: form("client_id", "shop", "client_secret", "wrong")},
		"secret followed by NUL":   {header: authorization(b64("shop:" + secretOf + "%00"))},
		"raw NUL":                  {header: authorization(b64("shop:" + secretOf + "\x00"))},
		"unknown client":           {header: authorization(b64("nobody:" + secretOf))},
		"Basic wrong secret":       {header: authorization(b64("shop:wrong"))},
		"Basic empty secret":       {header: authorization(b64("shop:"))},
		"Basic no id":              {header: authorization(b64(":" + secretOf))},
		"Basic no colon":           {header: authorization(b64("shop"))},
		"Basic empty":              {header: authorization("Basic ")},
		"Basic alone":              {header: authorization("Basic")},
		"empty header":             {header: authorization("")},
		"Basic not base64":         {header: authorization("Basic !!!!")},
		"Basic url alphabet":       {header: authorization("Basic c2hvcDpz-_==")},
		"Basic invalid UTF-8":      {header: authorization(b64("shop:\xff"))},
		"Basic bad encoding":       {header: authorization(b64("shop:%zz"))},
		"Basic huge":               {header: authorization(b64("shop:" + strings.Repeat("a", 8000)))},
		"Basic long id":            {header: authorization(b64(strings.Repeat("a", 300) + ":x"))},
		"Bearer":                   {header: authorization("Bearer abc")},
		"Digest":                   {header: authorization(`Digest username="shop"`)},
		"assertion":                {body: form("client_id", "shop", "client_assertion", "x", "client_assertion_type", "y")},
		"public way, confidential": {body: form("client_id", "shop")},
	}
	for _, endpoint := range []string{"/token", "/introspect", "/revoke"} {
		for name, r := range cases {
			t.Run(endpoint+" "+name, func(t *testing.T) {
				r.path, r.body = endpoint, r.body+"&"+form(rest...)
				wantOAuthError(t, r.send(t, newServer(t, newFake(), nil)), http.StatusUnauthorized, oautherr.InvalidClient)
			})
		}
	}
}

func TestWrongMethod(t *testing.T) {
	s := newServer(t, newFake(), nil)
	for _, endpoint := range []string{"/token", "/introspect", "/revoke"} {
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "BREW"} {
			t.Run(method+" "+endpoint, func(t *testing.T) {
				res := request{method: method, path: endpoint}.send(t, s)
				holds(t, res.Header.Get("Allow"), "POST")
				wantOAuthError(t, res, http.StatusMethodNotAllowed, oautherr.InvalidRequest)
			})
		}
	}
	for _, endpoint := range []string{"/.well-known/jwks.json", "/.well-known/oauth-authorization-server", "/healthz", "/readyz"} {
		t.Run("POST "+endpoint, func(t *testing.T) {
			res := request{path: endpoint}.send(t, s)
			holds(t, res.Header.Get("Allow"), "GET")
			wantOAuthError(t, res, http.StatusMethodNotAllowed, oautherr.InvalidRequest)
		})
	}
}

func TestUnknownPath(t *testing.T) {
	s := newServer(t, newFake(), nil)
	for _, path := range []string{"/nowhere", "/token/", "/token/x", "/%00", "//token", "/%2e%2e/token"} {
		t.Run("client "+path, func(t *testing.T) {
			wantOAuthError(t, request{method: "GET", path: path}.send(t, s), http.StatusNotFound, oautherr.InvalidRequest)
		})
		t.Run("browser "+path, func(t *testing.T) {
			res := request{method: "GET", path: path, header: http.Header{"Accept": {"text/html,*/*;q=0.8"}}}.send(t, s)
			wantStatus(t, res, http.StatusNotFound)
			wantPage(t, res, "'self'")
			holds(t, res.Body, "<h1>Page not found</h1>")
		})
	}
}

// TestOurTrouble makes everything behind the endpoints fail. The answer is server_error without the
// cause.
func TestOurTrouble(t *testing.T) {
	f := newFake()
	f.failToken, f.failInspection = errDisk, errDisk
	s := newServer(t, f, nil)
	for _, endpoint := range []string{"/token", "/introspect", "/revoke"} {
		t.Run(endpoint, func(t *testing.T) {
			res := request{path: endpoint, body: form("grant_type", "x", "token", "x", "client_id", "shop", "client_secret", "x")}.send(t, s)
			wantOAuthError(t, res, http.StatusInternalServerError, oautherr.ServerError)
			lacks(t, res.Body, "fire")
		})
	}
}

func TestPanicIsAnswered(t *testing.T) {
	f := newFake()
	f.panicking = true
	res := request{path: "/token", body: form("grant_type", "x", "client_id", "shop")}.send(t, newServer(t, f, nil))
	wantOAuthError(t, res, http.StatusInternalServerError, oautherr.ServerError)
}

// TestErrorCodes checks every error code on the wire with its status (RFC 6749 5.2).
func TestErrorCodes(t *testing.T) {
	for code, status := range map[oautherr.Code]int{
		oautherr.InvalidRequest: 400, oautherr.InvalidClient: 401, oautherr.InvalidGrant: 400, oautherr.UnauthorizedClient: 400,
		oautherr.UnsupportedGrantType: 400, oautherr.InvalidScope: 400, oautherr.ServerError: 500, oautherr.TemporarilyUnavailable: 503,
	} {
		t.Run(string(code), func(t *testing.T) {
			f := newFake()
			f.failToken = &grants.Error{Code: code, Description: "a \"quoted\" \\ näme\n", Cause: errDisk}
			res := request{path: "/token", body: form("grant_type", "x", "client_id", "shop")}.send(t, newServer(t, f, nil))
			wantOAuthError(t, res, status, code)
			lacks(t, res.Body, "fire")
		})
	}
}
