package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

type pooled struct {
	Store
	connections int
}

func (p pooled) Connections() int { return p.connections }

// TestLaneOptions: of a database, some connections are left for what is shared between instances; a file has no limit
// that follows the latency.
func TestLaneOptions(t *testing.T) {
	tests := map[string]struct {
		store     Store
		most, min int
	}{
		"file":                {struct{ Store }{}, 1024, 0},
		"default connections": {pooled{connections: 100}, 80, 20},
		"few":                 {pooled{connections: 5}, 4, 1},
		"one":                 {pooled{connections: 1}, 1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := lane.Options{Max: tt.most, Min: tt.min, Mode: ratelimit.DryRun}
			if diff := cmp.Diff(want, laneOptions(tt.store, ratelimit.DryRun)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRequestsHaveARank: so their calls wait in the lane, even if nothing else gives them one.
func TestRequestsHaveARank(t *testing.T) {
	tel, err := newTelemetry(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	handler := tel.around(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		rank, ranked := admission.Ranked(r.Context())
		if seen = true; !ranked || rank != 0 {
			t.Errorf("rank %d, %v, want the lowest", rank, ranked)
		}
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	if _, ranked := admission.Ranked(context.Background()); ranked || !seen {
		t.Errorf("work of the server's own has a rank: %v; the handler was called: %v", ranked, seen)
	}
}
