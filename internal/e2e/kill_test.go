package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
)

// TestKillInTheMiddleOfRefreshes: what the server has acknowledged survives kill -9, ten times. Workers
// refresh as fast as they can; of each family, the newest token that was received must still be good
// afterwards, also if it was sent again and no answer came.
func TestKillInTheMiddleOfRefreshes(t *testing.T) {
	const workers, kills, before = 16, 10, 100
	s := start(t, unlimited+patientGrace)
	ctx := with(t)
	c := s.config("legacy")
	newest := make([]string, workers)
	for w := range newest {
		token, err := c.PasswordCredentialsToken(ctx, user, password)
		check.OK(t, err)
		newest[w] = token.RefreshToken
	}
	for range kills {
		enough := make(chan struct{}, before)
		var wg sync.WaitGroup
		for w := range newest {
			wg.Go(func() {
				for { // until the server is gone
					next, err := refresh(ctx, c, newest[w])
					if err != nil {
						return
					}
					newest[w] = next.RefreshToken
					select {
					case enough <- struct{}{}:
					default: // enough are counted
					}
				}
			})
		}
		for range before {
			<-enough
		}
		s.kill()
		wg.Wait()
		s.up()
		for w := range newest {
			next, err := refresh(ctx, c, newest[w])
			check.OK(t, err, "an acknowledged refresh token is lost, or its family has ended")
			newest[w] = next.RefreshToken
		}
	}
}

// A second server on the same file says so, and does not hang; a command asks the first one.
func TestSecondServerOnTheSameFile(t *testing.T) {
	s := start(t, unlimited)
	args := append([]string{}, s.args...)
	for i := range args {
		if args[i] == "--listen" {
			args[i+1] = testworld.FreeAddress(t)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	_, err := command(ctx, "", args...)
	check.OK(t, ctx.Err(), "the second server hangs")
	check.ErrorSays(t, err, "exit status 1")
	check.ErrorSays(t, err, "store.db")
	_, err = command(ctx, "", "keys", "list", "--data", s.data())
	check.ErrorSays(t, err, "store.db")
	list, err := command(ctx, "", "client", "list", "--data", s.data())
	check.OK(t, err)
	check.Equal(t, "shop is listed", strings.Contains(string(list), "shop"), true)
	_, err = s.credentials("shop").Token(with(t))
	check.OK(t, err, "the first server is disturbed")
}

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
