package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/tracing"
)

// FuzzTraceparent: no header decides what is recorded, and the trace has a valid ID whatever the
// header says.
func FuzzTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "")
	f.Add("00-00000000000000000000000000000000-0000000000000000-01", ",,=")
	f.Add("ff-x", "\x00")
	var tracers [2]*tracing.Tracer // by their sample ratio
	for ratio := range tracers {
		var err error
		tracers[ratio], err = tracing.New(f.Context(), tracing.Options{Exporter: tracetest.NewNoopExporter(), SampleRatio: float64(ratio)})
		check.OK(f, err)
		f.Cleanup(func() { _ = tracers[ratio].Shutdown(context.WithoutCancel(f.Context())) })
	}
	f.Fuzz(func(t *testing.T, parent, state string) {
		for ratio, tracer := range tracers {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody)
			r.Header["Traceparent"], r.Header["Tracestate"] = []string{parent}, []string{state}
			r, span := tracer.Request(r)
			equal(t, "recorded", tracing.Recording(r.Context()), ratio == 1)
			if c := span.SpanContext(); !c.IsValid() || c.IsRemote() {
				t.Errorf("the span is %+v", c)
			}
			span.End()
		}
	})
}
