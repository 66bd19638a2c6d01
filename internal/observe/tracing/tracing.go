package tracing

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configure [New].
type Options struct {
	// Endpoint is the URL of an OTLP/HTTP collector, such as
	// http://127.0.0.1:4318. Empty: nothing is traced.
	Endpoint string
	// SampleRatio is the share of requests that are traced, 0 to 1. A client cannot change that with
	// the sampled flag of its traceparent.
	SampleRatio float64
	// Version and Instance identify this process in the spans.
	Version, Instance string
	// Exporter is used instead of the collector at Endpoint, in tests.
	Exporter sdk.SpanExporter
}

// Tracer makes spans. It is safe for concurrent use.
type Tracer struct {
	on       bool
	tracer   trace.Tracer
	carrier  propagation.TraceContext
	shutdown func(context.Context) error
}

// New makes a tracer. It does not wait for the collector to answer.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Endpoint == "" && o.Exporter == nil {
		return &Tracer{
			tracer:   noop.NewTracerProvider().Tracer(""),
			shutdown: func(context.Context) error { return nil },
		}, nil
	}
	exporter := o.Exporter
	if exporter == nil {
		var err error
		exporter, err = otlptracehttp.New(ctx,
			otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithTimeout(5*time.Second),
			// Spans are not worth the memory and the time of a retry.
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
		if err != nil {
			return nil, fmt.Errorf("tracing: %w", err)
		}
	}
	share := sdk.TraceIDRatioBased(o.SampleRatio)
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		// A client must not decide how much is recorded here.
		sdk.WithSampler(sdk.ParentBased(share, sdk.WithRemoteParentSampled(share), sdk.WithRemoteParentNotSampled(share))),
		sdk.WithResource(resource.NewSchemaless(
			semconv.ServiceName("oauth-server"), semconv.ServiceVersion(o.Version), semconv.ServiceInstanceID(o.Instance))),
	)
	return &Tracer{on: true, tracer: provider.Tracer("oauth-server"), shutdown: provider.Shutdown}, nil
}

// Shutdown sends the remaining spans, until the context ends.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.shutdown(ctx) }

// Request starts the span of a request, and returns the request with the span in its context. The
// route is not known yet; see [Route].
func (t *Tracer) Request(r *http.Request) (*http.Request, trace.Span) {
	if !t.on {
		return r, trace.SpanFromContext(r.Context())
	}
	ctx := t.carrier.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return r.WithContext(ctx), span
}

// Operation starts the span of an operation inside a traced request. Outside of a request it does
// nothing, because background loops would make most of all spans.
func (t *Tracer) Operation(ctx context.Context, name string) (_ context.Context, end func(failed bool)) {
	if !t.on || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(bool) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, func(failed bool) {
		if failed {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Recording reports whether the request of the context is being traced.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Answer describes the response to a request.
type Answer struct {
	Method, Route string // Route is the pattern
	Status        int
	Error         string // OAuth error code
}

// Route adds the route and the response to the request's span, and names the span after the route.
// It returns the trace ID for an exemplar, empty if the request is not recorded.
func Route(ctx context.Context, a Answer) (traceID string) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return ""
	}
	span.SetName(a.Method + " " + a.Route)
	span.SetAttributes(
		semconv.HTTPRequestMethodKey.String(a.Method), semconv.HTTPRoute(a.Route),
		semconv.HTTPResponseStatusCode(a.Status))
	if a.Error != "" {
		span.SetAttributes(attribute.String("oauth.error", a.Error))
	}
	if a.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, a.Error)
	}
	return span.SpanContext().TraceID().String()
}

// Decision is the limiter's decision about a request.
type Decision struct {
	ClientID, Grant, Outcome string
	Limit                    string // the deciding limit; empty if none applied
	Usage                    float64
	RetryAfter               time.Duration
}

// Decided adds the limiter's decision to the request's span.
func Decided(ctx context.Context, d Decision) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("oauth.client_id", d.ClientID), attribute.String("oauth.grant_type", d.Grant),
		attribute.String("ratelimit.outcome", d.Outcome), attribute.String("ratelimit.limit", d.Limit),
		attribute.Float64("ratelimit.usage", d.Usage),
		attribute.Float64("ratelimit.retry_after_seconds", d.RetryAfter.Seconds()))
}
