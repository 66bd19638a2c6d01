package grants_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestWaitingUsesUpNoSlowDown: an attempt that had to wait and of which nothing was hashed, because there
// was no turn or because its caller hung up, leaves the one in 30 seconds to the next. Of several that
// wait at once, one may be made.
func TestWaitingUsesUpNoSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
		w := newWorld(t, daily(1000, 10), func(o *grants.Options) { o.Passwords = passwords })
		w.wrong("alice", 0, 10)
		giveBack := takeOnlyTurn(t, passwords)

		err := w.signIn(here, "alice", password)
		check.Equal(t, "code of an attempt without a turn", as[*grants.Error](t, err).Code, grants.TemporarilyUnavailable)

		ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
		defer hangUp()
		_, _, err = w.service.SignIn(ctx, grants.SignIn{Username: "alice", Password: password, Remote: here})
		if err == nil || errors.As(err, new(*grants.LimitedError)) {
			t.Errorf("hung up: error %v", err)
		}

		errs := make(chan error, 2)
		for i := range 2 {
			go func() { errs <- w.signIn(number(100+i), "alice", "wrong") }()
		}
		synctest.Wait()
		giveBack()
		first, second := <-errs, <-errs
		if !errors.Is(first, grants.ErrSignIn) {
			first, second = second, first
		}
		wantErr(t, first, grants.ErrSignIn)
		wantWait(t, second, rowOver)
	})
}
