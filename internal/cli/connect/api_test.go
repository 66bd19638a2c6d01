package connect

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestTokenIsRenewedOnceForAll: when many concurrent calls have their token rejected, only one
// requests another.
func TestTokenIsRenewedOnceForAll(t *testing.T) {
	const calls = 8
	var waiting, wg sync.WaitGroup
	waiting.Add(calls)
	issued := 0 // the requests for tokens are one after the other
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	answer := func(format string, args ...any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, format, args...)
		}
	}
	mux.Handle("/.well-known/oauth-authorization-server", answer(`{"issuer": "%s", "token_endpoint": "%[1]s/token"}`, server.URL))
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		issued++
		answer(`{"access_token": "token-%d", "token_type": "Bearer", "expires_in": 3600}`, issued)(w, r)
	})
	mux.HandleFunc("/admin/v1/settings", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer token-1" {
			waiting.Done()
			waiting.Wait() // until all have arrived with it
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"title":"Invalid token","detail":"it is revoked"}`))
		}
	})
	l := &API{
		Env: &command.Env{ErrOut: io.Discard}, Server: server.URL, clientID: "ops", secret: "s", noCache: true, Timeout: time.Minute,
	}
	api, err := l.Connect()
	check.OK(t, err)
	for range calls {
		wg.Go(func() {
			if _, err := api.Get(t.Context(), "/settings", nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check.Equal(t, "tokens requested", issued, 2)
}
