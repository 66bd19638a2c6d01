package storetest

import (
	"testing"

	"oauth-server/internal/grants"
)

func testSessions(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	want := session("cookie")
	_, err := b.Session(ctx, want.Digest)
	failWith(t, "look for a guess", grants.ErrNotFound, err)
	succeed(t, "delete what is not there", b.DeleteSession(ctx, want.Digest))
	succeed(t, "create", b.CreateSession(ctx, want, mostSessions))
	failWith(t, "create twice", grants.ErrExists, b.CreateSession(ctx, want, mostSessions))
	succeed(t, "create another", b.CreateSession(ctx, session("other"), mostSessions))
	got, err := b.Session(ctx, want.Digest)
	succeed(t, "look", err)
	equal(t, "session", want, got)
	succeed(t, "delete", b.DeleteSession(ctx, want.Digest))
	_, err = b.Session(ctx, want.Digest)
	failWith(t, "look for the one that signed out", grants.ErrNotFound, err)
	_, err = b.Session(ctx, session("other").Digest)
	succeed(t, "the other stays", err)
}
