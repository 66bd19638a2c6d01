package storetest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// EarlierText returns the code or refresh token of that name in the data that an earlier release has
// written.
func EarlierText(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// EarlierSuccessor returns the successor that an earlier release has derived from a refresh token there.
func EarlierSuccessor(of string) string { return EarlierText("refresh token successor\x00" + of) }

// testEarlier reads and claims what an earlier release has written.
func testEarlier(t *testing.T, target Target) {
	t.Helper()
	t.Run("tokens", func(t *testing.T) { earlierTokens(t, target) })
	t.Run("codes", func(t *testing.T) { earlierCodes(t, target) })
	t.Run("adopt", func(t *testing.T) { adoptToken(t, target) })
	t.Run("a token, by 100 at once", func(t *testing.T) {
		b, _ := target.Earlier(t)
		d := secret.DigestOf(EarlierText("unused"))
		errs := make([]error, claimers)
		together(claimers, func(i int) {
			f := prize("", i)
			f.Digest = d
			errs[i] = b.AdoptToken(t.Context(), d, f)
		})
		winner := onlyWinner(t, errs, grants.ErrClaimed)
		got, err := b.Family(t.Context(), d)
		succeed(t, "the winner's family", err)
		if claimerOf(&got) != winner {
			t.Errorf("claimer %d won, and the family is %+v", winner, got)
		}
	})
	t.Run("swept", func(t *testing.T) { sweepEarlier(t, target) })
}

func earlierAuthorization(family string, issued time.Time) grants.Authorization {
	return grants.Authorization{
		ClientID: "shop", Username: "alice", Scopes: []string{"read", "write"}, Family: "family of " + family,
		AuthTime: issued.Add(-time.Minute),
	}
}

func earlierTokens(t *testing.T, target Target) {
	t.Helper()
	b, issued := target.Earlier(t)
	for _, tc := range []struct {
		family, text string
		claimed      bool
	}{
		{"unused", EarlierText("unused"), false},
		{"rotated", EarlierText("rotated"), true},
		{"rotated", EarlierSuccessor(EarlierText("rotated")), false},
		{"spent", EarlierText("spent"), true},
		{"spent", EarlierSuccessor(EarlierText("spent")), true},
		{"spent", EarlierSuccessor(EarlierSuccessor(EarlierText("spent"))), false},
		{"random", EarlierText("random"), true},
		{"random", EarlierText("random successor"), false},
		{"bought", EarlierText("bought token"), false},
	} {
		want := grants.EarlierToken{
			Authorization: earlierAuthorization(tc.family, issued), Digest: secret.DigestOf(tc.text),
			IssuedAt: issued, ExpiresAt: issued.Add(30 * 24 * time.Hour), Claimed: tc.claimed,
		}
		got, err := b.EarlierToken(t.Context(), want.Digest)
		succeed(t, "look for "+tc.family, err)
		equal(t, tc.family, want, got)
		_, err = b.Family(t.Context(), want.Digest)
		failWith(t, "family of "+tc.family, grants.ErrNotFound, err)
		next := later(grants.Family{Digest: want.Digest}, 1)
		failWith(t, "rotate "+tc.family, grants.ErrNotFound, b.RotateFamily(t.Context(), next))
		if tc.claimed {
			failWith(t, "adopt "+tc.family, grants.ErrClaimed, b.AdoptToken(t.Context(), want.Digest, next))
		}
	}
}

func earlierCodes(t *testing.T, target Target) {
	t.Helper()
	b, _ := target.Earlier(t)
	for name, claimed := range map[string]bool{"open code": false, "bought": true, "for nothing": true} {
		first := family("")
		first.Digest = secret.DigestOf(EarlierText(name))
		got, err := b.Code(t.Context(), first.Digest)
		succeed(t, "look for "+name, err)
		equal(t, name+" is claimed", claimed, got.Claimed)
		err = b.RedeemCode(t.Context(), first.Digest, &first)
		if claimed {
			failWith(t, "redeem "+name, grants.ErrClaimed, err)
			continue
		}
		succeed(t, "redeem "+name, err)
		readFamily(t, b, first)
		_, err = b.EarlierToken(t.Context(), first.Digest) // it would need no PKCE verifier
		failWith(t, "look for a code among the tokens", grants.ErrNotFound, err)
	}
}

func adoptToken(t *testing.T, target Target) {
	t.Helper()
	b, issued := target.Earlier(t)
	ctx := t.Context()
	d := secret.DigestOf(EarlierText("unused"))
	first := grants.Family{
		Authorization: earlierAuthorization("unused", issued), Digest: d, Generation: 1,
		IssuedAt: issued.Add(time.Hour), ExpiresAt: issued.Add(time.Hour * 24),
	}
	unknown := first
	unknown.Digest = secret.DigestOf("never issued")
	failWith(t, "adopt a guess", grants.ErrNotFound, b.AdoptToken(ctx, unknown.Digest, unknown))
	succeed(t, "adopt", b.AdoptToken(ctx, d, first))
	failWith(t, "adopt twice", grants.ErrClaimed, b.AdoptToken(ctx, d, first))
	readFamily(t, b, first)
	token, err := b.EarlierToken(ctx, d)
	succeed(t, "look for the token", err)
	equal(t, "claimed", true, token.Claimed)
	for g := range uint32(5) {
		succeed(t, "rotate", b.RotateFamily(ctx, later(first, g+2)))
	}
	failWith(t, "adopt after rotations", grants.ErrClaimed, b.AdoptToken(ctx, d, first))

	code := secret.DigestOf(EarlierText("open code"))
	failWith(t, "adopt a code", grants.ErrNotFound, b.AdoptToken(ctx, code, first))
}

// sweepEarlier: a token whose family ends first cannot be claimed again.
func sweepEarlier(t *testing.T, target Target) {
	t.Helper()
	b, issued := target.Earlier(t)
	ctx := t.Context()
	d, expires := secret.DigestOf(EarlierText("unused")), issued.Add(30*24*time.Hour)
	first := grants.Family{Digest: d, Generation: 1, IssuedAt: issued, ExpiresAt: issued.Add(time.Hour)}
	succeed(t, "adopt", b.AdoptToken(ctx, d, first))
	_, err := b.Sweep(ctx, expires)
	succeed(t, "sweep", err)
	failWith(t, "adopt again", grants.ErrClaimed, b.AdoptToken(ctx, d, first))
	_, err = b.Sweep(ctx, expires.Add(time.Millisecond))
	succeed(t, "sweep", err)
	for i, text := range []string{EarlierText("unused"), EarlierText("spent"), EarlierSuccessor(EarlierText("spent"))} {
		_, err := b.EarlierToken(ctx, secret.DigestOf(text))
		failWith(t, fmt.Sprintf("look for swept token %d", i), grants.ErrNotFound, err)
	}
}
