package mongo

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// TestClaimsThroughFaults: requests and replies of claims get lost. At most one claim of a code
// succeeds, and the token of that claimer is the only one there is.
func TestClaimsThroughFaults(t *testing.T) {
	t.Parallel()
	const codes, claimers = 12, 8
	_, direct, proxy := throughProxy(t)
	var answers [codes][claimers]error
	for c := range codes {
		code := grants.Code{Digest: codeDigest(c), ExpiresAt: time.Now().Add(time.Hour)}
		if err := direct.CreateCode(t.Context(), code); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Decide(lossy(3))
	var wg sync.WaitGroup
	for i := range claimers {
		s := openAt(t, proxy.URI, direct.db.Name())
		for c := range codes {
			wg.Go(func() { answers[c][i] = s.RedeemCode(t.Context(), codeDigest(c), prize(c, i)) })
		}
	}
	wg.Wait()
	proxy.Decide(nil)
	if _, err := proxy.Deliver(); err != nil {
		t.Fatal(err)
	}
	for c := range codes {
		checkClaims(t, direct, c, answers[c][:])
	}
}

func checkClaims(t *testing.T, s *Store, c int, answers []error) {
	t.Helper()
	last := s.RedeemCode(t.Context(), codeDigest(c), nil)
	found, won := 0, 0
	for i, err := range answers {
		_, lost := s.RefreshToken(t.Context(), prize(c, i).Digest)
		if lost == nil {
			found++
		}
		if err == nil {
			won++
		}
		if err == nil && lost != nil || errors.Is(err, grants.ErrClaimed) && lost == nil {
			t.Errorf("code %d: claimer %d got %v, but its token: %v", c, i, err, lost)
		}
	}
	if won > 1 || found > 1 || (found == 1) != errors.Is(last, grants.ErrClaimed) {
		t.Errorf("code %d: %d won, %d tokens, and a last claim says %v", c, won, found, last)
	}
}

func codeDigest(c int) secret.Digest { return secret.DigestOf(fmt.Sprintf("code %d", c)) }

func prize(c, i int) *grants.RefreshToken {
	return &grants.RefreshToken{
		Digest: secret.DigestOf(fmt.Sprintf("code %d, claimer %d", c, i)), ExpiresAt: time.Now().Add(time.Hour),
	}
}

// TestOneClaimOfTheSameSuccessorThroughFaults: claimers that all store the token that is derived from
// they can be distinguished also where replies are lost.
func TestOneClaimOfTheSameSuccessorThroughFaults(t *testing.T) {
	t.Parallel()
	const tokens, claimers = 12, 16
	_, direct, proxy := throughProxy(t)
	var answers [tokens][claimers]error
	name := func(i int) string { return fmt.Sprintf("token %d", i) }
	refreshToken := func(name string) grants.RefreshToken {
		return grants.RefreshToken{Digest: secret.DigestOf(name), ExpiresAt: time.Now().Add(time.Hour)}
	}
	for i := range tokens {
		if err := direct.CreateRefreshToken(t.Context(), refreshToken(name(i))); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Decide(lossy(4))
	var wg sync.WaitGroup
	for c := range claimers {
		s := openAt(t, proxy.URI, direct.db.Name())
		for i := range tokens {
			wg.Go(func() {
				answers[i][c] = s.RotateRefreshToken(t.Context(), secret.DigestOf(name(i)), refreshToken("successor of "+name(i)))
			})
		}
	}
	wg.Wait()
	proxy.Decide(nil)
	if _, err := proxy.Deliver(); err != nil {
		t.Fatal(err)
	}
	for i := range tokens {
		won := 0
		for _, err := range answers[i] {
			if err == nil {
				won++
			}
		}
		_, lost := direct.RefreshToken(t.Context(), secret.DigestOf("successor of "+name(i)))
		if won > 1 || won == 1 && lost != nil {
			t.Errorf("%s: %d claimers won, and the successor: %v", name(i), won, lost)
		}
	}
}
