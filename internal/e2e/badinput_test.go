package e2e

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

const formType = "application/x-www-form-urlencoded"

// rawRequest is a request that nothing corrects on its way.
type rawRequest struct {
	method  string // POST if empty
	query   string
	body    string
	chunked bool
	header  http.Header
}

func (r rawRequest) send(tb testing.TB, client *http.Client, address string) reply {
	tb.Helper()
	method := r.method
	if method == "" {
		method = http.MethodPost
	}
	var body io.Reader = strings.NewReader(r.body)
	if r.chunked {
		body = io.MultiReader(body) // of unknown length
	}
	req, err := http.NewRequestWithContext(tb.Context(), method, address+r.query, body)
	check.OK(tb, err)
	req.Header.Set("Content-Type", formType)
	for name, values := range r.header {
		req.Header[name] = values
	}
	return send(tb, client, req)
}

func basic(id, secret string) http.Header {
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))}}
}

func contentType(values ...string) http.Header { return http.Header{"Content-Type": values} }

func authorization(values ...string) http.Header { return http.Header{"Authorization": values} }

// endpoints are those that accept forms from clients, each with a form that it accepts.
var endpoints = map[string]url.Values{
	"/token":      {"grant_type": {"client_credentials"}},
	"/introspect": {"token": {"x"}},
	"/revoke":     {"token": {"x"}},
}

// malformed is what no endpoint may accept; TestBadForm of internal/httpapi has more. $GOOD stands for the form that the endpoint accepts, with
// credentials in it.
var malformed = map[string]rawRequest{
	"no content type":       {body: "$GOOD", header: contentType()},
	"gzip":                  {body: "$GOOD", header: http.Header{"Content-Encoding": {"gzip"}}},
	"65 KiB":                {body: "$GOOD&pad=" + strings.Repeat("x", 65<<10)},
	"65 KiB, chunked":       {body: "$GOOD&pad=" + strings.Repeat("x", 65<<10), chunked: true},
	"4 MiB":                 {body: "$GOOD&pad=" + strings.Repeat("x", 4<<20)},
	"repeated":              {body: "$GOOD&scope=a&scope=b"},
	"NUL":                   {body: "$GOOD&scope=%00"},
	"in the query":          {query: "?scope=read", body: "$GOOD"},
	"10,000 parameters":     {body: "$GOOD" + strings.Repeat("&a=b", 10_000)},
	"basic and body secret": {body: "$GOOD", header: basic("shop", "x")},
}

// strangers are requests with wrong or missing credentials. $REST stands for the form without them.
var strangers = map[string]rawRequest{
	"no client":                 {body: "$REST"},
	"unknown client":            {body: "$REST", header: basic("ghost", "secret")},
	"unknown public client":     {body: "$REST&client_id=ghost"},
	"wrong secret":              {body: "$REST", header: basic("shop", "wrong")},
	"no secret":                 {body: "$REST&client_id=shop"},
	"huge Basic":                {body: "$REST", header: basic("shop", strings.Repeat("a", 6<<10))},
	"Bearer":                    {body: "$REST", header: authorization("Bearer x")},
	"a secret for a public one": {body: "$REST", header: basic("native", "x")},
}

func TestMalformedRequests(t *testing.T) {
	s := start(t, unlimited)
	client := newHTTPClient(t)
	for path, rest := range endpoints {
		for name, r := range malformed {
			t.Run(path+" "+name, func(t *testing.T) {
				requireOAuthError(t, r.filled(rest).send(t, client, s.Issuer+path), http.StatusBadRequest, "invalid_request")
			})
		}
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
			t.Run(path+" "+method, func(t *testing.T) {
				r := rawRequest{method: method, header: contentType()}.send(t, client, s.Issuer+path)
				if method == http.MethodOptions && r.status < 300 {
					return // a browser's preflight
				}
				r.requireStatus(t, http.StatusMethodNotAllowed)
				if allow := r.header.Get("Allow"); !strings.Contains(allow, "POST") {
					t.Fatalf("Allow is %q, without POST", allow)
				}
				requireUncached(t, r)
			})
		}
	}
}

// Each endpoint has a server of its own, because failures are limited per address.
func TestStrangers(t *testing.T) {
	for path, rest := range endpoints {
		s := start(t, unlimited)
		client := newHTTPClient(t)
		for name, r := range strangers {
			t.Run(path+" "+name, func(t *testing.T) {
				requireOAuthError(t, r.filled(rest).send(t, client, s.Issuer+path), http.StatusUnauthorized, "invalid_client")
			})
		}
		t.Run(path+" the right secret followed by NUL", func(t *testing.T) {
			r := rawRequest{body: "$REST", header: basic("shop", secrets["shop"]+"%00")}
			requireOAuthError(t, r.filled(rest).send(t, client, s.Issuer+path), http.StatusUnauthorized, "invalid_client")
		})
		_, err := s.credentials("shop").Token(with(t))
		check.OK(t, err, "strangers spent what the shop may have")
	}
}

func (r rawRequest) filled(rest url.Values) rawRequest {
	good := rest.Encode() + "&client_id=shop&client_secret=" + secrets["shop"]
	r.body = strings.NewReplacer("$GOOD", good, "$REST", rest.Encode()).Replace(r.body)
	return r
}

// TestBadAuthorizationRequests: what is wrong with the client or its redirect
// URI is shown here and never sent anywhere; the rest goes to the client.
//
// Attack (rfc9700): 2.1.2, 4.1.2 implicit grant. Not supported.
func TestBadAuthorizationRequests(t *testing.T) {
	s := start(t, unlimited)
	challenge := oauth2.S256ChallengeFromVerifier(oauth2.GenerateVerifier())
	good := url.Values{
		"response_type": {"code"}, "client_id": {"web"}, "redirect_uri": {loopbackURI}, "scope": {"read"},
		"state": {"s"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}
	cases := map[string]struct {
		name, value string
		redirected  string // the error for the client; empty: shown on a page
	}{
		"no client":                    {"client_id", "", ""},
		"unknown client":               {"client_id", "ghost", ""},
		"unregistered redirect":        {"redirect_uri", "https://evil.example/cb", ""},
		"a longer host":                {"redirect_uri", "https://web.example.evil.example/cb", ""},
		"a longer path":                {"redirect_uri", "https://web.example/cb/../evil", ""},
		"a host with a suffix":         {"redirect_uri", "https://evilweb.example/cb", ""},
		"another loopback path":        {"redirect_uri", "http://127.0.0.1:9/elsewhere", ""},
		"localhost for 127.0.0.1":      {"redirect_uri", "http://localhost:9/callback", ""},
		"user information":             {"redirect_uri", "http://127.0.0.1:9@evil.example/callback", ""},
		"a fragment":                   {"redirect_uri", loopbackURI + "#x", ""},
		"no redirect, two registered":  {"redirect_uri", "", ""},
		"javascript":                   {"redirect_uri", "javascript:alert(1)", ""},
		"no response_type":             {"response_type", "", "invalid_request"},
		"implicit":                     {"response_type", "token", "unsupported_response_type"},
		"no challenge":                 {"code_challenge", "", "invalid_request"},
		"plain":                        {"code_challenge_method", "plain", "invalid_request"},
		"no method, which means plain": {"code_challenge_method", "", "invalid_request"},
		"a short challenge":            {"code_challenge", "short", "invalid_request"},
		"unknown scope":                {"scope", "admin", "invalid_scope"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := url.Values{}
			for k, v := range good {
				q[k] = v
			}
			q.Set(tc.name, tc.value)
			b := newBrowser(t)
			b.open(s.Issuer + "/authorize?" + q.Encode())
			if tc.redirected == "" {
				if b.page.left != nil {
					t.Fatalf("redirected to %s, which is not registered", b.page.left)
				}
				if b.page.status < 400 || b.page.status >= 500 {
					t.Fatalf("status %d, want 4xx", b.page.status)
				}
				return
			}
			if to := b.sentTo().String(); !strings.HasPrefix(to, loopbackURI+"?") {
				t.Fatalf("redirected to %s, want %s", to, loopbackURI)
			}
			check.Equal(t, "answer", without(b.page.left.Query(), "error_description"),
				url.Values{"error": {tc.redirected}, "state": {"s"}, "iss": {s.Issuer}})
		})
	}
	t.Run("repeated", func(t *testing.T) {
		for name := range good {
			b := newBrowser(t)
			b.open(s.Issuer + "/authorize?" + good.Encode() + "&" + name + "=again")
			if b.has("/sign-in") || b.page.status >= 500 {
				t.Fatalf("%s: status %d:\n%s", name, b.page.status, b.page.text)
			}
		}
	})
}

// TestBrokenHTTP sends bytes that are hardly HTTP. Whatever the answer is, the
// server lives on.
func TestBrokenHTTP(t *testing.T) {
	s := start(t, unlimited)
	host := strings.TrimPrefix(s.Issuer, "http://")
	head := "POST /token HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: " + formType + "\r\n"
	for name, text := range map[string]string{
		"body shorter than it says": head + "Content-Length: 100\r\n\r\ngrant_type=x",
		"negative length":           head + "Content-Length: -1\r\n\r\n",
		"two lengths":               head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\na=bc",
		"length and chunks":         head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a bad chunk":               head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"no host":                   "POST /token HTTP/1.1\r\n\r\n",
		"a header without a name":   head + ": x\r\n\r\n",
		"a megabyte of header":      head + "X: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"not HTTP":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"an absolute request line":  "POST http://evil.example/token HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp4", host)
			check.OK(t, err)
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, text) // the server may hang up in the middle
			check.OK(t, conn.(*net.TCPConn).CloseWrite())
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return // the server hung up
			}
			check.OK(t, res.Body.Close())
			if res.StatusCode < 400 || res.StatusCode >= 500 {
				t.Fatalf("status %d, want 4xx", res.StatusCode)
			}
		})
	}
	_, err := s.credentials("shop").Token(with(t))
	check.OK(t, err)
}
