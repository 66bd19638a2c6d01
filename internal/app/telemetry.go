package app

import (
	"context"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oauth-server/internal/background"
	"oauth-server/internal/config"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/metrics"
	"oauth-server/internal/tracing"
)

// telemetry is what the server tells about itself.
type telemetry struct {
	*metrics.Metrics
	registry *prometheus.Registry
	tracer   *tracing.Tracer
}

func newTelemetry(ctx context.Context, cfg *config.Config) (*telemetry, error) {
	registry, build := prometheus.NewRegistry(), thisBuild()
	m, err := metrics.New(registry, metrics.Options{MaxClients: cfg.Metrics.MaxClients, Build: build})
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	tracer, err := tracing.New(ctx, tracing.Options{
		Endpoint: cfg.Tracing.Endpoint, SampleRatio: cfg.Tracing.SampleRatio,
		Version: build.Version, Instance: host + "/" + cfg.Listen,
	})
	return &telemetry{Metrics: m, registry: registry, tracer: tracer}, err
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
func (s *Server) openTelemetry(ctx context.Context) (err error) {
	if s.telemetry, err = newTelemetry(ctx, s.cfg); err != nil {
		return err
	}
	s.undo.push("tracing", s.telemetry.tracer.Shutdown)
	s.loops = background.NewGroup(context.WithoutCancel(ctx), s.log, s.telemetry.Panic)
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

// around counts the requests in flight, and what each asks of the store, and
// follows those that are traced.
func (t *telemetry) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer t.Enter()()
		ctx, _ := metrics.CountCalls(r.Context())
		r, span := t.tracer.Request(r.WithContext(ctx))
		defer span.End()
		next.ServeHTTP(w, r)
	})
}

// Begin counts and follows an operation of the store.
func (t *telemetry) Begin(ctx context.Context, operation string) (_ context.Context, end func(failed bool)) {
	ctx, counted := t.Metrics.Begin(ctx, operation)
	ctx, followed := t.tracer.Operation(ctx, "store "+operation)
	return ctx, func(failed bool) {
		followed(failed)
		counted(failed)
	}
}

// answered counts a request.
func (t *telemetry) answered(ctx context.Context, a httpapi.Answer) {
	route := a.Route
	if route == "" {
		route = metrics.Other
	}
	t.Request(metrics.Request{
		Route: route, Method: a.Method, Code: a.Status, Duration: a.Duration, DBCalls: metrics.Calls(ctx),
		TraceID: tracing.Route(ctx, tracing.Answer{Method: a.Method, Route: route, Status: a.Status, Error: a.Error}),
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
