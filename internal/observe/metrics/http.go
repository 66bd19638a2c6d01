package metrics

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Request is one answered HTTP request. Route is the matched pattern ("/token"), never the raw
// path. TraceID is empty if the request is not traced.
type Request struct {
	Route, Method string
	Code          int
	Duration      time.Duration
	DBCalls       int
	TraceID       string
}

// Request counts an answered request.
func (m *Metrics) Request(r Request) {
	seen := m.requests.WithLabelValues(r.Route, methodLabel(r.Method), codeLabel(r.Code))
	if exemplars, ok := seen.(prometheus.ExemplarObserver); ok && r.TraceID != "" {
		exemplars.ObserveWithExemplar(r.Duration.Seconds(), prometheus.Labels{"trace_id": r.TraceID})
	} else {
		seen.Observe(r.Duration.Seconds())
	}
	m.dbCalls.WithLabelValues(r.Route).Observe(float64(r.DBCalls))
}

// Enter counts a request in flight until the returned function is called.
func (m *Metrics) Enter() (leave func()) {
	m.inFlight.Inc()
	return m.inFlight.Dec
}

// methodLabel bounds the method label, because a client can send any token (RFC 9110 9.1).
func methodLabel(method string) string {
	switch method {
	case "GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return Other
}

func codeLabel(code int) string {
	if code < 100 || code > 599 {
		return Other
	}
	return strconv.Itoa(code)
}

// RateLimited is the error of a 429 in [Metrics.Token], whatever error code operators have
// configured. The default code on the wire, temporarily_unavailable, is also the code of a 503.
const RateLimited = "rate_limited"

var tokenErrors = [...]string{
	"none", RateLimited, Overloaded, "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
	"unsupported_grant_type", "invalid_scope", "temporarily_unavailable", "server_error", Other,
}

// Token counts an answer of the token endpoint. grantType is the grant type as requested.
// oauthError is the error parameter of the answer, or "" for a token.
func (m *Metrics) Token(grantType, oauthError string) {
	if oauthError == "" {
		oauthError = tokenErrors[0]
	}
	grant := grantNames[indexOf(grantNames[:], grantType)]
	m.tokens.WithLabelValues(grant, tokenErrors[indexOf(tokenErrors[:], oauthError)]).Inc()
}

type callsKey struct{}

// CountCalls returns a context that makes [Metrics.Begin] count the calls to the store, and the
// counter.
func CountCalls(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, callsKey{}, n), n
}

// Calls returns how many calls to the store were counted in the context.
func Calls(ctx context.Context) int {
	if n, ok := ctx.Value(callsKey{}).(*atomic.Int64); ok {
		return int(n.Load())
	}
	return 0
}

// Begin counts a store operation, a name that this program chooses. The caller ends it with the returned function, with failed set if
// the store could not answer. Finding nothing is not a failure.
func (m *Metrics) Begin(ctx context.Context, operation string) (_ context.Context, end func(failed bool)) {
	if n, ok := ctx.Value(callsKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
	failures := m.storeFails.WithLabelValues(operation)
	began := m.now()
	return ctx, func(failed bool) {
		m.store.WithLabelValues(operation).Observe(m.now().Sub(began).Seconds())
		if failed {
			failures.Inc()
		}
	}
}
