package storetest

import (
	"testing"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func testRefreshTokens(t *testing.T, target Target) {
	t.Helper()
	t.Run("create and look", func(t *testing.T) { createToken(t, target.fresh(t)) })
	t.Run("rotate", func(t *testing.T) { rotateToken(t, target.fresh(t)) })
	t.Run("rotate a long chain", func(t *testing.T) { rotateChain(t, target.fresh(t)) })
	t.Run("one of 100 creators wins", func(t *testing.T) {
		b := target.fresh(t)
		errs := make([]error, 100)
		together(len(errs), func(i int) { errs[i] = b.CreateRefreshToken(t.Context(), token("t")) })
		onlyWinner(t, errs, grants.ErrExists)
	})
}

func createToken(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	bare := grants.RefreshToken{Digest: secret.DigestOf("bare"), IssuedAt: Epoch, ExpiresAt: Epoch}
	for _, want := range []grants.RefreshToken{token("full"), bare} {
		succeed(t, "create", b.CreateRefreshToken(ctx, want))
		failWith(t, "create twice", grants.ErrExists, b.CreateRefreshToken(ctx, want))
		got, err := b.RefreshToken(ctx, want.Digest)
		succeed(t, "look", err)
		equal(t, "token", want, got)
	}
	notFindable(t, b, "never issued")
	_, err := b.Code(ctx, token("full").Digest)
	failWith(t, "look for a token among the codes", grants.ErrNotFound, err)
	failWith(t, "redeem a token as a code", grants.ErrNotFound, b.RedeemCode(ctx, token("full").Digest, nil))
}

func rotateToken(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	first, second, late := token("first"), token("second"), token("late")
	succeed(t, "create", b.CreateRefreshToken(ctx, first))
	succeed(t, "rotate", b.RotateRefreshToken(ctx, first.Digest, second))
	failWith(t, "rotate twice", grants.ErrClaimed, b.RotateRefreshToken(ctx, first.Digest, late))
	notFindable(t, b, "late")
	first.Claimed = true
	for _, want := range []grants.RefreshToken{first, second} {
		got, err := b.RefreshToken(ctx, want.Digest)
		succeed(t, "look", err)
		equal(t, "token", want, got)
	}
	failWith(t, "create the successor again", grants.ErrExists, b.CreateRefreshToken(ctx, second))
}

func rotateChain(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	const length = 20
	name := func(i int) string { return "link " + string(rune('a'+i)) }
	succeed(t, "create code", b.CreateCode(ctx, code("code")))
	next := token(name(0))
	succeed(t, "redeem", b.RedeemCode(ctx, secret.DigestOf("code"), &next))
	for i := range length {
		succeed(t, "rotate", b.RotateRefreshToken(ctx, secret.DigestOf(name(i)), token(name(i+1))))
	}
	for i := range length + 1 {
		got, err := b.RefreshToken(ctx, secret.DigestOf(name(i)))
		succeed(t, "look", err)
		if got.Claimed != (i < length) {
			t.Errorf("%s: claimed is %v", name(i), got.Claimed)
		}
	}
}
