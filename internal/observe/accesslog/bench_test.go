package accesslog_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/accesslog"
)

// BenchmarkLine is the line of a token request: written to a file line by line and in batches.
func BenchmarkLine(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	check.OK(b, err)
	defer func() { _ = file.Close() }()
	batch := accesslog.NewBatch(file)
	for _, to := range []struct {
		name    string
		handler slog.Handler
	}{
		{"lines", slog.NewTextHandler(file, nil)},
		{"batches", batch.Handler(slog.NewTextHandler(batch, nil))},
	} {
		log := slog.New(accesslog.WithRequestID(to.handler))
		b.Run(to.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := accesslog.Identify(httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/token", http.NoBody), http.Header{}, false)
				line := accesslog.Line{
					Route: "/token", Status: http.StatusOK, Bytes: 512, Started: time.Now(), Remote: netip.MustParseAddr("192.0.2.7"),
					Grant: "client_credentials", ClientID: "shop",
				}
				for pb.Next() {
					line.Write(log, r)
				}
			})
		})
	}
}
