package mongo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/storetest"
)

// earlierRelease is an instance of a release that stored each refresh token, in a rolling upgrade. Its
// methods are those of that release.
type earlierRelease struct{ *Store }

func (s earlierRelease) look(ctx context.Context, kind string, d secret.Digest) (doc, claim *grantDoc, err error) {
	docs, err := findAll[grantDoc](ctx, s.grants, bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "digest", Value: d[:]}},
		byID(grantID(claimID, d)),
	}}}, options.Find())
	if err != nil {
		return nil, nil, err
	}
	for i := range docs {
		if bytes.Equal(docs[i].Digest, d[:]) {
			doc = &docs[i]
		} else {
			claim = &docs[i]
		}
	}
	if doc == nil || doc.Kind != kind {
		return nil, nil, grants.ErrNotFound
	}
	return doc, claim, nil
}

func (s earlierRelease) claim(ctx context.Context, kind string, d, next secret.Digest) error {
	predecessor, claim, err := s.look(ctx, kind, d)
	if err != nil {
		return err
	}
	if claim != nil {
		return grants.ErrClaimed
	}
	mark := secret.DigestOf(secret.New())
	auth := predecessor.authorization()
	doc := authorizationDoc("refresh_token", &auth)
	doc.ID, doc.Digest, doc.Mark = grantID(claimID, d), next[:], mark[:]
	doc.IssuedAt, doc.ExpiresAt, doc.Expire = predecessor.IssuedAt, predecessor.ExpiresAt, predecessor.ExpiresAt
	_, err = s.grants.InsertOne(ctx, doc)
	if mongo.IsDuplicateKeyError(err) {
		return grants.ErrClaimed
	}
	return err
}

// firstOf is the family that begins with the code or token of that digest.
func firstOf(d secret.Digest, issued time.Time) grants.Family {
	return grants.Family{
		Authorization: grants.Authorization{ClientID: "shop", Username: "alice", Family: "f", AuthTime: issued},
		Digest:        d, Generation: 1, IssuedAt: issued, ExpiresAt: issued.Add(time.Hour),
	}
}

// TestRollingUpgrade: instances of both releases claim one code or token at once. One wins, and neither
// release takes it for unclaimed.
func TestRollingUpgrade(t *testing.T) {
	const claimers, rounds = 24, 5
	for name, kind := range map[string]string{"open code": kindCode, "unused": kindToken} {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				b, issued := earlier(t)
				s := b.(ttlStore).Store
				old := earlierRelease{s}
				d, successor := secret.DigestOf(storetest.EarlierText(name)), secret.DigestOf(fmt.Sprint("successor ", round))
				var errs [claimers]error
				var start, all sync.WaitGroup
				start.Add(1)
				for i := range claimers {
					all.Go(func() {
						start.Wait()
						first := firstOf(d, issued)
						switch {
						case i%2 == 0:
							errs[i] = old.claim(t.Context(), kind, d, successor)
						case kind == kindCode:
							errs[i] = s.RedeemCode(t.Context(), d, &first)
						default:
							errs[i] = s.AdoptToken(t.Context(), d, first)
						}
					})
				}
				start.Done()
				all.Wait()
				checkUpgrade(t, old, kind, d, successor, errs[:])
			}
		})
	}
}

func checkUpgrade(t *testing.T, old earlierRelease, kind string, d, successor secret.Digest, errs []error) {
	t.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, grants.ErrClaimed):
			t.Errorf("%d: %v", i, err)
		}
	}
	_, claim, err := old.look(t.Context(), kind, d)
	if err != nil || claim == nil {
		t.Errorf("the earlier release finds %v, %v", claim, err)
	}
	_, family := old.Family(t.Context(), d)
	_, token := old.EarlierToken(t.Context(), successor)
	if winner%2 == 0 && (token != nil || !errors.Is(family, grants.ErrNotFound)) ||
		winner%2 == 1 && (family != nil || !errors.Is(token, grants.ErrNotFound)) {
		t.Errorf("%d won; the family: %v, the token: %v", winner, family, token)
	}
}

// TestEarlierReleaseBesideFamilies: it refuses their tokens, does not take the family for a grant of its
// own, and knows that the code was redeemed, also after many rotations.
func TestEarlierReleaseBesideFamilies(t *testing.T) {
	b, issued := earlier(t)
	s := b.(ttlStore).Store
	old, ctx := earlierRelease{s}, t.Context()
	code, token := secret.DigestOf(storetest.EarlierText("open code")), secret.DigestOf(storetest.EarlierText("unused"))
	ofCode, ofToken, ofNothing := firstOf(code, issued), firstOf(token, issued), firstOf(secret.DigestOf("random"), issued)
	err := errors.Join(s.RedeemCode(ctx, code, &ofCode), s.AdoptToken(ctx, token, ofToken), s.CreateFamily(ctx, ofNothing))
	for _, first := range []grants.Family{ofCode, ofToken, ofNothing} {
		for range 5 {
			first.Generation++
			err = errors.Join(err, s.RotateFamily(ctx, first))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := old.claim(ctx, kindCode, code, secret.DigestOf("x")); !errors.Is(err, grants.ErrClaimed) {
		t.Errorf("it redeems the code: %v", err)
	}
	if err := old.claim(ctx, kindToken, token, secret.DigestOf("x")); !errors.Is(err, grants.ErrClaimed) {
		t.Errorf("it rotates the token: %v", err)
	}
	for name, d := range map[string]secret.Digest{
		"code as a token": code, "family of nothing": ofNothing.Digest, "token in the new form": secret.DigestOf("72 characters"),
	} {
		if _, _, err := old.look(ctx, kindToken, d); !errors.Is(err, grants.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
