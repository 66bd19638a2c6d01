package adminclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/check"
)

// api is a server that accepts the token "good" and records requests. It names an issuer, which the
// client must ignore.
type api struct {
	*httptest.Server
	seen []string
	body string
}

func newAPI(t *testing.T, answer http.HandlerFunc) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a.seen, a.body = append(a.seen, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")), string(body)
		if r.Header.Get("Authorization") != "Bearer good" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x", issuer="https://issuer.example"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"title":"Invalid token","detail":"it is expired"}`))
			return
		}
		answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// client has an old token, and gets a good one when that is refused.
func (a *api) client(t *testing.T) *adminclient.Client {
	t.Helper()
	return &adminclient.Client{Server: a.URL, HTTP: a.Client(), Token: func(_ context.Context, issuer, refused string) (string, error) {
		if issuer != a.URL {
			t.Errorf("the issuer is %q", issuer)
		}
		return map[string]string{"": "old", "old": "good"}[refused], nil
	}}
}

func TestTokenIsRenewedOnce(t *testing.T) {
	a := newAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1-a"`)
		_, _ = w.Write([]byte(`{"mode":"off"}`))
	})
	var s adminapi.Settings
	etag, err := a.client(t).Get(t.Context(), "/settings", nil, &s)
	if err != nil || etag != `"1-a"` || s.Mode != "off" {
		t.Fatalf("%+v, %q, %v", s, etag, err)
	}
	want := []string{"GET /admin/v1/settings Bearer old", "GET /admin/v1/settings Bearer good"}
	check.Equal(t, "requests", a.seen, want)
	never := a.client(t)
	never.Token = func(context.Context, string, string) (string, error) { return "bad", nil }
	var p *adminclient.ProblemError
	if _, err := never.Get(t.Context(), "/settings", nil, nil); !errors.As(err, &p) || p.Status != 401 || len(a.seen) != 4 {
		t.Errorf("%v after %v", err, a.seen)
	}
}

func TestChangeSendsWhatItNeeds(t *testing.T) {
	header := http.Header{}
	a := newAPI(t, func(_ http.ResponseWriter, r *http.Request) { header = r.Header })
	c := a.client(t)
	c.Server += "/admin/v1/" // pasted
	c.Reason = "x y"
	_, err := c.Change(t.Context(), adminclient.Change{
		Method: http.MethodPatch, Path: "/policies/a%2Fb", ETag: `"7"`, Validate: true, Body: map[string]any{"trusted": nil},
	}, nil)
	check.OK(t, err)
	if last := a.seen[len(a.seen)-1]; last != "PATCH /admin/v1/policies/a%2Fb?reason=x+y&validate=true Bearer good" {
		t.Error(last)
	}
	if header.Get("If-Match") != `"7"` || header.Get("Content-Type") != "application/merge-patch+json" || a.body != `{"trusted":null}` {
		t.Errorf("%v with %s", header, a.body)
	}
	if _, err := c.Change(t.Context(), adminclient.Change{Method: http.MethodPut, Path: "/candidates/x", Body: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if header.Get("If-None-Match") != "*" || header.Get("If-Match") != "" || header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", header)
	}
	_, err = c.Change(t.Context(), adminclient.Change{
		Method: http.MethodDelete, Path: "/clients/x/counters", Query: url.Values{"username": {"ada"}}, ETag: "*",
	}, nil)
	check.OK(t, err)
	if last := a.seen[len(a.seen)-1]; last != "DELETE /admin/v1/clients/x/counters?reason=x+y&username=ada Bearer good" {
		t.Error(last)
	}
}

func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
		no     bool // not a problem of this API
	}{
		{"with fields", 422, `{"title":"t","errors":[{"field":"a","detail":"x"},{"field":"","detail":"y"}]}`, "a: x\ny", false},
		{"without", 409, `{"title":"Locked","detail":"out\u001b[2J"}`, "Locked: out?[2J", false},
		{"no problem details", 502, `<html>`, "502", true},
		{"a redirect", 302, ``, "302", true},
		{"not JSON", 200, `<html>`, "not JSON", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			})
			var raw json.RawMessage
			_, err := a.client(t).Get(t.Context(), "/settings", nil, &raw)
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, adminclient.ErrNoAPI) != tt.no {
				t.Fatalf("error %v", err)
			}
			var p *adminclient.ProblemError
			if errors.As(err, &p) && (p.RetryAfter != 7*time.Second || p.Status != tt.status) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestCheckServer(t *testing.T) {
	for address, good := range map[string]bool{
		"http://127.0.0.1:9097": true, "http://localhost:9097": true, "http://[::1]:9097/": true, "https://admin.example": true,
		"http://192.0.2.1:9097": false, "http://admin.example": false, "ftp://127.0.0.1": false, "127.0.0.1:9097": false, "": false,
		"https://user:pw@admin.example": false, "https://admin.example?x=1": false, "https://": false,
	} {
		if err := adminclient.CheckServer(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
	c := &adminclient.Client{Server: "http://192.0.2.1", HTTP: &http.Client{Transport: noTransport{t}}}
	if _, err := c.Get(t.Context(), "/settings", url.Values{}, nil); err == nil {
		t.Error("it was called")
	}
}

// noTransport fails the test if anything is sent.
type noTransport struct{ t *testing.T }

func (n noTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("%s was called", r.URL)
	return nil, errors.New("not to be called")
}

func TestServerThatIsNone(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	c := &adminclient.Client{Server: s.URL, HTTP: s.Client(), Token: func(context.Context, string, string) (string, error) { return "t", nil }}
	_, err := c.Get(t.Context(), "/settings", nil, nil)
	check.ErrorIs(t, err, adminclient.ErrNoAPI)
}
