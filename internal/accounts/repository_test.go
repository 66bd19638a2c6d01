package accounts_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func TestSessionRecords(t *testing.T) {
	r, ctx := newWorld(t).store, t.Context()
	session := func(user string, n int) accounts.Session {
		return accounts.Session{Key: fmt.Sprint(user, n), Username: user, CreatedAt: start.Add(time.Duration(n) * time.Minute), ExpiresAt: start.Add(time.Hour), UserStamp: secret.NewStamp()}
	}
	names := func(user string) (text string) {
		list, err := r.SessionsOf(ctx, user)
		check.OK(t, err)
		for _, s := range list {
			text += s.Key + " "
		}
		return text
	}
	for n := range 5 {
		check.OK(t, errors.Join(r.CreateSession(ctx, session("bob", n), 3), r.CreateSession(ctx, session("bo", n), 3)))
	}
	check.Equal(t, "the newest three", names("bob"), "bob4 bob3 bob2 ")
	check.ErrorIs(t, r.CreateSession(ctx, session("bob", 4), 1), store.ErrConflict)
	check.OK(t, r.CreateSession(ctx, session("bob", -9), 1)) // the clock of another instance
	check.Equal(t, "never the new one", names("bob"), "bob-9 ")
	want := session("eve", 1)
	check.OK(t, r.CreateSession(ctx, want, 1))
	got, err := r.Session(ctx, want.Key)
	check.OK(t, err)
	check.Equal(t, "session", got, want)
	check.OK(t, errors.Join(r.DeleteSession(ctx, want.Key), r.DeleteSession(ctx, want.Key)))
	_, err = r.Session(ctx, want.Key)
	check.ErrorIs(t, err, store.ErrNotFound)
}

func TestRevocationRecords(t *testing.T) {
	r, ctx := newWorld(t).store, t.Context()
	check.OK(t, errors.Join(r.Revoke(ctx, "a", start.Add(time.Hour)), r.Revoke(ctx, "a", start)))
	for _, tt := range []struct {
		names []string
		want  bool
	}{{nil, false}, {[]string{"b"}, false}, {[]string{"b", "a"}, true}, {[]string{"a", "a"}, true}} {
		yes, err := r.Revoked(ctx, tt.names...)
		check.OK(t, err)
		check.Equal(t, fmt.Sprint(tt.names), yes, tt.want)
	}
	revoked, err := r.RevokedOf(ctx, []string{"b", "a", "c"})
	check.OK(t, err)
	check.Equal(t, "revoked", revoked, []string{"a"})
	n, err := r.Sweep(ctx, start.Add(time.Minute))
	check.OK(t, err)
	check.Equal(t, "removed before the later time", n, 0)
	check.OK(t, r.RecordOnce(ctx, "once", start))
	check.ErrorIs(t, r.RecordOnce(ctx, "once", start), store.ErrConflict)
}
