package httpapi_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/overload"
)

func trusting(prefixes ...string) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		for _, p := range prefixes {
			o.Addresses.TrustedProxies = append(o.Addresses.TrustedProxies, netip.MustParsePrefix(p))
		}
	}
}

// TestLogHoldsNoSecrets sends a secret in every possible place.
func TestLogHoldsNoSecrets(t *testing.T) {
	var log bytes.Buffer
	f := newFake()
	s := newServer(t, f, func(o *httpapi.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	v := authorization()
	v.Set("state", "hush-state")
	request{method: "GET", path: "/authorize?" + v.Encode(), header: http.Header{"Cookie": {"oauth_session=hush-cookie"}}}.send(t, s)
	request{method: "GET", path: "/authorize?code=hush-code&client_id=%zz"}.send(t, s)
	request{path: "/sign-in", body: form("username", "hush-user", "password", "hush-password")}.send(t, s)
	request{path: "/token", body: form("grant_type", "authorization_code", "code", "hush-code", "client_id", "shop", "client_secret", "hush-secret")}.send(t, s)
	request{path: "/token", body: form("grant_type", "x"), header: http.Header{"Authorization": basic("shop", "hush-basic")}}.send(t, s)
	request{path: "/revoke", body: form("token", "hush-token", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
	f.panicking = true
	request{path: "/token?hush-query", body: form("grant_type", "x", "password", "hush-password", "client_id", "shop")}.send(t, s)
	check.Equal(t, "lines of the access log", strings.Count(log.String(), "msg=request"), 7)
	holds(t, log.String(), "client_id=shop")
	holds(t, log.String(), "error=invalid_client")
	lacks(t, log.String(), "hush")
}

// TestAccessLogIsTerse checks that probes are not logged, and that a line contains no unknown
// values.
func TestAccessLogIsTerse(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, newFake(), func(o *httpapi.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, probe := range []string{"/healthz", "/readyz"} {
		wantStatus(t, request{method: "GET", path: probe}.send(t, s), http.StatusOK)
	}
	check.Equal(t, "log", log.String(), "")
	request{path: "/token"}.send(t, s)
	holds(t, log.String(), "error=invalid_request")
	lacks(t, log.String(), "client_id")
}

func TestFailuresAreLoggedWithTheirCause(t *testing.T) {
	var log bytes.Buffer
	f := newFake()
	f.failToken = errDisk
	s := newServer(t, f, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	id := request{path: "/token", body: form("grant_type", "x", "client_id", "shop")}.send(t, s).Header.Get("X-Request-Id")
	holds(t, log.String(), "the disk is on fire")
	check.Equal(t, "lines with the request id", strings.Count(log.String(), "request_id="+id), 2)

	log.Reset()
	f.panicking = true
	request{path: "/token", body: form("grant_type", "x", "client_id", "shop")}.send(t, s)
	holds(t, log.String(), "panic=boom")
	holds(t, log.String(), "httpapi_test")
	holds(t, log.String(), "status=500")
}

// TestCallerWhoHangsUp checks that a failure is not logged as an error if the caller has hung up.
func TestCallerWhoHangsUp(t *testing.T) {
	var log bytes.Buffer
	f := newFake()
	f.failToken = errDisk
	s := newServer(t, f, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/token", strings.NewReader("grant_type=x&client_id=shop"))
	r.Header.Set("Content-Type", formType)
	s.ServeHTTP(httptest.NewRecorder(), r)
	holds(t, log.String(), "the disk is on fire")
	lacks(t, log.String(), "level=ERROR")
}

// TestAbortedAnswer checks that half an answer cannot be mistaken for a whole one.
func TestAbortedAnswer(t *testing.T) {
	f := newFake()
	s := newServer(t, f, func(o *httpapi.Options) {
		o.Ready = func(context.Context) httpapi.Readiness { panic(http.ErrAbortHandler) }
	})
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // exactly this
			t.Errorf("panic with %v, want %v", v, http.ErrAbortHandler)
		}
	}()
	request{method: "GET", path: "/readyz"}.send(t, s)
}

func TestHealth(t *testing.T) {
	status := httpapi.Ready
	s := newServer(t, newFake(), func(o *httpapi.Options) {
		o.Ready = func(context.Context) httpapi.Readiness {
			return httpapi.Readiness{Status: status, Checks: map[string]string{"store": string(status)}}
		}
	})
	for want, code := range map[httpapi.Status]int{httpapi.Ready: 200, httpapi.Degraded: 200, httpapi.Down: 503} {
		status = want
		res := request{method: "GET", path: "/readyz"}.send(t, s)
		wantStatus(t, res, code)
		wantHeader(t, res.Header, "Content-Type", "application/json")
		sameJSON(t, res.Body, `{"status":"`+string(want)+`","checks":{"store":"`+string(want)+`"}}`)

		res = request{method: "GET", path: "/healthz"}.send(t, s)
		wantStatus(t, res, http.StatusOK)
		sameJSON(t, res.Body, `{"status":"ok"}`)
	}
}

// TestCrossOriginScripts checks that browser apps may request tokens, and nothing else.
//
// Attack (rfc9700): 2.6 CORS. Scripts may call the token and revocation endpoints, metadata and
// keys, but no page. Also gateway.TestScriptsReadOwnAnswers.
func TestCrossOriginScripts(t *testing.T) {
	s := newServer(t, newFake(), nil)
	preflight := http.Header{"Origin": {"https://spa.example"}, "Access-Control-Request-Method": {"POST"}}
	for path, allowed := range map[string]bool{
		"/token": true, "/revoke": true, "/.well-known/oauth-authorization-server": true, "/.well-known/jwks.json": true,
		"/introspect": false, "/authorize": false, "/sign-in": false, "/consent": false, "/": false,
	} {
		for _, r := range []request{{method: "OPTIONS", path: path, header: preflight}, {method: "GET", path: path, header: http.Header{"Origin": preflight["Origin"]}}} {
			res := r.send(t, s)
			if allowed {
				wantHeader(t, res.Header, "Access-Control-Allow-Origin", "*")
			} else {
				wantHeader(t, res.Header, "Access-Control-Allow-Origin", "")
			}
			wantHeader(t, res.Header, "Access-Control-Allow-Credentials", "")
		}
		vary := ""
		if allowed {
			vary = "Origin"
		}
		wantHeader(t, request{method: "GET", path: path}.send(t, s).Header, "Vary", vary) // otherwise a browser caches it for a script
	}
	res := request{path: "/token", body: "", header: http.Header{"Origin": preflight["Origin"]}}.send(t, s)
	holds(t, res.Header.Get("Access-Control-Expose-Headers"), "Retry-After")
}

// TestPreflightHeaders checks that a page may send the fields that tracing and HTTP libraries add
// to its requests, and no field that could impersonate someone else.
func TestPreflightHeaders(t *testing.T) {
	s := newServer(t, newFake(), nil)
	for wanted, also := range map[string]string{
		"":                                "",
		"authorization,content-type":      "",
		"traceparent, tracestate,baggage": ", traceparent, tracestate, baggage",
		"B3,X-B3-TraceId , x-b3-spanid,sentry-trace":   ", b3, x-b3-traceid, x-b3-spanid, sentry-trace",
		"x-request-id,x-datadog-trace-id":              ", x-request-id, x-datadog-trace-id",
		"x-forwarded-for,forwarded,x-real-ip,cookie,*": "",
		"x-b3-a b,x-b3-ä,x-request-":                   ", x-request-",
		strings.Repeat("traceparent,", 500):            "",
	} {
		res := request{method: "OPTIONS", path: "/token", header: http.Header{
			"Origin": {"https://spa.example"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {wanted},
		}}.send(t, s)
		wantStatus(t, res, http.StatusNoContent)
		got := res.Header.Get("Access-Control-Allow-Headers")
		holds(t, got, "Authorization, Content-Type")
		if len(wanted) > 1000 {
			check.Equal(t, "is bounded", len(got) < 1100, true)
		} else {
			check.Equal(t, wanted, got, "Authorization, Content-Type"+also)
		}
		check.Equal(t, "vary", res.Header["Vary"], []string{"Origin", "Access-Control-Request-Headers"})
	}
}

// TestScriptsReadErrors also covers errors before the handler, and under overload.
func TestScriptsReadErrors(t *testing.T) {
	f := newFake()
	f.failToken = shed(overload.Processor)
	s := newServer(t, f, nil)
	origin := func(more http.Header) http.Header {
		more["Origin"] = []string{"https://spa.example"}
		return more
	}
	credentials := form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)
	for name, tc := range map[string]struct {
		request request
		want    int
	}{
		"overloaded":     {request{path: "/token", body: credentials, header: origin(http.Header{})}, 503},
		"too long":       {request{path: "/token", body: strings.Repeat("x", 65<<10), header: origin(http.Header{})}, 400},
		"chunked":        {request{path: "/token", body: strings.Repeat("x", 65<<10), chunked: true, header: origin(http.Header{})}, 400},
		"another type":   {request{path: "/revoke", body: "{}", header: origin(http.Header{"Content-Type": {"application/json"}})}, 400},
		"another method": {request{path: "/token", method: "PUT", header: origin(http.Header{})}, 405},
		"no client":      {request{path: "/token", body: "grant_type=client_credentials", header: origin(http.Header{})}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			res := tc.request.send(t, s)
			wantStatus(t, res, tc.want)
			wantHeader(t, res.Header, "Access-Control-Allow-Origin", "*")
			holds(t, res.Header.Get("Access-Control-Expose-Headers"), "Retry-After")
		})
	}
}

func TestAssetsAreKept(t *testing.T) {
	s := newServer(t, newFake(), nil)
	page := request{method: "GET", path: "/"}.send(t, s).Body
	for _, attr := range []string{`<link rel="stylesheet" href="`, `type="image/svg+xml" href="`} {
		_, rest, found := strings.Cut(page, attr)
		if !found {
			t.Fatalf("no %s in %s", attr, page)
		}
		path, _, _ := strings.Cut(rest, `"`)
		res := request{method: "GET", path: path}.send(t, s)
		wantStatus(t, res, http.StatusOK)
		holds(t, res.Header.Get("Cache-Control"), "immutable")
	}
}
