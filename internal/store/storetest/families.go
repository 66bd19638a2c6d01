package storetest

import (
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func testFamilies(t *testing.T, target Target) {
	t.Helper()
	t.Run("create and read", func(t *testing.T) { createFamily(t, target.fresh(t)) })
	t.Run("rotate", func(t *testing.T) { rotateFamily(t, target.fresh(t)) })
	t.Run("rotate often", func(t *testing.T) { rotateOften(t, target.fresh(t)) })
	t.Run("one of 100 creators wins", func(t *testing.T) {
		b := target.fresh(t)
		errs := make([]error, 100)
		together(len(errs), func(i int) { errs[i] = b.CreateFamily(t.Context(), family("f")) })
		onlyWinner(t, errs, grants.ErrExists)
	})
}

func createFamily(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	bare := grants.Family{Digest: secret.DigestOf("bare"), Generation: 1, IssuedAt: Epoch, ExpiresAt: Epoch}
	high := family("high")
	high.Generation = 1<<32 - 1
	for _, want := range []grants.Family{family("full"), bare, high} {
		succeed(t, "create", b.CreateFamily(ctx, want))
		failWith(t, "create twice", grants.ErrExists, b.CreateFamily(ctx, want))
		readFamily(t, b, want)
	}
	notFindable(t, b, "never begun")
	_, err := b.Code(ctx, family("full").Digest)
	failWith(t, "look for a family among the codes", grants.ErrNotFound, err)
	failWith(t, "redeem a family as a code", grants.ErrNotFound, b.RedeemCode(ctx, family("full").Digest, nil))
}

// readFamily checks that the family is stored as wanted.
func readFamily(t *testing.T, b Backend, want grants.Family) {
	t.Helper()
	got, err := b.Family(t.Context(), want.Digest)
	succeed(t, "read family", err)
	equal(t, "family", want, got)
}

// later returns the family in its generation g, which was issued so many minutes after the first.
func later(f grants.Family, g uint32) grants.Family {
	f.Generation = g
	f.IssuedAt, f.ExpiresAt = f.IssuedAt.Add(time.Duration(g)*time.Minute), f.ExpiresAt.Add(time.Duration(g)*time.Minute)
	return f
}

func rotateFamily(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	first, other := family("f"), family("other")
	second, third := later(first, 2), later(first, 3)
	failWith(t, "rotate what is not there", grants.ErrNotFound, b.RotateFamily(ctx, second))
	notFindable(t, b, "f")
	succeed(t, "create", b.CreateFamily(ctx, first))
	succeed(t, "create another", b.CreateFamily(ctx, other))
	failWith(t, "skip a generation", grants.ErrClaimed, b.RotateFamily(ctx, third))
	failWith(t, "rotate to the same", grants.ErrClaimed, b.RotateFamily(ctx, first))
	second.ClientStamp, third.ClientStamp = stamp("second"), stamp("third")
	succeed(t, "rotate", b.RotateFamily(ctx, second))
	failWith(t, "rotate twice", grants.ErrClaimed, b.RotateFamily(ctx, second))
	readFamily(t, b, second)
	failWith(t, "create it again", grants.ErrExists, b.CreateFamily(ctx, first))

	changed := third
	changed.ClientID, changed.Username, changed.Scopes, changed.Family = "x", "x", nil, "x"
	changed.AuthTime, changed.ExpiresAt = Epoch.Add(time.Hour), Epoch.Add(30*time.Minute)
	succeed(t, "rotate to one that ends earlier", b.RotateFamily(ctx, changed))
	third.ExpiresAt = changed.ExpiresAt
	readFamily(t, b, third) // of the same authorization
	readFamily(t, b, other)
}

func rotateOften(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	const times = 300
	first := family("code")
	succeed(t, "create code", b.CreateCode(ctx, code("code")))
	succeed(t, "redeem", b.RedeemCode(ctx, first.Digest, &first))
	for g := range uint32(times) {
		succeed(t, "rotate", b.RotateFamily(ctx, later(first, g+2)))
	}
	readFamily(t, b, later(first, times+1))
	failWith(t, "redeem again", grants.ErrClaimed, b.RedeemCode(ctx, first.Digest, nil))
	for _, g := range []uint32{1, 2, times / 2, times, times + 1, times + 3} {
		failWith(t, "rotate to another than the next", grants.ErrClaimed, b.RotateFamily(ctx, later(first, g)))
	}
}

// notFindable checks that there is no family of that secret.
func notFindable(t *testing.T, b Backend, name string) {
	t.Helper()
	_, err := b.Family(t.Context(), secret.DigestOf(name))
	failWith(t, "look for "+name, grants.ErrNotFound, err)
	failWith(t, "rotate "+name, grants.ErrNotFound, b.RotateFamily(t.Context(), later(family(name), 2)))
}
