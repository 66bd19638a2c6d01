package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/overload"
)

func busy() *grants.Error {
	return &grants.Error{
		Code: oautherr.TemporarilyUnavailable, Description: "Too many people are signing in; retry after 3 seconds.",
		Cause: errors.New("the queue is long"), RetryAfter: 3 * time.Second,
	}
}

// seenBusy holds the relevant parts of an answer with a retry time.
type seenBusy struct {
	Status           int
	RetryAfter, Type string
	Form, Text       bool
}

// TestBusySignIn checks that the form is shown again, as a page with the retry time.
func TestBusySignIn(t *testing.T) {
	f := newFake()
	f.failSignIn = busy()
	var log bytes.Buffer
	s := newServer(t, f, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for name, authorization := range map[string]string{"with a client": authorization().Encode(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			res := post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"x"}, "authorization": {authorization}})
			want := seenBusy{503, "3", "text/html; charset=utf-8", true, true}
			got := seenBusy{
				res.StatusCode, res.Header.Get("Retry-After"), res.Header.Get("Content-Type"),
				strings.Contains(res.Body, `value="alice"`), strings.Contains(res.Body, "retry after 3 seconds"),
			}
			check.Equal(t, "answer", got, want)
		})
	}
	if text := log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("errors were logged that no operator can mend:\n%s", text)
	}
}

func TestBusyToken(t *testing.T) {
	f := newFake()
	f.failToken = busy()
	s := newServer(t, f, nil)
	res := request{path: "/token", body: form("grant_type", "password", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
	want := seenBusy{http.StatusServiceUnavailable, "3", "application/json", false, true}
	got := seenBusy{
		res.StatusCode, res.Header.Get("Retry-After"), res.Header.Get("Content-Type"), false,
		strings.Contains(res.Body, `"error":"temporarily_unavailable"`) && !strings.Contains(res.Body, "queue"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, res.Body)
	}
}

// TestOverloaded checks that the answer is the same whether the gate or the lane before the store
// refused the request.
func TestOverloaded(t *testing.T) {
	shed := &overload.ShedError{RetryAfter: 4 * time.Second, Short: overload.Store}
	for name, err := range map[string]error{
		"bare": shed, "wrapped": fmt.Errorf("read user: %w", shed),
		"of grants": grants.Overloaded(fmt.Errorf("read user: %w", shed)),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.failToken, f.failSignIn = err, err
			var log bytes.Buffer
			s := newServer(t, f, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			res := request{path: "/token", body: form("grant_type", "refresh_token", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
			want := seenBusy{http.StatusServiceUnavailable, "4", "application/json", false, true}
			got := seenBusy{
				res.StatusCode, res.Header.Get("Retry-After"), res.Header.Get("Content-Type"), false,
				res.Body == `{"error":"temporarily_unavailable","error_description":"The server is overloaded; retry after 4 seconds.",`+
					`"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"}`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("token (-want +got):\n%s\n%s", diff, res.Body)
			}
			page := post(t, s, "/sign-in", "", url.Values{"username": {"alice"}, "password": {"x"}, "authorization": {authorization().Encode()}})
			want = seenBusy{http.StatusServiceUnavailable, "4", "text/html; charset=utf-8", true, true}
			got = seenBusy{
				page.StatusCode, page.Header.Get("Retry-After"), page.Header.Get("Content-Type"),
				strings.Contains(page.Body, `value="alice"`), strings.Contains(page.Body, "retry after 4 seconds"),
			}
			check.Equal(t, "sign-in", got, want)
			if text := log.String(); strings.Contains(text, "level=ERROR") {
				t.Errorf("errors were logged that no operator can mend:\n%s", text)
			}
		})
	}
}
