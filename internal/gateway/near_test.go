package gateway_test

import (
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

const (
	ofShop    = "client_id=shop&client_secret=s&grant_type=client_credentials"
	multipart = "--x\r\nContent-Disposition: form-data; name=\"grant_type\"\r\n\r\nclient_credentials\r\n--x--\r\n"
)

// sent is a request, and the status of its answer if the client is over its limit.
type sent struct {
	method, path, kind, encoding, body string // defaults: POST, the token path, a form, none
	inChunks                           bool
	want                               int
}

// ask sends the request. 200 is the answer of the upstream, which gets the request unchanged.
func (w *world) ask(s *sent) {
	w.t.Helper()
	var body io.Reader = strings.NewReader(s.body)
	if s.inChunks {
		body = struct{ io.Reader }{body}
	}
	method, fields := cmp.Or(s.method, http.MethodPost), map[string]string{"Content-Type": cmp.Or(s.kind, formType)}
	if s.encoding != "" {
		fields["Content-Encoding"] = s.encoding
	}
	w.mu.Lock()
	w.came = nil
	w.mu.Unlock()
	got := w.do(method, s.path, body, fields).status
	check.Equal(w.t, "status", got, s.want)
	if got == http.StatusOK {
		check.Equal(w.t, "the upstream gets it unchanged", w.came, []string{method + " " + s.path + " " + s.body})
	}
}

const formType = "application/x-www-form-urlencoded"

// TestPathsNearATokenEndpoint checks that requests that routers lead to the token endpoint count if
// they ask for a token, and that everything else passes.
func TestPathsNearATokenEndpoint(t *testing.T) {
	const (
		json, long = "application/json", 3 * gateway.MaxBody
		inspect    = "token=eyJ.a.b&token_type_hint=access_token&client_id=shop&client_secret=s"
	)
	pad := strings.Repeat("x", long)
	for name, s := range map[string]sent{
		"beneath":                       {path: tokenPath + "/x", body: ofShop, want: 429},
		"a format":                      {path: tokenPath + ".json", body: ofShop, want: 429},
		"a script in front":             {path: "/index.php" + tokenPath, body: ofShop, want: 429},
		"an encoded space":              {path: tokenPath + "%20", body: ofShop, want: 429},
		"in the query":                  {path: "/index.php?r=" + tokenPath, body: ofShop, want: 429},
		"JSON":                          {path: tokenPath + "/x", kind: json, body: `{"client_id":"shop","\u0067rant_type":"client_credentials"}`, want: 429},
		"in chunks":                     {path: tokenPath + "/x", body: ofShop, inChunks: true, want: 429},
		"an encoded name":               {path: tokenPath + "/x", body: "client_id=shop&%67rant%5Ftype=client_credentials", want: 429},
		"in the query of GET":           {method: "GET", path: tokenPath + "/x?" + ofShop, want: 400},
		"in the query of OPTIONS":       {method: "OPTIONS", path: tokenPath + "/x?" + ofShop, want: 400},
		"a name that PHP takes for it":  {path: tokenPath + "/x", body: "client_id=shop&grant.type=client_credentials", want: 400},
		"multipart":                     {path: tokenPath + "/x", kind: "multipart/form-data; boundary=x", body: multipart, want: 400},
		"a type of no form":             {path: tokenPath + "/x", kind: "text/plain", body: ofShop, want: 400},
		"another charset":               {path: tokenPath + "/x", kind: formType + "; charset=ibm037", body: "%87=x", want: 400},
		"compressed":                    {path: tokenPath + "/x", encoding: "gzip", body: gzipped(ofShop), want: 400},
		"introspection":                 {path: tokenPath + "/introspect", body: inspect, want: 200},
		"introspection in chunks":       {path: tokenPath + "/introspect", body: inspect, inChunks: true, want: 200},
		"revocation in JSON":            {path: tokenPath + "/revoke", kind: json, body: `{"token":"t","grant_types":["password"]}`, want: 200},
		"another type":                  {path: tokenPath + "/x", kind: "application/octet-stream", body: "\x00\xff%zz{", want: 200},
		"a form that is none":           {path: tokenPath + "/x", body: "a=%zz&a=b;c", want: 200},
		"a long body":                   {path: tokenPath + "/x", body: "x=" + pad, want: 200},
		"a long body in chunks":         {path: tokenPath + "/x", kind: "image/png", body: pad, inChunks: true, want: 200},
		"a body of the longest length":  {path: tokenPath + "/x", body: pad[:gateway.MaxBody], want: 200},
		"nothing":                       {path: tokenPath + "/x", want: 200},
		"GET":                           {method: "GET", path: tokenPath + "/x?a=b", want: 200},
		"a preflight":                   {method: "OPTIONS", path: tokenPath + "/x", want: 200},
		"compressed, somewhere else":    {path: "/upload", encoding: "gzip", body: gzipped(ofShop), want: 200},
		"a grant, somewhere else":       {path: "/forms", body: ofShop, want: 200},
		"an endpoint of a similar name": {path: tokenPath + "-exchange", body: ofShop, want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(issues("shop", ""))
			w.wantStatus("as it is", "grant_type=client_credentials", 200)
			w.ask(&s)
			if s.want == http.StatusOK {
				check.Equal(t, "token requests", w.Stats().Requests, [gateway.Outcomes]uint64{gateway.Issued: 1})
			}
		})
	}
}

// TestLateGrant checks that a request near a token endpoint is not forwarded completely if it asks
// for a token after a long beginning.
func TestLateGrant(t *testing.T) {
	for name, tc := range map[string]struct {
		before   int
		inChunks bool
	}{
		"at the end": {3 * gateway.MaxBody, false}, "at the end, in chunks": {3 * gateway.MaxBody, true},
		"across what is read at once": {gateway.MaxBody - 14, false}, "just behind it": {gateway.MaxBody - 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				ended <- err
			}))
			target, err := url.Parse(up.URL)
			check.OK(t, err)
			w := newWorld(t, 1, func(o *gateway.Options) { o.Upstream = target })
			w.ask(&sent{path: tokenPath + "/x", body: "x=" + strings.Repeat("x", tc.before) + "&" + ofShop, inChunks: tc.inChunks, want: 413})
			up.Close()          // after it has answered
			if len(ended) > 0 { // otherwise nothing was forwarded
				check.Equal(t, "the upstream sees that it breaks off", <-ended != nil, true)
			}
		})
	}
}

func gzipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// TestMethodsAtTheTokenEndpoint covers servers that take parameters with any method, and from the
// query.
func TestMethodsAtTheTokenEndpoint(t *testing.T) {
	for name, s := range map[string]sent{
		"OPTIONS with a body":           {method: "OPTIONS", path: tokenPath, body: ofShop, want: 429},
		"OPTIONS with a body in chunks": {method: "OPTIONS", path: tokenPath, body: ofShop, inChunks: true, want: 429},
		"OPTIONS with a query":          {method: "OPTIONS", path: tokenPath + "?" + ofShop, want: 400},
		"GET with a body":               {method: "GET", path: tokenPath, body: ofShop, want: 429},
		"HEAD with a query":             {method: "HEAD", path: tokenPath + "?" + ofShop, want: 400},
		"PUT":                           {method: "PUT", path: tokenPath, body: ofShop, want: 429},
		"options":                       {method: "options", path: tokenPath, body: ofShop, want: 429},
		"of a name of its own":          {method: "TOKEN", path: tokenPath, body: ofShop, want: 429},
		"a preflight":                   {method: "OPTIONS", path: tokenPath, want: 200},
		"a preflight with a query":      {method: "OPTIONS", path: tokenPath + "?tenant=a", want: 200},
		"GET of nothing":                {method: "GET", path: tokenPath, want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(issues("shop", ""))
			w.wantStatus("as it is", "grant_type=client_credentials", 200)
			w.ask(&s)
		})
	}
}
