package app

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oauth-server/internal/httpapi"
	"oauth-server/internal/metrics"
)

// telemetry is what the server tells about itself.
type telemetry struct {
	*metrics.Metrics
	registry *prometheus.Registry
}

func newTelemetry(maxClients int) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Options{MaxClients: maxClients, Build: thisBuild()})
	if err != nil {
		return nil, err
	}
	return &telemetry{Metrics: m, registry: registry}, nil
}

func thisBuild() metrics.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return metrics.Build{}
	}
	b := metrics.Build{Version: info.Main.Version, GoVersion: info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

// openTelemetry comes first, so that everything else can be counted.
func (s *Server) openTelemetry(context.Context) (err error) {
	if s.telemetry, err = newTelemetry(s.cfg.Metrics.MaxClients); err != nil {
		return err
	}
	s.loops.panicked = s.telemetry.Panic
	return nil
}

// watch connects what is asked at each scrape.
func (s *Server) watch() {
	s.telemetry.WatchConfigs(func() []metrics.Config {
		policies := s.policies.Status()
		return []metrics.Config{
			{Name: "clients", Revision: int64(s.clients.Directory().Revision()), Refreshed: s.clients.CheckedAt()},
			{Name: "policies", Revision: policies.Version, Refreshed: policies.CheckedAt},
		}
	})
}

// around counts the requests in flight, and what each asks of the store.
func (t *telemetry) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer t.Enter()()
		ctx, _ := metrics.CountCalls(r.Context())
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// answered counts a request.
func (t *telemetry) answered(ctx context.Context, a httpapi.Answer) {
	route := a.Route
	if route == "" {
		route = metrics.Other
	}
	t.Request(metrics.Request{
		Route: route, Method: a.Method, Code: a.Status, Duration: a.Duration, DBCalls: metrics.Calls(ctx),
	})
	if a.Route == "/token" {
		t.Token(a.GrantType, tokenError(a))
	}
}

// tokenError tells a rate limit from the other reason for its error code.
func tokenError(a httpapi.Answer) string {
	if a.Status == http.StatusTooManyRequests {
		return metrics.RateLimited
	}
	return a.Error
}

// slowestScrape bounds the time in which a scraper may take its answer.
const slowestScrape = 30 * time.Second
