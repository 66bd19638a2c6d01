package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func testSweep(t *testing.T, target Target) {
	t.Helper()
	t.Run("of nothing", func(t *testing.T) { sweep(t, target.fresh(t), Epoch, 0) })
	t.Run("each kind at its time, not before", func(t *testing.T) { sweepKinds(t, target.fresh(t)) })
	t.Run("claimed ones stay until they expire", func(t *testing.T) { sweepClaimed(t, target.fresh(t)) })
	t.Run("a family that expires before its code", func(t *testing.T) { sweepClaim(t, target.fresh(t)) })
	t.Run("families at their time, however often they were refreshed", func(t *testing.T) { sweepRotated(t, target.fresh(t)) })
	t.Run("many, while others write", func(t *testing.T) { sweepMany(t, target.fresh(t)) })
	t.Run("what does not expire stays", func(t *testing.T) {
		b, ctx := target.fresh(t), t.Context()
		succeed(t, "create", errors.Join(b.CreateUser(ctx, user("u"))))
		sweep(t, b, Epoch.Add(100*365*24*time.Hour), 0)
		_, err := b.User(ctx, "u")
		succeed(t, "user", err)
	})
}

func sweepKinds(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c, f, s := code("c"), family("f"), session("s")
	c.ExpiresAt, f.ExpiresAt, s.ExpiresAt = Epoch.Add(1*time.Hour), Epoch.Add(2*time.Hour), Epoch.Add(3*time.Hour)
	succeed(t, "create", errors.Join(b.CreateCode(ctx, c), b.CreateFamily(ctx, f),
		b.CreateSession(ctx, s, mostSessions), b.Revoke(ctx, "name", Epoch.Add(4*time.Hour))))
	//nolint:contextcheck // revoked takes the test's context itself
	there := func() (list [4]bool) {
		_, noCode := b.Code(ctx, c.Digest)
		_, noFamily := b.Family(ctx, f.Digest)
		_, noSession := b.Session(ctx, s.Digest)
		return [4]bool{noCode == nil, noFamily == nil, noSession == nil, revoked(t, b, "name")}
	}
	for i := range 4 {
		var want [4]bool
		for j := i; j < 4; j++ {
			want[j] = true
		}
		at := Epoch.Add(time.Duration(i+1) * time.Hour)
		sweep(t, b, at, 0) // what expires now has not expired before now
		equal(t, fmt.Sprintf("there before %d", i), want, there())
		sweep(t, b, at.Add(time.Millisecond), 1)
		want[i] = false
		equal(t, fmt.Sprintf("there after %d", i), want, there())
	}
	succeed(t, "a swept digest is free again", b.CreateCode(ctx, c))
}

func sweepClaimed(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c, first := code("c"), family("c")
	succeed(t, "create", b.CreateCode(ctx, c))
	succeed(t, "redeem", b.RedeemCode(ctx, c.Digest, &first))
	second := later(first, 2)
	succeed(t, "rotate", b.RotateFamily(ctx, second))
	sweep(t, b, c.ExpiresAt, 0)
	failWith(t, "redeem a claimed code", grants.ErrClaimed, b.RedeemCode(ctx, c.Digest, nil))
	sweep(t, b, c.ExpiresAt.Add(time.Millisecond), 1)
	_, err := b.Code(ctx, c.Digest)
	failWith(t, "look for a swept code", grants.ErrNotFound, err)
	readFamily(t, b, second)
	failWith(t, "rotate twice", grants.ErrClaimed, b.RotateFamily(ctx, second))
	sweep(t, b, second.ExpiresAt.Add(time.Millisecond), 1)
	notFindable(t, b, "c")
}

// sweepClaim: removing a family must never make its code claimable, also if it was rotated to a
// generation that expires earlier.
func sweepClaim(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	c, first := code("c"), family("c")
	c.ExpiresAt = first.ExpiresAt
	first.ExpiresAt = c.ExpiresAt.Add(-time.Minute)
	succeed(t, "create", b.CreateCode(ctx, c))
	succeed(t, "redeem", b.RedeemCode(ctx, c.Digest, &first))
	second := first
	second.Generation, second.ExpiresAt = 2, first.ExpiresAt.Add(-time.Minute)
	succeed(t, "rotate", b.RotateFamily(ctx, second))
	_, err := b.Sweep(ctx, first.ExpiresAt.Add(time.Millisecond))
	succeed(t, "sweep", err)
	failWith(t, "redeem again", grants.ErrClaimed, b.RedeemCode(ctx, c.Digest, nil))
	_, err = b.Sweep(ctx, c.ExpiresAt.Add(time.Millisecond))
	succeed(t, "sweep", err)
	notFindable(t, b, "c")
	_, err = b.Code(ctx, c.Digest)
	failWith(t, "look for a swept code", grants.ErrNotFound, err)
}

// sweepRotated refreshes every other of many families, and sweeps when the first token of all has
// expired.
func sweepRotated(t *testing.T, b Backend) {
	t.Helper()
	const n = 700 // more than any backend takes in one step
	ctx := t.Context()
	name := func(i int) string { return fmt.Sprintf("family %d", i) }
	all(t, n, func(i int) error {
		first := family(name(i))
		err := b.CreateFamily(ctx, first)
		for g := range uint32(i % 2 * 3) {
			err = errors.Join(err, b.RotateFamily(ctx, later(first, g+2)))
		}
		return err
	})
	end := family("").ExpiresAt
	sweep(t, b, end, 0)
	sweep(t, b, end.Add(time.Millisecond), n/2)
	sweep(t, b, end.Add(time.Millisecond), 0)
	all(t, n, func(i int) error {
		_, err := b.Family(ctx, secret.DigestOf(name(i)))
		if (i%2 == 0) != errors.Is(err, grants.ErrNotFound) {
			return fmt.Errorf("%s: %w", name(i), err)
		}
		return nil
	})
	all(t, n/2, func(i int) error { return b.RotateFamily(ctx, later(family(name(2*i+1)), 5)) })
	sweep(t, b, end.Add(5*time.Minute), 0)
	sweep(t, b, end.Add(5*time.Minute+time.Millisecond), n/2)
	notFindable(t, b, name(1))
}

func sweepMany(t *testing.T, b Backend) {
	t.Helper()
	const n = 1500 // more than any backend takes in one step
	ctx := t.Context()
	name := func(i int) string { return fmt.Sprintf("code %d", i) }
	all(t, n, func(i int) error {
		c := code(name(i))
		if i%3 == 0 {
			c.ExpiresAt = Epoch.Add(-time.Duration(i+1) * time.Millisecond)
		}
		return b.CreateCode(ctx, c)
	})
	done := make(chan error, 1)
	go func() {
		for i := range 20 {
			if err := b.CreateSession(ctx, session(fmt.Sprintf("session %d", i)), mostSessions); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	sweep(t, b, Epoch, n/3)
	succeed(t, "write while sweeping", <-done)
	all(t, n, func(i int) error {
		_, err := b.Code(ctx, secret.DigestOf(name(i)))
		if (i%3 == 0) != errors.Is(err, grants.ErrNotFound) {
			return fmt.Errorf("%s: %w", name(i), err)
		}
		return nil
	})
}
