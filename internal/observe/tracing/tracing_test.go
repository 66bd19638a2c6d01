package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// equal compares a part of what was traced.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// recorded runs do with a tracer and returns the spans that it made.
func recorded(t *testing.T, ratio float64, do func(*tracing.Tracer)) tracetest.SpanStubs {
	t.Helper()
	kept := &keeper{tracetest.NewInMemoryExporter()}
	tracer, err := tracing.New(t.Context(), tracing.Options{Exporter: kept, SampleRatio: ratio, Version: "v1"})
	check.OK(t, err)
	do(tracer)
	check.OK(t, tracer.Shutdown(t.Context()))
	return kept.GetSpans()
}

// keeper keeps the spans when it is shut down, which the exporter in memory does not.
type keeper struct{ *tracetest.InMemoryExporter }

func (keeper) Shutdown(context.Context) error { return nil }

func request(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/token?secret=x", http.NoBody)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	return r
}

func TestARequestIsTracedToTheStore(t *testing.T) {
	spans := recorded(t, 1, func(tracer *tracing.Tracer) {
		r, span := tracer.Request(request(t))
		tracing.Decided(r.Context(), tracing.Decision{
			ClientID: "shop", Grant: "refresh_token", Outcome: "denied", Limit: "per-minute", Usage: 1, RetryAfter: 2 * time.Second,
		})
		_, end := tracer.Operation(r.Context(), "store read_refresh_token")
		end(true)
		id := tracing.Route(r.Context(), tracing.Answer{Method: "POST", Route: "/token", Status: 429, Error: "temporarily_unavailable"})
		equal(t, "trace ID", id, "4bf92f3577b34da6a3ce929d0e0e4736")
		span.End()
	})
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2: %v", len(spans), spans)
	}
	store, whole := spans[0], spans[1]
	equal(t, "name", whole.Name, "POST /token")
	equal(t, "parent of the request", whole.Parent.SpanID().String(), "00f067aa0ba902b7")
	equal(t, "parent of the operation", store.Parent.SpanID(), whole.SpanContext.SpanID())
	equal(t, "status of the operation", store.Status.Code, codes.Error)
	equal(t, "status of a refusal, which is no error of the server", whole.Status.Code, codes.Unset)
	attributes := attribute.NewSet(whole.Attributes...)
	for key, want := range map[string]string{
		"oauth.client_id": "shop", "ratelimit.outcome": "denied", "ratelimit.limit": "per-minute",
		"oauth.error": "temporarily_unavailable", "http.route": "/token",
	} {
		got, _ := attributes.Value(attribute.Key(key))
		equal(t, key, got.AsString(), want)
	}
}

func TestWhatIsNotOfARequestIsNotTraced(t *testing.T) {
	spans := recorded(t, 1, func(tracer *tracing.Tracer) {
		_, end := tracer.Operation(t.Context(), "store read_revision")
		end(false)
	})
	if len(spans) != 0 {
		t.Errorf("traced: %v", spans)
	}
}

func TestACallerCannotForceATrace(t *testing.T) {
	spans := recorded(t, 0, func(tracer *tracing.Tracer) {
		r, span := tracer.Request(request(t)) // its traceparent says: sampled
		equal(t, "trace ID", tracing.Route(r.Context(), tracing.Answer{Method: "POST", Route: "/token", Status: 200}), "")
		span.End()
	})
	if len(spans) != 0 {
		t.Errorf("traced: %v", spans)
	}
}

func TestAnInternalErrorIsMarked(t *testing.T) {
	spans := recorded(t, 1, func(tracer *tracing.Tracer) {
		r, span := tracer.Request(request(t))
		tracing.Route(r.Context(), tracing.Answer{Method: "POST", Route: "/token", Status: 500, Error: "server_error"})
		span.End()
	})
	equal(t, "status", spans[0].Status.Code, codes.Error)
}

func TestOffCostsNothing(t *testing.T) {
	tracer, err := tracing.New(t.Context(), tracing.Options{})
	check.OK(t, err)
	r := request(t)
	allocs := testing.AllocsPerRun(100, func() {
		same, span := tracer.Request(r)
		ctx, end := tracer.Operation(same.Context(), "store")
		tracing.Decided(ctx, tracing.Decision{ClientID: "shop"})
		end(false)
		span.End()
	})
	equal(t, "allocations", allocs, 0)
	check.OK(t, tracer.Shutdown(t.Context()))
}

func TestSpansReachACollector(t *testing.T) {
	paths := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		paths <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
	}))
	defer collector.Close()
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: collector.URL, SampleRatio: 1})
	check.OK(t, err)
	_, span := tracer.Request(request(t))
	span.End()
	check.OK(t, tracer.Shutdown(t.Context()))
	equal(t, "request of the collector", <-paths, "POST /v1/traces application/x-protobuf")
}

func TestStoppingDoesNotWaitForASilentCollector(t *testing.T) {
	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer collector.Close()
	defer close(release)
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: collector.URL, SampleRatio: 1})
	check.OK(t, err)
	_, span := tracer.Request(request(t))
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	check.ErrorIs(t, tracer.Shutdown(ctx), context.DeadlineExceeded)
}
