package tokenlimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/tokenlimit"
)

// TestHungUp checks that an endpoint continues if the client hangs up, and that its token counts.
// It still ends at its deadline, and is not called for a client that has already gone.
func TestHungUp(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(2)}})
	post := func(ctx context.Context) {
		w.serve(w.limits.Handler(w), httptest.NewRequestWithContext(ctx, http.MethodPost, "/token", strings.NewReader("client_id=shop&grant_type=client_credentials")))
	}
	for range 2 {
		ctx, hangUp := context.WithCancel(t.Context())
		w.endpoint = func(rw http.ResponseWriter, r *http.Request) {
			hangUp()
			check.OK(t, r.Context().Err())
			opaque(rw, r)
		}
		post(ctx)
		check.Equal(t, "outcome", w.last().Outcome, tokenlimit.Issued)
	}
	w.endpoint = opaque
	w.want("grant_type=client_credentials", 429)

	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(1)}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		w.endpoint = func(rw http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			http.Error(rw, "late", http.StatusServiceUnavailable)
		}
		post(ctx)
		check.Equal(t, "outcome", w.last().Outcome, tokenlimit.Failed)
		check.Equal(t, "calls", len(w.bodies), 1)
		post(ctx)
		check.Equal(t, "calls", len(w.bodies), 1)
		w.endpoint = opaque
		w.want("grant_type=client_credentials", 200)
	})
}
