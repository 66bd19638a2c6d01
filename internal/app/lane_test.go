package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"oauth-server/internal/admission/lane"
	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

type pooled struct {
	store.Backend
	connections int
}

func (p pooled) Connections() int { return p.connections }

// TestLaneOptions: of a database, some connections are left for what is shared between instances; a file has no limit
// that follows the latency.
func TestLaneOptions(t *testing.T) {
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
			want := lane.Options{Max: tt.most, Min: tt.min, Mode: ratelimit.DryRun}
			check.Equal(t, "options", laneOptions(tt.store, ratelimit.DryRun), want)
		})
	}
}

// TestRequestsGoThroughTheLane: their calls wait there, even if no gate has given them a rank, and those of the server's
// own work do not. Of who has gone, the lane refuses the former.
func TestRequestsGoThroughTheLane(t *testing.T) {
	tel, err := newTelemetry(t.Context(), config.Default(), slog.New(slog.DiscardHandler))
	check.OK(t, err)
	l := lane.New(lane.Options{Max: 1, Mode: ratelimit.Enforce})
	gone, leave := context.WithCancel(t.Context())
	leave()
	var entered error
	handler := tel.around(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, entered = l.Enter(r.Context()) }))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "/", http.NoBody))
	check.Equal(t, "a request is kept from the store", errors.Is(entered, context.Canceled), true)
	_, err = l.Enter(gone)
	check.OK(t, err)
}
