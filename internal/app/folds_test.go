package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/metrics"
	"oauth-server/internal/store/legacy"
)

// folding is a store that folds.
type folding struct {
	legacy.Store
	begin func(context.Context) (context.Context, func(error))
}

func (s *folding) ObserveFolds(begin func(context.Context) (context.Context, func(error))) {
	s.begin = begin
}

// TestFoldsAreObserved: each failure is counted, and the first of a row logged, and its end.
func TestFoldsAreObserved(t *testing.T) {
	telemetry, err := newTelemetry(t.Context(), config.Default(), slog.New(slog.DiscardHandler))
	check.OK(t, err)
	var log bytes.Buffer
	store := &folding{}
	f := &foundation{backend: store, telemetry: telemetry, log: slog.New(slog.NewTextHandler(&log, nil))}
	f.observeFolds()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fold := func(ctx context.Context, err error) {
		_, end := store.begin(ctx)
		end(err)
	}
	fold(t.Context(), nil)
	fold(ended, context.Canceled)
	check.Equal(t, "log of no failure", log.String(), "")
	for range 3 {
		fold(t.Context(), errors.New("not authorized"))
	}
	check.Equal(t, "lines", strings.Count(log.String(), "\n"), 1)
	if !strings.Contains(log.String(), "audit trail not folded") || !strings.Contains(log.String(), "not authorized") {
		t.Errorf("the log is %s", log.String())
	}
	fold(t.Context(), nil)
	fold(t.Context(), nil)
	check.Equal(t, "lines", strings.Count(log.String(), "\n"), 2)
	page := httptest.NewRecorder()
	metrics.Handler(telemetry.registry).ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if !strings.Contains(page.Body.String(), `oauth_store_errors_total{operation="fold_policies"} 4`) {
		t.Error("the failures are not counted")
	}
}
