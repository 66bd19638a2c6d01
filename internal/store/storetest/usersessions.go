package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/grants"
)

// mostSessions is more than one user has in the tests about something else.
const mostSessions = 100

// sessionOf returns a session that the user began minutes after [Epoch].
func sessionOf(user string, minutes int) grants.Session {
	s := session(fmt.Sprint(user, " ", minutes))
	s.Username, s.CreatedAt = user, Epoch.Add(time.Duration(minutes)*time.Minute)
	s.ExpiresAt = s.CreatedAt.Add(24 * time.Hour)
	return s
}

// there returns which of the sessions of a user exist, by the minutes at which they began.
func there(t *testing.T, b Backend, user string, n int) (minutes []int) {
	t.Helper()
	for i := range n {
		_, err := b.Session(t.Context(), sessionOf(user, i).Digest)
		switch {
		case err == nil:
			minutes = append(minutes, i)
		case !errors.Is(err, grants.ErrNotFound):
			t.Fatal(err)
		}
	}
	return minutes
}

func testSessionsPerUser(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	begin := func(user string, minutes, most int) {
		t.Helper()
		succeed(t, "create", b.CreateSession(ctx, sessionOf(user, minutes), most))
	}
	for i := range 5 {
		begin("bob", i, 3)
		begin("älice", i, 3)
		begin("bo", i, 3)
	}
	equal(t, "the newest stay", []int{2, 3, 4}, there(t, b, "bob", 8))
	equal(t, "of every user", []int{2, 3, 4}, there(t, b, "bo", 8))

	succeed(t, "sign out", b.DeleteSession(ctx, sessionOf("bob", 3).Digest))
	begin("bob", 5, 3)
	equal(t, "one that has signed out does not count", []int{2, 4, 5}, there(t, b, "bob", 8))
	failWith(t, "create twice", grants.ErrExists, b.CreateSession(ctx, sessionOf("bob", 5), 1))
	equal(t, "one that was not created ends no other", []int{2, 4, 5}, there(t, b, "bob", 8))
	begin("bob", 0, 3)
	equal(t, "the new one stays, also if its clock is behind", []int{0, 4, 5}, there(t, b, "bob", 8))
	begin("bob", 6, 1)
	equal(t, "a lower bound ends all others", []int{6}, there(t, b, "bob", 8))

	sweep(t, b, sessionOf("bob", 6).ExpiresAt.Add(time.Millisecond), 7)
	begin("bob", 7, 1)
	equal(t, "after a sweep", []int{7}, there(t, b, "bob", 8))
	equal(t, "of another user", []int(nil), there(t, b, "bo", 8))

	all(t, 60, func(i int) error { return b.CreateSession(ctx, sessionOf("crowd", i), 4) })
	if left := there(t, b, "crowd", 60); len(left) > 4 || !slices.Contains(left, 59) {
		t.Errorf("after 60 at once, four of which may stay, there are %v", left)
	}
}
