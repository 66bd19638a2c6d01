package accesslog_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/accesslog"
)

// TestDetach: a detached context has the ID of its request, ends with the given context, and does
// not change the request's log line.
func TestDetach(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/token", nil)
	r = accesslog.Identify(r, http.Header{}, false)
	life, end := context.WithCancel(t.Context())
	detached := accesslog.Detach(r.Context(), life)
	accesslog.NoteDenial(detached, accesslog.Denial{Outcome: "denied"})
	check.Equal(t, "id", accesslog.RequestID(detached), accesslog.RequestID(r.Context()))
	check.Equal(t, "noted", accesslog.Denied(r.Context()), false)
	cancel()
	check.OK(t, detached.Err())
	end()
	check.ErrorSays(t, detached.Err(), "canceled")
}
