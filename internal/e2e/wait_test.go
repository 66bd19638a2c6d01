package e2e

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
)

// asked sends n requests of a client at once, with golang.org/x/oauth2.
func (s *server) asked(n int) <-chan error {
	answers, c, ctx := make(chan error, n), s.credentials("shop"), with(s.tb)
	c.AuthStyle = oauth2.AuthStyleInHeader
	for range n {
		go func() {
			_, err := c.Token(ctx)
			answers <- err
		}()
	}
	return answers
}

// Fifteen requests at once, with a limit of five in half a second: all get a token, ten of them at their turn.
func TestAllGetTheirTurn(t *testing.T) {
	s := start(t, `rate_limit:
  default:
    client:
      - { name: fast, requests: 5, window: 500ms, frames: 5 }
      - { name: slow, requests: 1000, window: 60s }
    max_wait: 5s
`)
	answers := s.asked(15)
	for range 15 {
		check.OK(t, <-answers)
	}
	check.Eventually(t, "the log of ten that waited", func() bool {
		return strings.Count(s.logs.String(), "outcome=delayed limit=fast") == 10
	})
}

// At SIGTERM, those who wait get a 429 at once.
func TestNobodyWaitsForAServerThatStops(t *testing.T) {
	admin := testworld.FreeAddress(t)
	s := start(t, "admin_listen: "+admin+`
rate_limit:
  default:
    client: [ { name: few, requests: 1, window: 10s, frames: 50 } ]
    max_wait: 10s
`)
	check.OK(t, <-s.asked(1))
	answers := s.asked(3)
	check.Eventually(t, "three wait", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", http.NoBody)
		check.OK(t, err)
		return strings.Contains(send(t, newHTTPClient(t), req).body, "\noauth_ratelimit_waiting 1\n")
	})
	check.Equal(t, "exit status", s.stop(), 0)
	for range 3 {
		requireRefused(t, <-answers, http.StatusTooManyRequests, "temporarily_unavailable")
	}
}
