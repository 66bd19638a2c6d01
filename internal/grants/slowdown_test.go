package grants_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
)

// TestWaitingUsesUpNoSlowDown: if an attempt was queued but not hashed, because there was no slot
// or its client disconnected, the one attempt in 30 seconds remains for the next. Of several queued
// at once, one may be made.
func TestWaitingUsesUpNoSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
		w := newWorld(t, daily(1000, 10), func(o *grants.Options) { o.Passwords = passwords })
		w.wrong("alice", 0, 10)
		giveBack := takeOnlyTurn(t, passwords)

		err := w.signIn(here, "alice", password)
		check.Equal(t, "code of an attempt without a turn", as[*grants.Error](t, err).Code, oautherr.TemporarilyUnavailable)

		ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
		defer hangUp()
		_, _, err = w.service.SignIn(ctx, grants.SignIn{Username: "alice", Password: password, Remote: here})
		if err == nil || errors.As(err, new(*oautherr.LimitedError)) {
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
		check.ErrorIs(t, first, grants.ErrSignIn)
		wantWait(t, second, rowOver)
	})
}

// TestSlowDownOfAllInstances: the instances have separate counters here, as if all of them admitted
// an attempt at the same moment. Only one of them makes it.
func TestSlowDownOfAllInstances(t *testing.T) {
	w, f := failingWorld(t, daily(1000, 10))
	var instances []*grants.Service
	for i := range 3 {
		w.reopen() // with counters of its own
		w.wrong("alice", 100*i, 10)
		instances = append(instances, w.service)
	}
	const frames = 5
	made := 0
	for i := range frames {
		for j, at := range instances {
			_, _, err := at.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: "wrong", Remote: number(1000 + 10*i + j)})
			if errors.Is(err, grants.ErrSignIn) {
				made++
				continue
			}
			if wait := wantWait(t, err, rowOver); wait > 31*time.Second {
				t.Errorf("to wait for %v", wait)
			}
		}
		w.clock.Advance(time.Minute)
	}
	check.Equal(t, "attempts made", made, frames)

	f.operation, f.err = "RecordOnce", errDown
	err := w.signIn(number(2000), "alice", password)
	check.Equal(t, "code when the store is away", as[*grants.Error](t, err).Code, oautherr.TemporarilyUnavailable)
}

// TestUnrecordedAttemptUsesUpNothing: if the store cannot record a slowed-down attempt, because its
// queue sheds the call or it is unreachable, the response is 503 whether or not the password was
// correct, and the one attempt in 30 seconds remains for the next.
func TestUnrecordedAttemptUsesUpNothing(t *testing.T) {
	for name, cause := range map[string]error{
		"refused": &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store},
		"away":    errDown,
	} {
		t.Run(name, func(t *testing.T) {
			w, f := failingWorld(t, daily(1000, 10))
			w.wrong("alice", 0, 10)
			f.operation, f.err = "RecordOnce", cause
			for i, typed := range []string{password, "wrong"} {
				refused := as[*grants.Error](t, w.signIn(number(100+i), "alice", typed))
				check.Equal(t, "code", refused.Code, oautherr.TemporarilyUnavailable)
				check.Equal(t, "cause", errors.Is(refused, cause), true)
			}
			check.Equal(t, "attempts that were to be recorded", f.hits, 2)
			f.operation = ""
			check.ErrorIs(t, w.signIn(number(200), "alice", "wrong"), grants.ErrSignIn)
			wantWait(t, w.signIn(number(201), "alice", "wrong"), rowOver)
		})
	}
}
