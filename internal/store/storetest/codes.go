package storetest

import (
	"testing"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func testCodes(t *testing.T, target Target) {
	t.Helper()
	t.Run("create and look", func(t *testing.T) { createCode(t, target.fresh(t)) })
	t.Run("redeem for a family", func(t *testing.T) { redeemForFamily(t, target.fresh(t)) })
	t.Run("redeem for nothing", func(t *testing.T) { redeemForNothing(t, target.fresh(t)) })
	t.Run("one of 100 creators wins", func(t *testing.T) {
		b := target.fresh(t)
		errs := make([]error, 100)
		together(len(errs), func(i int) { errs[i] = b.CreateCode(t.Context(), code("c")) })
		onlyWinner(t, errs, grants.ErrExists)
	})
}

func createCode(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	bare := grants.Code{Digest: secret.DigestOf("bare"), IssuedAt: Epoch, ExpiresAt: Epoch}
	for _, c := range []grants.Code{code("full"), bare} {
		succeed(t, "create", b.CreateCode(ctx, c))
		failWith(t, "create twice", grants.ErrExists, b.CreateCode(ctx, c))
		for range 2 { // looking takes nothing
			got, err := b.Code(ctx, c.Digest)
			succeed(t, "look", err)
			equal(t, "code", c, got)
		}
	}
	_, err := b.Code(ctx, secret.DigestOf("never issued"))
	failWith(t, "look for a guess", grants.ErrNotFound, err)
	notFindable(t, b, "full")
}

func redeemForFamily(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c, first, late := code("c"), family("c"), later(family("c"), 1)
	failWith(t, "redeem a guess", grants.ErrNotFound, b.RedeemCode(ctx, c.Digest, &first))
	notFindable(t, b, "c")
	succeed(t, "create", b.CreateCode(ctx, c))
	succeed(t, "redeem", b.RedeemCode(ctx, c.Digest, &first))
	c.Claimed = true
	got, err := b.Code(ctx, c.Digest)
	succeed(t, "look at a claimed code", err)
	equal(t, "claimed code", c, got)
	readFamily(t, b, first)
	failWith(t, "redeem twice", grants.ErrClaimed, b.RedeemCode(ctx, c.Digest, &late))
	failWith(t, "redeem twice for nothing", grants.ErrClaimed, b.RedeemCode(ctx, c.Digest, nil))
	readFamily(t, b, first)
	failWith(t, "create again once claimed", grants.ErrExists, b.CreateCode(ctx, code("c")))
}

func redeemForNothing(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c, late := code("c"), family("c")
	failWith(t, "redeem a guess", grants.ErrNotFound, b.RedeemCode(ctx, c.Digest, nil))
	succeed(t, "create", b.CreateCode(ctx, c))
	succeed(t, "redeem", b.RedeemCode(ctx, c.Digest, nil))
	failWith(t, "redeem twice", grants.ErrClaimed, b.RedeemCode(ctx, c.Digest, nil))
	failWith(t, "redeem twice for a family", grants.ErrClaimed, b.RedeemCode(ctx, c.Digest, &late))
	notFindable(t, b, "c")
	got, err := b.Code(ctx, c.Digest)
	succeed(t, "look", err)
	if !got.Claimed {
		t.Error("a redeemed code is not claimed")
	}
}
