package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
)

// shed returns the error of a request that was refused under overload.
func shed(short overload.Resource) *grants.Error {
	return &grants.Error{
		Code: oautherr.TemporarilyUnavailable, Description: "The server is overloaded; retry after 2 seconds.",
		Cause: &overload.ShedError{RetryAfter: 2 * time.Second, Short: short}, RetryAfter: 2 * time.Second,
	}
}

// reporting returns a server with its log, and the answers that it passes to Answered.
func reporting(t *testing.T, f *fake, edit func(*httpapi.Options)) (s *httpapi.Server, log *check.Buffer, answers *[]httpapi.Answer) {
	t.Helper()
	log, answers = &check.Buffer{}, &[]httpapi.Answer{}
	return newServer(t, f, func(o *httpapi.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.Answered = func(_ context.Context, a httpapi.Answer) { *answers = append(*answers, a) }
		if edit != nil {
			edit(o)
		}
	}), log, answers
}

// A request that is refused under overload has one log line that says so, and is distinct in the
// metrics.
func TestShedRequestIsLoggedAsSuch(t *testing.T) {
	f := newFake()
	f.failToken, f.failSignIn = shed(overload.Store), shed(overload.Processor)
	s, log, answers := reporting(t, f, nil)
	res := request{path: "/token", body: form("grant_type", "password", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
	check.Equal(t, "status", res.StatusCode, http.StatusServiceUnavailable)
	check.Equal(t, "Retry-After", res.Header.Get("Retry-After"), "2")
	post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"x"}})
	check.Equal(t, "answers", len(*answers), 2)
	check.Equal(t, "of the token request", (*answers)[0].Shed, overload.Store)
	check.Equal(t, "of the sign-in", (*answers)[1].Shed, overload.Processor)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	check.Equal(t, "lines", len(lines), 2)
	for i, end := range []string{"client_id=shop error=temporarily_unavailable shed=store", "error=temporarily_unavailable shed=processor"} {
		if !strings.Contains(lines[i], "level=INFO msg=request ") || !strings.Contains(lines[i], end+" request_id=") {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
}

// Of a flood of refused requests, only a few are logged. All are still answered and counted.
func TestShedFloodIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.failToken = shed(overload.Processor)
		s, log, answers := reporting(t, f, nil)
		for range 500 {
			request{path: "/token", body: form("grant_type", "password", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "answered", len(*answers), 500)
		check.Equal(t, "lines", strings.Count(log.String(), "\n"), 11)
		check.Equal(t, "summary", strings.Contains(log.String(), `msg="requests refused while overloaded" count=500 skipped=490`), true)
	})
}

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

// gated is a domain that counts admitted pages, and records whether a page looks up its session
// between entering and leaving.
type gated struct {
	*fake
	shut, panicking bool
	asked, inside   int
	looked          bool
	within          bool // with the rank from BeginRequest
}

func (g *gated) BeginRequest(ctx context.Context, r *overload.Request) (context.Context, error) {
	g.asked++
	if g.shut || r.Class != overload.Page {
		return ctx, shed(overload.Processor)
	}
	g.inside++
	return overload.WithRequest(ctx, nil, 7), nil
}

func (g *gated) EndRequest() { g.inside-- }

func (g *gated) Session(ctx context.Context, cookie string) (accounts.Session, error) {
	g.looked, g.within = true, g.inside == 1 && overload.RankFrom(ctx) == 7
	if g.panicking {
		panic("boom")
	}
	return g.fake.Session(ctx, cookie)
}

// TestPagesLeaveTheShedder checks that each page enters the shedder once and leaves it after its answer,
// whatever the answer is. A page that the shedder refuses does no work.
func TestPagesLeaveTheShedder(t *testing.T) {
	authorize := "/authorize?" + authorization().Encode()
	for name, tt := range map[string]struct {
		request
		anonymous bool // the page does not look up a session
	}{
		"index":                    {request: request{method: http.MethodGet, path: "/id/"}},
		"index, without the slash": {request: request{method: http.MethodGet, path: "/id"}},
		"authorization":            {request: request{method: http.MethodGet, path: "/id" + authorize}},
		"authorization by POST":    {request: request{path: "/id/authorize", body: authorization().Encode()}, anonymous: true},
		"consent":                  {request: request{path: "/id/consent", body: form("authorization", authorization().Encode(), "decision", "allow")}},
		"consents":                 {request: request{method: http.MethodGet, path: "/id/consents"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gated{fake: newFake()}
			s := newServer(t, g.fake, func(o *httpapi.Options) {
				o.Issuer, o.Service = "http://id.example/id", g
			})
			tt.header = http.Header{"Cookie": {g.signedIn("alice")}}
			tt.send(t, s)
			check.Equal(t, "asked", g.asked, 1)
			check.Equal(t, "works inside", g.within, !tt.anonymous)
			check.Equal(t, "inside afterwards", g.inside, 0)

			g.panicking, g.looked = true, false
			tt.send(t, s)
			check.Equal(t, "panics", g.looked, !tt.anonymous)
			check.Equal(t, "inside after a panic", g.inside, 0)

			g.shut, g.looked = true, false
			res := tt.send(t, s)
			check.Equal(t, "status when it is refused", res.StatusCode, http.StatusServiceUnavailable)
			check.Equal(t, "Retry-After", res.Header.Get("Retry-After"), "2")
			check.Equal(t, "works in spite of that", g.looked, false)
			check.Equal(t, "inside after a refusal", g.inside, 0)
		})
	}
}

// refuseEarly records a request of shop with this header, refused with a body of 40 bytes.
func refuseEarly(s *httpapi.Server, header http.Header) {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/token"}, Header: header, RemoteAddr: "192.0.2.1:4711"}
	req := grants.TokenRequest{Credentials: grants.Credentials{ClientID: "shop", Secret: secretOf}, GrantType: "client_credentials"}
	s.RefusedEarly(r, &req, time.Now(), 40)
}

// TestReadToken: a token request is read early as the endpoint reads it.
func TestReadToken(t *testing.T) {
	const good = "grant_type=refresh_token&refresh_token=a-b_c&scope=a+b"
	want := grants.TokenRequest{
		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: secretOf}, GrantType: "refresh_token", RefreshToken: "a-b_c", Scope: "a b",
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("shop:"+secretOf))
	for name, tt := range map[string]struct {
		header map[string]string
		body   string
		ok     bool
	}{
		"good":              {map[string]string{}, good, true},
		"no grant":          {map[string]string{}, "scope=a", false},
		"no client":         {map[string]string{"Authorization": ""}, good, false},
		"two secrets":       {map[string]string{}, good + "&client_secret=" + secretOf, false},
		"two clients":       {map[string]string{}, good + "&client_id=other", false},
		"bearer":            {map[string]string{"Authorization": "Bearer a"}, good, false},
		"twice":             {map[string]string{}, good + "&scope=c", false},
		"JSON":              {map[string]string{"Content-Type": "application/json"}, good, false},
		"not form-encoded":  {map[string]string{}, good + "&code=%zz", false},
		"with a charset":    {map[string]string{"Content-Type": formType + "; charset=utf-8"}, good, true},
		"a compressed body": {map[string]string{"Content-Encoding": "gzip"}, good, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{Header: http.Header{"Content-Type": {formType}, "Authorization": {basic}}}
			for field, value := range tt.header {
				r.Header.Set(field, value)
				if value == "" {
					r.Header.Del(field)
				}
			}
			req, ok := httpapi.ReadToken(r, tt.body)
			check.Equal(t, "read", ok, tt.ok)
			if ok {
				check.Equal(t, "request", req, want)
			}
		})
	}
}

// A request that was refused before net/http read it has the same log line and metrics as one that
// was refused later.
func TestRefusedEarly(t *testing.T) {
	forwarded := http.Header{"X-Forwarded-For": {"198.51.100.7"}, "X-Request-Id": {"abc"}}
	for name, tt := range map[string]struct {
		header http.Header
		line   string
	}{
		"from the peer":        {forwarded, "remote=192.0.2.1 grant_type=client_credentials client_id=shop error=temporarily_unavailable shed=processor request_id="},
		"through a proxy":      {forwarded, "remote=198.51.100.7 grant_type=client_credentials client_id=shop error=temporarily_unavailable shed=processor request_id=abc\n"},
		"with a secret in it":  {http.Header{"Authorization": {"Basic " + secretOf}}, " shed=processor "},
		"below the issuer's /": {http.Header{}, " path=/oauth/token status=503 bytes=40 duration_ms=0 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log, answers := reporting(t, newFake(), func(o *httpapi.Options) {
					if name == "through a proxy" {
						trusting("192.0.2.0/24")(o)
					}
					o.Issuer = "https://as.example/oauth"
				})
				refuseEarly(s, tt.header)
				if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO msg=request method=POST ") || !strings.Contains(got, tt.line) || strings.Contains(got, secretOf) {
					t.Errorf("log %q, want %q and no secret", got, tt.line)
				}
				check.Equal(t, "answers", *answers, []httpapi.Answer{{
					Route: "/token", Method: "POST", Status: 503, GrantType: "client_credentials", Error: string(oautherr.TemporarilyUnavailable), Shed: overload.Processor,
				}})
			})
		})
	}
}

// Early refusals share the ten log lines a second with other refusals, and all are in the metrics.
func TestRefusedEarlyFloodIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.failToken = shed(overload.Processor)
		s, log, answers := reporting(t, f, nil)
		for range 50 {
			request{path: "/token", body: form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
			refuseEarly(s, http.Header{})
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "lines", strings.Count(log.String(), "msg=request "), 10)
		check.Equal(t, "the number of all", strings.Contains(log.String(), "count=100 skipped=90\n"), true)
		check.Equal(t, "answered", len(*answers), 100)
	})
}
