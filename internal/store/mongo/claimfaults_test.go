package mongo

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/mongo/mongotest"
)

// prize is the family as claimer i stores it, in that generation.
func prize(family, i int, generation uint32) grants.Family {
	return grants.Family{
		Digest: secret.DigestOf(fmt.Sprintf("code %d", family)), Generation: generation,
		IssuedAt: time.UnixMilli(int64(i)).UTC(), ExpiresAt: time.Now().Add(time.Hour),
	}
}

// TestClaimsThroughFaults: requests and replies of claims get lost. At most one claim of a code
// succeeds, and the family is as that claimer has stored it.
func TestClaimsThroughFaults(t *testing.T) {
	t.Parallel()
	claimThroughFaults(t, 1, func(s *Store, family, i int) error {
		first := prize(family, i, 1)
		return s.RedeemCode(t.Context(), first.Digest, &first)
	})
}

// TestRotationsThroughFaults: neither do two rotations of one generation, although all make the next.
func TestRotationsThroughFaults(t *testing.T) {
	t.Parallel()
	claimThroughFaults(t, 2, func(s *Store, family, i int) error { return s.RotateFamily(t.Context(), prize(family, i, 2)) })
}

// claimThroughFaults has claimers make that generation of several families, which are codes before 1.
func claimThroughFaults(t *testing.T, generation uint32, claim func(s *Store, family, i int) error) {
	t.Helper()
	const families, claimers = 12, 12
	_, direct, proxy := throughProxy(t)
	var answers [families][claimers]error
	for f := range families {
		before := prize(f, claimers, generation-1)
		err := direct.CreateCode(t.Context(), grants.Code{Digest: before.Digest, ExpiresAt: before.ExpiresAt})
		if generation > 1 {
			err = errors.Join(err, direct.RedeemCode(t.Context(), before.Digest, &before))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	proxy.Decide(lossy(3))
	var wg sync.WaitGroup
	for i := range claimers {
		s := openAt(t, proxy.URI, direct.db.Name())
		for f := range families {
			wg.Go(func() { answers[f][i] = claim(s, f, i) })
		}
	}
	wg.Wait()
	proxy.Decide(nil)
	if _, err := proxy.Deliver(); err != nil {
		t.Fatal(err)
	}
	for f := range families {
		last := claim(direct, f, claimers+1)
		stored, err := direct.Family(t.Context(), prize(f, 0, 1).Digest)
		if err != nil || stored.Generation != generation {
			t.Errorf("family %d is %+v, %v", f, stored, err)
		}
		won := 0
		claimed := func(i int, err error) {
			if err != nil {
				return
			}
			if won++; stored.IssuedAt.UnixMilli() != int64(i) {
				t.Errorf("family %d: claimer %d won, and that of %d is stored", f, i, stored.IssuedAt.UnixMilli())
			}
		}
		for i, err := range answers[f] {
			claimed(i, err)
		}
		claimed(claimers+1, last)
		if won > 1 || last != nil && !errors.Is(last, grants.ErrClaimed) {
			t.Errorf("family %d: %d won, and a last claim says %v", f, won, last)
		}
	}
}

// TestRotationLostOnTheWay: one rotation whose request or reply is lost, by what is true afterwards.
func TestRotationLostOnTheWay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault mongotest.Fault
		want  error // of the same rotation, sent again
		won   bool
	}{
		"the request": {mongotest.LoseRequest, nil, false},
		"the reply":   {mongotest.LoseReply, grants.ErrClaimed, true},
		"late":        {mongotest.Delay, grants.ErrClaimed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, direct, proxy := throughProxy(t)
			if err := direct.CreateFamily(t.Context(), prize(0, 0, 1)); err != nil {
				t.Fatal(err)
			}
			proxy.Once("update", tc.fault)
			err := s.RotateFamily(t.Context(), prize(0, 1, 2))
			if (err == nil) != tc.won || errors.Is(err, grants.ErrClaimed) {
				t.Errorf("RotateFamily() = %v, won: %v", err, tc.won)
			}
			if _, err := proxy.Deliver(); err != nil {
				t.Fatal(err)
			}
			if again := s.RotateFamily(t.Context(), prize(0, 2, 2)); !errors.Is(again, tc.want) {
				t.Errorf("again: %v, want %v", again, tc.want)
			}
			if got, err := direct.Family(t.Context(), prize(0, 0, 1).Digest); err != nil || got.Generation != 2 {
				t.Errorf("the family is %+v, %v", got, err)
			}
		})
	}
}
