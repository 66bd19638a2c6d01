package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
	"oauth-server/internal/testworld"
)

// chain is one family of refresh tokens as its client sees it.
type chain struct {
	token string // the newest that was acknowledged
	// unsure: it was sent, and no answer came. The server may have spent it.
	unsure bool
}

// TestKillInTheMiddleOfRefreshes: what the server has acknowledged survives
// kill -9. Workers refresh as fast as they can; of each family, the newest
// token that was received and not sent again must still be good afterwards.
func TestKillInTheMiddleOfRefreshes(t *testing.T) {
	const workers, families, rounds, before = 4, 3, 3, 40
	s := start(t, unlimited)
	ctx := with(t)
	c := s.config("legacy")
	chains := make([][]*chain, workers)
	for w := range chains {
		for range families {
			token, err := c.PasswordCredentialsToken(ctx, user, password)
			check.OK(t, err)
			chains[w] = append(chains[w], &chain{token: token.RefreshToken})
		}
	}
	for range rounds {
		enough := make(chan struct{}, workers*families*before)
		var wg sync.WaitGroup
		for _, own := range chains {
			wg.Go(func() { spend(ctx, c, own, enough) })
		}
		for range before {
			<-enough
		}
		s.kill()
		wg.Wait()
		s.up()
		requireRedeemable(ctx, t, c, chains)
	}
}

// spend refreshes its families in turn until the server is gone.
func spend(ctx context.Context, c *oauth2.Config, chains []*chain, acknowledged chan<- struct{}) {
	for i := 0; ; i++ {
		own := chains[i%len(chains)]
		own.unsure = true
		next, err := refresh(ctx, c, own.token)
		if err != nil {
			return
		}
		own.token, own.unsure = next.RefreshToken, false
		select {
		case acknowledged <- struct{}{}:
		default: // enough are counted
		}
	}
}

// requireRedeemable redeems every token that must be good, and gets a new
// family for those about which nothing can be said.
func requireRedeemable(ctx context.Context, t *testing.T, c *oauth2.Config, chains [][]*chain) {
	t.Helper()
	sure := 0
	for _, own := range chains {
		for _, one := range own {
			next, err := refresh(ctx, c, one.token)
			switch {
			case !one.unsure:
				check.OK(t, err, "an acknowledged refresh token is lost")
				sure++
			case err != nil:
				requireRefused(t, err, 400, "invalid_grant")
				next, err = c.PasswordCredentialsToken(ctx, user, password)
				check.OK(t, err)
			}
			one.token, one.unsure = next.RefreshToken, false
		}
	}
	if least := len(chains) * (len(chains[0]) - 1); sure < least { // each worker has at most one under way
		t.Fatalf("%d families with an acknowledged token, want at least %d", sure, least)
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
