package accesslog

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
)

// request is the context value with the log data of a request.
type request struct {
	id     [1]string // as the value of a header
	denial Denial
}

type requestKey struct{}

// of returns the request that ctx belongs to, or nil.
func of(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// Identify assigns an ID to a request. The context of the returned request carries it, and the
// response returns it as X-Request-Id. Identify keeps a valid ID from a trusted proxy, which lets
// one ID identify a request in all logs.
func Identify(r *http.Request, answer http.Header, trusted bool) *http.Request {
	req := &request{id: [1]string{requestID(r.Header, trusted)}}
	answer["X-Request-Id"] = req.id[:]
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
}

// RequestID returns the ID of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if r := of(ctx); r != nil {
		return r.id[0]
	}
	return ""
}

// Detach returns a context for work that outlives the request of ctx. It ends with life and keeps
// only the ID of the request. Nothing noted with it appears in the request's log line.
func Detach(ctx, life context.Context) context.Context {
	return context.WithValue(life, requestKey{}, &request{id: [1]string{RequestID(ctx)}})
}

func requestID(h http.Header, trusted bool) string {
	if trusted {
		if id := h.Get("X-Request-Id"); saneRequestID(id) {
			return id
		}
	}
	return rand.Text()
}

func saneRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		b := id[i]
		word := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !word && b != '-' && b != '_' && b != '.' {
			return false
		}
	}
	return true
}

// requestIDHandler adds the context's request ID to every record.
type requestIDHandler struct{ slog.Handler }

// WithRequestID wraps a handler to add request_id to every line logged with a request's context,
// whichever package logs it. Wrapping twice has no further effect.
func WithRequestID(h slog.Handler) slog.Handler {
	if _, done := h.(requestIDHandler); done {
		return h
	}
	return requestIDHandler{h}
}

// Handle implements [slog.Handler].
func (h requestIDHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h requestIDHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestIDHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h requestIDHandler) WithGroup(name string) slog.Handler {
	return requestIDHandler{h.Handler.WithGroup(name)}
}
