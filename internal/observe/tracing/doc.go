// Package tracing traces requests through the server with OpenTelemetry and sends the spans to a
// collector by OTLP over HTTP. Without an endpoint it is off and costs nothing.
//
//	t, err := tracing.New(ctx, tracing.Options{Endpoint: "http://127.0.0.1:4318", SampleRatio: 0.1})
//	…
//	r, span := t.Request(r) // continues the caller's trace (W3C traceparent)
//	defer span.End()
//	ctx, end := t.Operation(r.Context(), "store redeem_code")
//
// Spans hold what metrics hold and the client_id; never usernames, tokens,
// codes or query strings.
package tracing
