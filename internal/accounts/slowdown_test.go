package accounts_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
)

// TestWaitingUsesUpNoSlowDown: if an attempt was queued but not hashed, because there was no slot
// or its client disconnected, the one attempt in 30 seconds remains for the next. Of several queued
// at once, one may be made.
func TestWaitingUsesUpNoSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
		w := newWorld(t, daily(1000, 10), func(o *accounts.Options) { o.Passwords = passwords })
		w.wrong("alice", 0, 10)
		giveBack := testworld.TakeHashingSlot(t, passwords)

		err := w.signIn(here, "alice", password)
		_ = check.As[*secret.BusyError](t, err)

		ctx, hangUp := context.WithTimeout(t.Context(), time.Second)
		defer hangUp()
		_, _, err = w.service.SignIn(ctx, accounts.SignIn{Username: "alice", Password: password, Remote: here})
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
		if !errors.Is(first, accounts.ErrSignIn) {
			first, second = second, first
		}
		check.ErrorIs(t, first, accounts.ErrSignIn)
		wantWait(t, second, rowOver)
	})
}

// TestSlowDownOfAllInstances: the instances have separate counters here, as if all of them admitted
// an attempt at the same moment. Only one of them makes it.
func TestSlowDownOfAllInstances(t *testing.T) {
	w, f := failingWorld(t, daily(1000, 10))
	var instances []*accounts.Service
	for i := range 3 {
		w.reopen() // with counters of its own
		w.wrong("alice", 100*i, 10)
		instances = append(instances, w.service)
	}
	const frames = 5
	made := 0
	for i := range frames {
		for j, at := range instances {
			_, _, err := at.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: "wrong", Remote: number(1000 + 10*i + j)})
			if errors.Is(err, accounts.ErrSignIn) {
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

	f.Operation, f.Err = "Put revocations", errDown
	err := w.signIn(number(2000), "alice", password)
	check.ErrorIs(t, err, errDown)
}

// TestUnrecordedAttemptUsesUpNothing: if the store cannot record a slowed-down attempt, because its
// queue sheds the call or it is unreachable, the error is the same whether or not the password was
// correct, and the one attempt in 30 seconds remains for the next.
func TestUnrecordedAttemptUsesUpNothing(t *testing.T) {
	for name, cause := range map[string]error{
		"refused": &overload.ShedError{RetryAfter: 7 * time.Second, Short: overload.Store},
		"away":    errDown,
	} {
		t.Run(name, func(t *testing.T) {
			w, f := failingWorld(t, daily(1000, 10))
			w.wrong("alice", 0, 10)
			f.Operation, f.Err = "Put revocations", cause
			for i, typed := range []string{password, "wrong"} {
				check.Equal(t, "cause", errors.Is(w.signIn(number(100+i), "alice", typed), cause), true)
			}
			check.Equal(t, "attempts that were to be recorded", f.Hits, 2)
			f.Operation = ""
			check.ErrorIs(t, w.signIn(number(200), "alice", "wrong"), accounts.ErrSignIn)
			wantWait(t, w.signIn(number(201), "alice", "wrong"), rowOver)
		})
	}
}
