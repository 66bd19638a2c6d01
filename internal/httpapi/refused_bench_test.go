package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/overload"
)

// refusing is the gate of an overloaded server.
type refusing struct{}

func (refusing) Admit(context.Context, *overload.Request) (overload.Rank, error) {
	return 0, &overload.ShedError{RetryAfter: 2 * time.Second, Short: overload.Processor}
}
func (refusing) Leave() {}

func (r refusing) Starved(ctx context.Context) error { _, err := r.Admit(ctx, nil); return err }

// written is a response writer that discards the answer.
type written struct {
	header http.Header
	status int
}

func (w *written) Header() http.Header         { return w.header }
func (w *written) WriteHeader(status int)      { w.status = status }
func (w *written) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkHandler measures the processor time of a request without the HTTP server and the
// network: for a request that is refused under overload, and for one that gets a token.
func BenchmarkHandler(b *testing.B) {
	for name, tt := range map[string]struct {
		gate   grants.Shedder
		status int
	}{"refused": {refusing{}, http.StatusServiceUnavailable}, "issued": {nil, http.StatusOK}} {
		b.Run(name, func(b *testing.B) {
			srv := newTokenServer(b, func(o *grants.Options, _ *httpapi.Options) { o.Shedder = tt.gate })
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("grant_type=client_credentials&scope=orders%3Aread+orders%3Awrite"))
				r.Header.Set("Content-Type", formType)
				r.SetBasicAuth("daemon", secretOf)
				w := &written{header: http.Header{}}
				srv.Config.Handler.ServeHTTP(w, r)
				if w.status != tt.status {
					b.Fatalf("status %d", w.status)
				}
			}
		})
	}
}
