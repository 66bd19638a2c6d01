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

// testClaims has 100 claimers claim one code, or one generation of a family, at once, in several rounds:
// one wins, and what it stored is what there is.
func testClaims(t *testing.T, target Target) {
	t.Helper()
	t.Run("a code, for a family", func(t *testing.T) {
		b := target.fresh(t)
		fight(t, b, func(ctx context.Context, name string) error { return b.CreateCode(ctx, code(name)) },
			func(ctx context.Context, prize grants.Family) error { return b.RedeemCode(ctx, prize.Digest, &prize) })
	})
	t.Run("a generation", func(t *testing.T) {
		b := target.fresh(t)
		fight(t, b, func(ctx context.Context, name string) error { return b.CreateFamily(ctx, family(name)) },
			func(ctx context.Context, prize grants.Family) error {
				prize.Generation = 2
				return b.RotateFamily(ctx, prize)
			})
	})
	t.Run("a code, for nothing", func(t *testing.T) {
		b := target.fresh(t)
		for round := range claimRounds {
			name := fmt.Sprintf("round %d", round)
			succeed(t, "create", b.CreateCode(t.Context(), code(name)))
			errs := make([]error, claimers)
			together(claimers, func(i int) { errs[i] = b.RedeemCode(t.Context(), secret.DigestOf(name), nil) })
			onlyWinner(t, errs, grants.ErrClaimed)
			notFindable(t, b, name)
		}
	})
	t.Run("generation after generation", func(t *testing.T) { climb(t, target.fresh(t)) })
	t.Run("cancelled in the middle", func(t *testing.T) { cancelledClaims(t, target.fresh(t)) })
}

// prize is the family as claimer i stores it.
func prize(name string, i int) grants.Family {
	f := family(name)
	f.ExpiresAt = f.ExpiresAt.Add(time.Duration(i) * time.Second)
	return f
}

// claimerOf returns which claimer has stored the family.
func claimerOf(f *grants.Family) int {
	first := family("")
	return int(f.ExpiresAt.Sub(first.ExpiresAt) / time.Second)
}

func fight(
	t *testing.T, b Backend, create func(ctx context.Context, name string) error,
	claim func(ctx context.Context, prize grants.Family) error,
) {
	t.Helper()
	for round := range claimRounds {
		name := fmt.Sprintf("round %d", round)
		succeed(t, "create", create(t.Context(), name))
		errs := make([]error, claimers)
		together(claimers, func(i int) { errs[i] = claim(t.Context(), prize(name, i)) })
		winner := onlyWinner(t, errs, grants.ErrClaimed)
		got, err := b.Family(t.Context(), secret.DigestOf(name))
		succeed(t, "the winner's family", err)
		want := prize(name, winner)
		want.Generation = got.Generation
		equal(t, "family", want, got)
	}
}

// climb has claimers rotate one family, each to the generation after the one that it has read. Each
// generation has one winner, so as many have won as there are generations.
func climb(t *testing.T, b Backend) {
	t.Helper()
	const writers, attempts = 16, 20
	first := family("f")
	succeed(t, "create", b.CreateFamily(t.Context(), first))
	won := make([]uint32, writers)
	errs := make([]error, writers)
	together(writers, func(i int) {
		for range attempts {
			read, err := b.Family(t.Context(), first.Digest)
			if err != nil {
				errs[i] = err
				return
			}
			if b.RotateFamily(t.Context(), later(first, read.Generation+1)) == nil {
				won[i]++
			}
		}
	})
	wins := uint32(1)
	for i := range writers {
		succeed(t, "read", errs[i])
		wins += won[i]
	}
	readFamily(t, b, later(first, wins))
}

// cancelledClaims cancels claims while they are under way. Whatever their outcome, there is no more than
// one family, and none beside an unclaimed code.
func cancelledClaims(t *testing.T, b Backend) {
	t.Helper()
	for round := range claimRounds {
		name := fmt.Sprintf("round %d", round)
		succeed(t, "create", b.CreateCode(t.Context(), code(name)))
		cancelled := func(claim func(ctx context.Context, i int) error) []error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			errs := make([]error, claimers)
			together(claimers, func(i int) {
				if i == claimers/2 {
					cancel()
				}
				errs[i] = claim(ctx, i)
			})
			return errs
		}
		errs := cancelled(func(ctx context.Context, i int) error {
			f := prize(name, i)
			return b.RedeemCode(ctx, f.Digest, &f)
		})
		// A last claim settles what is still on its way to a server.
		last := b.RedeemCode(t.Context(), secret.DigestOf(name), nil)
		checkCancelled(t, b, name, errs, last)
		if last == nil {
			continue
		}
		errs = cancelled(func(ctx context.Context, i int) error {
			f := prize(name, i)
			f.Generation = 2
			return b.RotateFamily(ctx, f)
		})
		settled := prize(name, claimers)
		settled.Generation = 2
		if last = b.RotateFamily(t.Context(), settled); last == nil {
			errs = append(errs, nil)
		}
		checkCancelled(t, b, name, errs, grants.ErrClaimed)
	}
}

func checkCancelled(t *testing.T, b Backend, name string, errs []error, last error) {
	t.Helper()
	if last != nil {
		failWith(t, "last claim", grants.ErrClaimed, last)
	}
	got, err := b.Family(t.Context(), secret.DigestOf(name))
	if (err == nil) != (last != nil) {
		t.Errorf("%s: the last claim said %v, and the family: %v", name, last, err)
	}
	for i := range errs {
		if errs[i] == nil && (err != nil || claimerOf(&got) != i) {
			t.Errorf("%s: claimer %d won, but the family is %+v, %v", name, i, got, err)
		}
	}
}
