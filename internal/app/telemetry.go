package app

import (
	"context"
	"hash/maphash"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oauth-server/internal/config"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/recent"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/observe/tracing"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

func levelOf(cfg config.Log) (level slog.Level) {
	_ = level.UnmarshalText([]byte(cfg.Level)) // an error leaves info
	return level
}

// NewLeveledLogger returns a logger for the configuration, with a level that can be changed later. It
// sets level to the configured one. An unknown level counts as info: [config.Config.Validate]
// reports it.
func NewLeveledLogger(cfg config.Log, level *slog.LevelVar, w io.Writer) *slog.Logger {
	level.Set(levelOf(cfg))
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// NewBatchLogger is [NewLeveledLogger] with an [accesslog.Batch] in front of w. Call unbuffer at the
// end: it writes the lines that are left, and returns an error if lines were lost.
func NewBatchLogger(cfg config.Log, level *slog.LevelVar, w io.Writer) (log *slog.Logger, unbuffer func() error) {
	batch := accesslog.NewBatch(w)
	return slog.New(batch.Handler(NewLeveledLogger(cfg, level, batch).Handler())), batch.Unbuffer
}

// telemetry holds the metrics and traces of the server.
type telemetry struct {
	*metrics.Metrics
	registry *prometheus.Registry
	tracer   *tracing.Tracer
	log      *slog.Logger
	logged   *recent.Table // unreadable records
	seed     maphash.Seed
}

func newTelemetry(ctx context.Context, cfg *config.Config, log *slog.Logger) (*telemetry, error) {
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
	return &telemetry{
		Metrics: m, registry: registry, tracer: tracer, log: log, logged: recent.New(time.Now(), 1<<10), seed: maphash.MakeSeed(),
	}, err
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

// around counts the requests in flight and the store operations of each request, traces a sample,
// and makes the operations wait in the store queue.
func (t *telemetry) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer t.Enter()()
		ctx, _ := metrics.CountCalls(storequeue.NewRequest(r.Context()))
		r, span := t.tracer.Request(r.WithContext(ctx))
		defer span.End()
		next.ServeHTTP(w, r)
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
		TraceID: tracing.Route(ctx, tracing.Answer{Method: a.Method, Route: route, Status: a.Status, Error: a.Error}),
	})
	if a.Route == "/token" {
		t.Token(a.GrantType, tokenError(a))
	}
}

// tokenError returns the error code of the answer. For a rate limit and for overload it returns
// separate codes, because the codes on the wire are ambiguous: operators choose the code of a rate
// limit, and by default it is the same as the code of an overloaded server.
func tokenError(a httpapi.Answer) string {
	switch {
	case a.Status == http.StatusTooManyRequests:
		return metrics.RateLimited
	case a.Shed != "":
		return metrics.Overloaded
	}
	return a.Error
}

// Begin counts and traces a store operation. It implements observed.Observer.
func (t *telemetry) Begin(ctx context.Context, operation string) (_ context.Context, end func(failed bool)) {
	ctx, counted := t.Metrics.Begin(ctx, operation)
	ctx, traced := t.tracer.Operation(ctx, "store "+operation)
	return ctx, func(failed bool) {
		traced(failed)
		counted(failed)
	}
}

// personal lists the tables with usernames in their keys. The log must not contain these keys.
var personal = map[string]bool{"agreements": true, "bans": true, "known_addresses": true, "users": true}

// Unreadable counts an unreadable record and logs it once an hour. It implements observed.Observer.
func (t *telemetry) Unreadable(table, key string, err error) {
	_, end := t.Metrics.Begin(context.Background(), "decode_"+table) //nolint:forbidigo // decoding belongs to no request
	end(true)
	if !t.logged.Renew(time.Now(), maphash.Comparable(t.seed, [2]string{table, key}), time.Hour) {
		attrs := []any{"table", table, "error", err}
		if !personal[table] {
			attrs = append(attrs, "key", key)
		}
		t.log.Warn("stored record is unreadable; see oauth-server records", attrs...)
	}
}

// decided counts a decision of the limiter and adds it to the trace of the request.
func (t *telemetry) decided(ctx context.Context, d limiter.Decided) {
	grant := d.Grant
	if tracing.Recording(ctx) {
		binding, _ := d.Decision.BindingLimit()
		tracing.Decided(ctx, tracing.Decision{
			ClientID: d.ClientID, Grant: grant, Outcome: d.Decision.Outcome.String(),
			Limit: binding.Limit.Name, Usage: d.Decision.Usage(), RetryAfter: d.Decision.RetryAfter,
		})
	}
	if would(d.Tried.Outcome) {
		t.CandidateDecision(d.ClientID, grant, d.Tried.Outcome)
	}
	if d.Decision.Outcome == ratelimit.Delayed {
		t.Delay(d.Waited)
	}
	if d.Leased > 0 {
		t.LeaseWait(plain(d.Decision.Outcome), d.Leased)
	}
	if d.Decision.Outcome == ratelimit.Passed {
		return // the mode is off: not even counted
	}
	t.Decision(d.ClientID, grant, d.Decision.Outcome)
	if d.Decision.Outage {
		t.OutageDecision(d.ClientID, plain(d.Decision.Outcome))
	}
	if d.Decision.Soft && plain(d.Decision.Outcome) != ratelimit.Denied {
		t.SoftWarning(d.ClientID, grant)
	}
	if d.Decision.Counted() {
		t.Usage(d.ClientID, d.Decision.Usage())
	}
}

// plain returns the decision of the limiter alone. For a request that waited in the queue, it is
// the decision after the wait.
func plain(o ratelimit.Outcome) ratelimit.Outcome {
	switch o {
	case ratelimit.Reused:
		return ratelimit.Denied
	case ratelimit.WouldReuse, ratelimit.WouldDelay:
		return ratelimit.WouldDeny
	case ratelimit.Delayed:
		return ratelimit.Allowed
	case ratelimit.Passed, ratelimit.Trusted, ratelimit.Allowed, ratelimit.Denied, ratelimit.WouldDeny, ratelimit.Banned, ratelimit.WouldBan:
	}
	return o
}

// watch registers the metrics that are read at each scrape.
func (t *telemetry) watch(l *limiting) {
	clients, policies := l.base.clients, l.policies
	t.WatchConfig(func() metrics.Config {
		directory, stored, file := clients.Directory(), policies.Status(), l.file.status()
		return metrics.Config{
			Clients:    metrics.Snapshot{Revision: directory.Revision(), Refreshed: clients.CheckedAt()},
			Policies:   metrics.Snapshot{Revision: stored.Version, Refreshed: stored.CheckedAt},
			Unreadable: len(directory.Unreadable()), Unregistered: len(l.unregistered.list()),
			Refused: file.refused != nil, RestartNeeded: len(file.restart), Limits: policies.Snapshot().BaseDigest(),
		}
	})
	t.WatchPolicies(func() metrics.PolicySnapshot { return policies.Snapshot() })
	t.WatchMemory(l.counters.Stats)
	t.WatchOverload(l.base.overload.shedder.Stats)
	t.WatchStoreQueue(l.base.overload.storeQueue.Stats)
	t.WatchBans(l.bans.Stats)
	t.WatchSync(l.stats.get)
}
