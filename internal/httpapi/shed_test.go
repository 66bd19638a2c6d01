package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
