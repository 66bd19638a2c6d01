package mongo

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateCode implements [grants.Codes].
func (s *Store) CreateCode(ctx context.Context, c grants.Code) error {
	return s.insert(ctx, "create code", s.grants, codeDoc(&c), grants.ErrExists)
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

// RedeemCode implements [grants.Codes].
func (s *Store) RedeemCode(ctx context.Context, d secret.Digest, first *grants.Family) error {
	return s.do(ctx, "redeem code", func(ctx context.Context) error { return s.claim(ctx, kindCode, d, first) })
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

// claim inserts the document that is both the claim of d and the family that begins with it.
func (s *Store) claim(ctx context.Context, kind string, d secret.Digest, first *grants.Family) error {
	doc, claim, err := s.look(ctx, kind, d)
	if err != nil {
		return err
	}
	if claim != nil {
		return grants.ErrClaimed
	}
	ours := claimDoc(doc, d, first)
	_, err = s.grants.InsertOne(ctx, ours, options.InsertOne().SetComment(comment(ctx)))
	if err == nil {
		return nil
	}
	stored, failed := s.afterwards(ctx, ours.ID)
	switch {
	case failed == nil && bytes.Equal(stored.Mark, ours.Mark):
		return nil
	case failed == nil:
		return grants.ErrClaimed
	case errors.Is(failed, grants.ErrNotFound): // it may be on its way
		return err
	}
	return fmt.Errorf("%w; look up the claim: %w", err, failed)
}

// grant reads the document with the _id. ErrNotFound.
func (s *Store) grant(ctx context.Context, id []byte) (doc grantDoc, err error) {
	err = orNotFound(s.grants.FindOne(ctx, byID(id), options.FindOne().SetComment(comment(ctx))).Decode(&doc))
	return doc, err
}

// afterwards reads the document of a write that was not acknowledged: the reply may have been lost, or a
// retry of the driver may have met the document of its first attempt. The mark shows whose it is. The
// caller's context may have ended, so there is a short timeout instead.
func (s *Store) afterwards(ctx context.Context, id []byte) (grantDoc, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selectionTimeout)
	defer cancel()
	return s.grant(ctx, id)
}
