package e2e

import (
	"net/http"
	"testing"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/check"
)

// TestKillAfterAReset: a reset that was acknowledged survives kill -9, also of counts that were on their
// way to the store.
func TestKillAfterAReset(t *testing.T) {
	const limit, rounds = 5, 5
	s := start(t, "rate_limit: { default: { client: [{ name: hourly, requests: 5, window: 1h }] } }\n")
	ask := func() int {
		_, err := s.credentials("shop").Token(with(t))
		if err != nil {
			requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
			return 0
		}
		return 1
	}
	for range rounds {
		passed := 0
		for range limit + 1 {
			passed += ask()
		}
		check.Equal(t, "requests that passed", passed, limit)
		operator, err := adminlocal.Read(s.data())
		check.OK(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, operator.URL+"/admin/v1/clients/shop/counters", http.NoBody)
		check.OK(t, err)
		req.Header.Set("Authorization", "Bearer "+operator.Token())
		answer := send(t, newHTTPClient(t), req)
		s.kill()
		check.Equal(t, "status of the reset", answer.status, http.StatusNoContent)
		s.up()
	}
}
