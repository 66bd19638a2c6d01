package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

type pooled struct {
	store.Backend
	connections int
}

func (p pooled) Connections() int { return p.connections }

// TestStoreQueueOptions checks that with a database, some connections are left for exchanges between
// instances, and that with a file the limit does not follow the latency.
func TestStoreQueueOptions(t *testing.T) {
	tests := map[string]struct {
		store     store.Backend
		most, min int
	}{
		"file":                {nil, 1024, 0},
		"default connections": {pooled{connections: 100}, 80, 20},
		"few":                 {pooled{connections: 5}, 4, 1},
		"one":                 {pooled{connections: 1}, 1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := storequeue.Options{Max: tt.most, Min: tt.min, Mode: ratelimit.DryRun}
			check.Equal(t, "options", storeQueueOptions(tt.store, ratelimit.DryRun), want)
		})
	}
}

// TestRequestsGoThroughTheStoreQueue checks that calls of requests wait in the store queue even without a rank,
// and that the server's own calls do not. If the caller has hung up, the store queue refuses only the
// calls of requests.
func TestRequestsGoThroughTheStoreQueue(t *testing.T) {
	tel, err := newTelemetry(t.Context(), config.Default(), slog.New(slog.DiscardHandler))
	check.OK(t, err)
	l := storequeue.New(storequeue.Options{Max: 1, Mode: ratelimit.Enforce})
	gone, leave := context.WithCancel(t.Context())
	leave()
	var entered error
	handler := tel.around(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, entered = l.Enter(r.Context()) }))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "/", http.NoBody))
	check.Equal(t, "a request is kept from the store", errors.Is(entered, context.Canceled), true)
	_, err = l.Enter(gone)
	check.OK(t, err)
}
