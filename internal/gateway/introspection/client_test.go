package introspection_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/introspection"
	"oauth-server/internal/gateway/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "secret-token+/="

// newClient returns a client of an endpoint with that handler.
func newClient(t *testing.T, e introspection.Endpoint, answer http.HandlerFunc) *introspection.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	if e.URL == nil {
		var err error
		e.URL, err = url.Parse(server.URL + "/introspect?tenant=a")
		check.OK(t, err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	reader, err := subject.NewReader("")
	check.OK(t, err)
	c, err := introspection.New(e, transport, reader)
	check.OK(t, err)
	return c
}

// TestRequest checks that the request follows RFC 7662 section 2.1, and its credentials RFC 6749
// section 2.3.1.
func TestRequest(t *testing.T) {
	for name, tc := range map[string]struct{ id, secret, basic string }{
		"plain":         {"gateway", "s", "gateway:s"},
		"to be encoded": {"the gateway", "a:b+c%/", "the+gateway:a%3Ab%2Bc%25%2F"},
		"none":          {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			came := make(chan *http.Request, 1)
			c := newClient(t, introspection.Endpoint{ClientID: tc.id, ClientSecret: tc.secret}, func(w http.ResponseWriter, r *http.Request) {
				check.OK(t, r.ParseForm())
				came <- r
				_, _ = io.WriteString(w, `{"active":true,"sub":"ada"}`)
			})
			user, reason, err := c.User(t.Context(), token)
			check.OK(t, err)
			check.Equal(t, "user", user, "ada")
			check.Equal(t, "reason", reason, subject.Known)
			r := <-came
			check.Equal(t, "asked", r.Method+" "+r.URL.String(), "POST /introspect?tenant=a")
			check.Equal(t, "form", r.PostForm, url.Values{"token": {token}, "token_type_hint": {"access_token"}})
			check.Equal(t, "Accept", r.Header.Get("Accept"), "application/json")
			id, secret, _ := r.BasicAuth()
			check.Equal(t, "credentials", strings.Trim(id+":"+secret, ":"), tc.basic)
		})
	}
}

// TestAnswers checks that every other answer yields no user and a reason, without the token or the
// answer in it.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string // the error; empty: no error
		reason     subject.Reason
	}{
		"inactive":     {200, `{"active":false}`, "", subject.IntrospectionInactive},
		"no sub":       {200, `{"active":true}`, "", subject.NoClaim},
		"sub twice":    {200, `{"active":true,"sub":"a","sub":"b"}`, "", subject.AmbiguousClaim},
		"no JSON":      {200, `<html>` + token, "not an introspection response", subject.IntrospectionFailed},
		"huge":         {200, `{"active":true,"sub":"a"}` + strings.Repeat(" ", introspection.MaxAnswer), "longer than 65536 bytes", subject.IntrospectionFailed},
		"wrong secret": {401, `{"active":true,"sub":"a"}`, "status 401: the client_id or the client_secret is wrong", subject.IntrospectionFailed},
		"wrong path":   {404, ``, "status 404: the URL is not", subject.IntrospectionFailed},
		"redirect":     {307, ``, "status 307: redirects are not followed", subject.IntrospectionFailed},
		"failure":      {500, `{"active":true,"sub":"a"}`, "status 500", subject.IntrospectionFailed},
		"created":      {201, `{"active":true,"sub":"a"}`, "status 201", subject.IntrospectionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := newClient(t, introspection.Endpoint{}, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			user, reason, err := c.User(t.Context(), token)
			check.Equal(t, "user", user, "")
			check.Equal(t, "reason", reason.String(), tc.reason.String())
			check.Equal(t, "asked", asked, 1)
			if tc.want == "" {
				check.OK(t, err)
				return
			}
			check.ErrorSays(t, err, tc.want)
			if strings.Contains(err.Error(), token) {
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
}

// TestSlow checks that the client gives up on an answer that does not come, and on one that does
// not end.
func TestSlow(t *testing.T) {
	for name, begin := range map[string]string{"no answer": "", "no end": `{"active":true`} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, introspection.Endpoint{Timeout: 10 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body) // otherwise the handler does not see the end of the connection
				check.OK(t, err)
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					check.OK(t, http.NewResponseController(w).Flush())
				}
				<-r.Context().Done()
			})
			_, reason, err := c.User(t.Context(), token)
			check.Equal(t, "reason", reason.String(), "introspection_failed")
			check.ErrorSays(t, err, "deadline exceeded")
		})
	}
}

// TestUnreachable checks that the error contains the address, and not the token.
func TestUnreachable(t *testing.T) {
	c := newClient(t, introspection.Endpoint{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, reason, err := c.User(t.Context(), token)
	check.Equal(t, "reason", reason.String(), "introspection_failed")
	check.ErrorSays(t, err, "introspection: ")
	if strings.Contains(err.Error(), "secret-token") {
		t.Errorf("the token is in the error: %v", err)
	}
}

func TestNew(t *testing.T) {
	_, err := introspection.New(introspection.Endpoint{}, http.DefaultTransport, nil)
	check.ErrorSays(t, err, "URL, Transport and Reader are required")
}
