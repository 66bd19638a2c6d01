package mongo

import (
	"bytes"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateFamily implements [grants.Families].
func (s *Store) CreateFamily(ctx context.Context, f grants.Family) error {
	return s.insert(ctx, "create family", s.grants, familyDoc(&f), grants.ErrExists)
}

// Family implements [grants.Families].
func (s *Store) Family(ctx context.Context, d secret.Digest) (f grants.Family, err error) {
	err = s.do(ctx, "read family", func(ctx context.Context) error {
		doc, err := s.grant(ctx, grantID(claimID, d))
		switch {
		case err != nil:
			return err
		case doc.Generation == 0: // a claim without a family, or a token of an earlier release
			return grants.ErrNotFound
		}
		f, err = doc.family(d)
		return err
	})
	return f, err
}

func (d *grantDoc) family(digest secret.Digest) (grants.Family, error) {
	if err := checkTimes(d.IssuedAt, d.ExpiresAt, d.AuthTime); err != nil {
		return grants.Family{}, fmt.Errorf("decode family: %w", err)
	}
	return grants.Family{
		Authorization: d.authorization(), Digest: digest, Generation: uint32(d.Generation), //nolint:gosec // as familyDoc wrote it
		IssuedAt: d.IssuedAt, ExpiresAt: d.ExpiresAt, ClientStamp: d.ClientStamp,
	}, nil
}

// RotateFamily implements [grants.Families]: one update of the document, if it is of the generation
// before.
func (s *Store) RotateFamily(ctx context.Context, next grants.Family) error {
	return s.do(ctx, "rotate family", func(ctx context.Context) error {
		id, mark := grantID(claimID, next.Digest), newMark()
		before := append(byID(id), bson.E{Key: "generation", Value: int64(next.Generation) - 1})
		result, err := s.grants.UpdateOne(ctx, before, bson.D{
			{Key: "$set", Value: bson.D{
				{Key: "generation", Value: int64(next.Generation)},
				{Key: "mark", Value: mark},
				{Key: "issuedAt", Value: next.IssuedAt},
				{Key: "expiresAt", Value: next.ExpiresAt},
				{Key: "clientStamp", Value: next.ClientStamp},
			}},
			{Key: "$max", Value: bson.D{{Key: "expire", Value: next.ExpiresAt}}}, // it may claim a longer-lived predecessor
		}, options.UpdateOne().SetComment(comment(ctx)))
		if err == nil && result.MatchedCount == 1 {
			return nil
		}
		stored, failed := s.afterwards(ctx, id)
		switch {
		case failed != nil && err != nil:
			return fmt.Errorf("%w; look up the family: %w", err, failed)
		case failed != nil:
			return failed
		case stored.Generation == 0:
			return grants.ErrNotFound
		case bytes.Equal(stored.Mark, mark):
			return nil
		case err == nil || stored.Generation >= int64(next.Generation):
			return grants.ErrClaimed
		}
		return err // it may be on its way
	})
}
