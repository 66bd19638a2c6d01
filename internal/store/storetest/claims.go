package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

const (
	claimers    = 100
	claimRounds = 10
)

// testClaims has 100 claimers claim one code or token at once, in several rounds: one wins, and only
// the successor that it stored can be found.
func testClaims(t *testing.T, target Target) {
	t.Helper()
	t.Run("a code, for tokens", func(t *testing.T) {
		b := target.fresh(t)
		fight(t, b, createCodeNamed(b), func(ctx context.Context, d secret.Digest, next grants.RefreshToken) error {
			return b.RedeemCode(ctx, d, &next)
		})
	})
	t.Run("a refresh token", func(t *testing.T) {
		b := target.fresh(t)
		create := func(ctx context.Context, name string) error { return b.CreateRefreshToken(ctx, token(name)) }
		fight(t, b, create, b.RotateRefreshToken)
	})
	t.Run("a refresh token, for the same successor", func(t *testing.T) { sameSuccessor(t, target.fresh(t)) })
	t.Run("a code, for nothing", func(t *testing.T) {
		b := target.fresh(t)
		for round := range claimRounds {
			name := fmt.Sprintf("round %d", round)
			succeed(t, "create", b.CreateCode(t.Context(), code(name)))
			errs := make([]error, claimers)
			together(claimers, func(i int) { errs[i] = b.RedeemCode(t.Context(), secret.DigestOf(name), nil) })
			onlyWinner(t, errs, grants.ErrClaimed)
		}
	})
	t.Run("cancelled in the middle", func(t *testing.T) { cancelledClaims(t, target.fresh(t)) })
}

func createCodeNamed(b Backend) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error { return b.CreateCode(ctx, code(name)) }
}

func fight(
	t *testing.T, b Backend, create func(ctx context.Context, name string) error,
	claim func(ctx context.Context, d secret.Digest, next grants.RefreshToken) error,
) {
	t.Helper()
	for round := range claimRounds {
		name := fmt.Sprintf("round %d", round)
		prize := func(i int) string { return fmt.Sprintf("%s, claimer %d", name, i) }
		succeed(t, "create", create(t.Context(), name))
		errs := make([]error, claimers)
		together(claimers, func(i int) { errs[i] = claim(t.Context(), secret.DigestOf(name), token(prize(i))) })
		winner := onlyWinner(t, errs, grants.ErrClaimed)
		all(t, claimers, func(i int) error { return onlyPrize(t.Context(), b, prize(i), i == winner) })
	}
}

func onlyPrize(ctx context.Context, b Backend, name string, won bool) error {
	got, err := b.RefreshToken(ctx, secret.DigestOf(name))
	switch {
	case won && err != nil:
		return fmt.Errorf("the winner's token is lost: %w", err)
	case won && got.Claimed:
		return fmt.Errorf("the winner's token is claimed: %+v", got)
	case !won && err == nil:
		return fmt.Errorf("%s lost, but its token can be found", name)
	}
	return nil
}

// cancelledClaims cancels claims while they are under way. Whatever their outcome, no more than one
// token may exist, and none beside an unclaimed code.
func cancelledClaims(t *testing.T, b Backend) {
	t.Helper()
	for round := range claimRounds {
		name := fmt.Sprintf("round %d", round)
		prize := func(i int) string { return fmt.Sprintf("%s, claimer %d", name, i) }
		succeed(t, "create", b.CreateCode(t.Context(), code(name)))
		ctx, cancel := context.WithCancel(t.Context())
		errs := make([]error, claimers)
		together(claimers, func(i int) {
			if i == claimers/2 {
				cancel()
			}
			next := token(prize(i))
			errs[i] = b.RedeemCode(ctx, secret.DigestOf(name), &next)
		})
		cancel()
		checkCancelled(t, b, name, prize, errs)
	}
}

func checkCancelled(t *testing.T, b Backend, name string, prize func(int) string, errs []error) {
	t.Helper()
	// A last claim settles what is still on its way to a server.
	last := b.RedeemCode(t.Context(), secret.DigestOf(name), nil)
	if last != nil {
		failWith(t, "last claim", grants.ErrClaimed, last)
	}
	found := 0
	for i := range errs {
		_, err := b.RefreshToken(t.Context(), secret.DigestOf(prize(i)))
		if err == nil {
			found++
		}
		if errs[i] == nil && err != nil {
			t.Errorf("%s won, but its token is lost: %v", prize(i), err)
		}
	}
	if found > 1 || (found == 1) != (last != nil) {
		t.Errorf("%s: the last claim said %v, and %d tokens can be found", name, last, found)
	}
}

// sameSuccessor has all claimers store the same token, as they do if it is derived from the one that
// they claim. One wins all the same, and the token is as the winner stored it.
func sameSuccessor(t *testing.T, b Backend) {
	t.Helper()
	for round := range claimRounds {
		name := fmt.Sprintf("round %d", round)
		succeed(t, "create", b.CreateRefreshToken(t.Context(), token(name)))
		errs := make([]error, claimers)
		together(claimers, func(i int) {
			next := token("successor of " + name)
			next.ExpiresAt = next.ExpiresAt.Add(time.Duration(i) * time.Second)
			errs[i] = b.RotateRefreshToken(t.Context(), secret.DigestOf(name), next)
		})
		winner := onlyWinner(t, errs, grants.ErrClaimed)
		got, err := b.RefreshToken(t.Context(), secret.DigestOf("successor of "+name))
		succeed(t, "look", err)
		want := token("successor of " + name)
		want.ExpiresAt = want.ExpiresAt.Add(time.Duration(winner) * time.Second)
		equal(t, "successor", want, got)
	}
}
