package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"oauth-server/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded runs do with a tracer and returns the spans that it made.
func recorded(t *testing.T, ratio float64, do func(*tracing.Tracer)) tracetest.SpanStubs {
	t.Helper()
	kept := &keeper{tracetest.NewInMemoryExporter()}
	tracer, err := tracing.New(t.Context(), tracing.Options{Exporter: kept, SampleRatio: ratio, Version: "v1"})
	require.NoError(t, err)
	do(tracer)
	require.NoError(t, tracer.Shutdown(t.Context()))
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

func TestARequestIsFollowedToTheStore(t *testing.T) {
	spans := recorded(t, 1, func(tracer *tracing.Tracer) {
		r, span := tracer.Request(request(t))
		tracing.Decided(r.Context(), tracing.Decision{
			ClientID: "shop", Grant: "refresh_token", Outcome: "denied", Limit: "per-minute", Usage: 1, RetryAfter: 2 * time.Second,
		})
		_, end := tracer.Operation(r.Context(), "store read_refresh_token")
		end(true)
		id := tracing.Route(r.Context(), tracing.Answer{Method: "POST", Route: "/token", Status: 429, Error: "temporarily_unavailable"})
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", id)
		span.End()
	})
	require.Len(t, spans, 2)
	store, whole := spans[0], spans[1]
	require.Equal(t, "POST /token", whole.Name)
	require.Equal(t, "00f067aa0ba902b7", whole.Parent.SpanID().String())
	require.Equal(t, whole.SpanContext.SpanID(), store.Parent.SpanID())
	require.Equal(t, codes.Error, store.Status.Code)
	require.Equal(t, codes.Unset, whole.Status.Code, "a refusal is no fault of ours")
	attributes := attribute.NewSet(whole.Attributes...)
	for key, want := range map[string]string{
		"oauth.client_id": "shop", "ratelimit.outcome": "denied", "ratelimit.limit": "per-minute",
		"oauth.error": "temporarily_unavailable", "http.route": "/token",
	} {
		got, ok := attributes.Value(attribute.Key(key))
		require.True(t, ok, key)
		require.Equal(t, want, got.AsString(), key)
	}
}

func TestWhatIsNotOfARequestIsNotTraced(t *testing.T) {
	spans := recorded(t, 1, func(tracer *tracing.Tracer) {
		_, end := tracer.Operation(t.Context(), "store read_revision")
		end(false)
	})
	require.Empty(t, spans)
}

func TestACallerCannotForceATrace(t *testing.T) {
	spans := recorded(t, 0, func(tracer *tracing.Tracer) {
		r, span := tracer.Request(request(t)) // its traceparent says: sampled
		require.Empty(t, tracing.Route(r.Context(), tracing.Answer{Method: "POST", Route: "/token", Status: 200}))
		span.End()
	})
	require.Empty(t, spans)
}

func TestAFailureOfOursIsMarked(t *testing.T) {
	spans := recorded(t, 1, func(tracer *tracing.Tracer) {
		r, span := tracer.Request(request(t))
		tracing.Route(r.Context(), tracing.Answer{Method: "POST", Route: "/token", Status: 500, Error: "server_error"})
		span.End()
	})
	require.Equal(t, codes.Error, spans[0].Status.Code)
}

func TestOffCostsNothing(t *testing.T) {
	tracer, err := tracing.New(t.Context(), tracing.Options{})
	require.NoError(t, err)
	r := request(t)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		same, span := tracer.Request(r)
		ctx, end := tracer.Operation(same.Context(), "store")
		tracing.Decided(ctx, tracing.Decision{ClientID: "shop"})
		end(false)
		span.End()
	}))
	require.NoError(t, tracer.Shutdown(t.Context()))
}

func TestSpansReachACollector(t *testing.T) {
	paths := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		paths <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
	}))
	defer collector.Close()
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: collector.URL, SampleRatio: 1})
	require.NoError(t, err)
	_, span := tracer.Request(request(t))
	span.End()
	require.NoError(t, tracer.Shutdown(t.Context()))
	require.Equal(t, "POST /v1/traces application/x-protobuf", <-paths)
}

func TestStoppingDoesNotWaitForASilentCollector(t *testing.T) {
	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer collector.Close()
	defer close(release)
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: collector.URL, SampleRatio: 1})
	require.NoError(t, err)
	_, span := tracer.Request(request(t))
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, tracer.Shutdown(ctx), context.DeadlineExceeded)
}
