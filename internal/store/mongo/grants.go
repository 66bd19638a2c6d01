package mongo

import (
	"bytes"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateCode implements [grants.Codes].
func (s *Store) CreateCode(ctx context.Context, c grants.Code) error {
	return s.insert(ctx, "create code", s.grants, codeDoc(&c), grants.ErrExists)
}

// CreateRefreshToken implements [grants.RefreshTokens].
func (s *Store) CreateRefreshToken(ctx context.Context, t grants.RefreshToken) error {
	return s.insert(ctx, "create refresh token", s.grants, tokenDoc(grantID(rootID, t.Digest), &t), grants.ErrExists)
}

// Code implements [grants.Codes].
func (s *Store) Code(ctx context.Context, d secret.Digest) (c grants.Code, err error) {
	err = s.do(ctx, "read code", func(ctx context.Context) error {
		doc, claim, err := s.look(ctx, kindCode, d)
		if err != nil {
			return err
		}
		c = grants.Code{
			Authorization: doc.authorization(), Digest: d, RedirectURI: doc.RedirectURI, Challenge: doc.Challenge,
			IssuedAt: doc.IssuedAt, ExpiresAt: doc.ExpiresAt, Claimed: claim != nil, ClientStamp: doc.ClientStamp,
		}
		return nil
	})
	return c, err
}

// RefreshToken implements [grants.RefreshTokens].
func (s *Store) RefreshToken(ctx context.Context, d secret.Digest) (t grants.RefreshToken, err error) {
	err = s.do(ctx, "read refresh token", func(ctx context.Context) error {
		doc, claim, err := s.look(ctx, kindToken, d)
		if err != nil {
			return err
		}
		t = grants.RefreshToken{
			Authorization: doc.authorization(), Digest: d,
			IssuedAt: doc.IssuedAt, ExpiresAt: doc.ExpiresAt, Claimed: claim != nil, ClientStamp: doc.ClientStamp,
		}
		return nil
	})
	return t, err
}

// RedeemCode implements [grants.Codes].
func (s *Store) RedeemCode(ctx context.Context, d secret.Digest, next *grants.RefreshToken) error {
	return s.do(ctx, "redeem code", func(ctx context.Context) error { return s.claim(ctx, kindCode, d, next) })
}

// RotateRefreshToken implements [grants.RefreshTokens].
func (s *Store) RotateRefreshToken(ctx context.Context, d secret.Digest, next grants.RefreshToken) error {
	return s.do(ctx, "rotate refresh token", func(ctx context.Context) error { return s.claim(ctx, kindToken, d, &next) })
}

// look finds the document of a digest and its claim, if there is one, in one round trip.
func (s *Store) look(ctx context.Context, kind string, d secret.Digest) (doc, claim *grantDoc, err error) {
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

// claim inserts the document that is both the claim of d and its successor.
func (s *Store) claim(ctx context.Context, kind string, d secret.Digest, next *grants.RefreshToken) error {
	doc, claim, err := s.look(ctx, kind, d)
	if err != nil {
		return err
	}
	if claim != nil {
		return grants.ErrClaimed
	}
	ours := claimDoc(doc, d, next)
	_, err = s.grants.InsertOne(ctx, ours, options.InsertOne().SetComment(comment(ctx)))
	if err == nil {
		return nil
	}
	return s.resolve(ctx, kind, d, &ours, err)
}

// resolve finds out whether a claim that was not acknowledged is stored; it returns nil if it is.
// The reply may have been lost, or a retry of the driver may have met the document of its first
// attempt. The caller's context may have ended, so there is a short timeout instead.
func (s *Store) resolve(ctx context.Context, kind string, d secret.Digest, ours *grantDoc, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selectionTimeout)
	defer cancel()
	_, claim, err := s.look(ctx, kind, d)
	switch {
	case err != nil:
		return fmt.Errorf("%w; look up the claim: %w", cause, err)
	case claim != nil && bytes.Equal(claim.Mark, ours.Mark):
		return nil
	case claim != nil:
		return grants.ErrClaimed
	case mongo.IsDuplicateKeyError(cause): // not for the claim, so for next's own digest
		return grants.ErrExists
	}
	return cause
}
