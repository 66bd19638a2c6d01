package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// agreementKey is the _id of an agreement. Those of a user are a range of _ids, as the counters of a
// client are; see countersOf.
type agreementKey struct {
	Username string `bson:"username"`
	ClientID string `bson:"clientId"`
}

type agreementDoc struct {
	Key         agreementKey `bson:"_id"`
	ID          string       `bson:"id"`
	Scopes      []string     `bson:"scopes,omitempty"`
	AgreedAt    time.Time    `bson:"agreedAt"`
	UsedAt      time.Time    `bson:"usedAt"`
	Expire      time.Time    `bson:"expire"` // the TTL index
	ClientStamp secret.Stamp `bson:"clientStamp,omitempty"`
	UserStamp   secret.Stamp `bson:"userStamp,omitempty"`
	Version     int64        `bson:"version"`
}

func newAgreementDoc(a *grants.Agreement) agreementDoc {
	return agreementDoc{
		Key: agreementKey{a.Username, a.ClientID}, ID: a.ID, Scopes: a.Scopes, AgreedAt: a.AgreedAt, UsedAt: a.UsedAt,
		Expire: a.ExpiresAt, ClientStamp: a.ClientStamp, UserStamp: a.UserStamp, Version: a.Version,
	}
}

func storedAgreement(raw bson.Raw) (grants.Agreement, error) {
	var d agreementDoc
	err := bson.Unmarshal(raw, &d)
	if err == nil {
		err = checkTimes(d.AgreedAt, d.UsedAt, d.Expire)
	}
	if err != nil {
		return grants.Agreement{}, fmt.Errorf("decode agreement: %w", err)
	}
	return grants.Agreement{
		Username: d.Key.Username, ClientID: d.Key.ClientID, ID: d.ID, Scopes: d.Scopes, AgreedAt: d.AgreedAt, UsedAt: d.UsedAt,
		ExpiresAt: d.Expire, ClientStamp: d.ClientStamp, UserStamp: d.UserStamp, Version: d.Version,
	}, nil
}

// Agreement implements [grants.Agreements].
func (s *Store) Agreement(ctx context.Context, username, clientID string) (a grants.Agreement, err error) {
	err = s.do(ctx, "read agreement", func(ctx context.Context) error {
		if !validNames(clientID, &username) {
			return grants.ErrNotFound
		}
		raw, err := s.agreements.FindOne(ctx, byID(agreementKey{username, clientID}), options.FindOne().SetComment(comment(ctx))).Raw()
		if err != nil {
			return orNotFound(err)
		}
		a, err = storedAgreement(raw)
		return err
	})
	return a, err
}

// AgreementsOf implements [grants.Agreements]. One that cannot be read is not in it.
func (s *Store) AgreementsOf(ctx context.Context, username string) (list []grants.Agreement, err error) {
	err = s.do(ctx, "read agreements of a user", func(ctx context.Context) error {
		if !validNames("", &username) {
			return nil
		}
		docs, err := findAll[bson.Raw](ctx, s.agreements, agreementsOf(username), options.Find())
		for _, raw := range docs {
			if a, err := storedAgreement(raw); err == nil {
				list = append(list, a)
			}
		}
		return err
	})
	slices.SortFunc(list, func(a, b grants.Agreement) int { return strings.Compare(a.ClientID, b.ClientID) })
	return list, err
}

// agreementsOf returns the filter for the agreements of a user.
func agreementsOf(username string) bson.D {
	from := bson.D{{Key: "username", Value: username}}
	to := slices.Concat(from, bson.D{{Key: "clientId", Value: bson.MaxKey{}}})
	return byID(bson.D{{Key: "$gte", Value: from}, {Key: "$lte", Value: to}})
}

// PutAgreement implements [grants.Agreements].
func (s *Store) PutAgreement(ctx context.Context, a grants.Agreement) error {
	if !validNames(a.ClientID, &a.Username) {
		return errors.New("mongo: store agreement: a name is not UTF-8")
	}
	doc := newAgreementDoc(&a)
	if a.Version == 1 {
		return s.insert(ctx, "add agreement", s.agreements, doc, grants.ErrExists)
	}
	return s.do(ctx, "replace agreement", func(ctx context.Context) error {
		before := append(byID(doc.Key), bson.E{Key: "id", Value: a.ID}, bson.E{Key: "version", Value: a.Version - 1})
		result, err := s.agreements.ReplaceOne(ctx, before, doc, options.Replace().SetComment(comment(ctx)))
		if err == nil && result.MatchedCount == 0 {
			return grants.ErrExists
		}
		return err
	})
}

// DeleteAgreement implements [grants.Agreements].
func (s *Store) DeleteAgreement(ctx context.Context, a *grants.Agreement) error {
	return s.do(ctx, "delete agreement", func(ctx context.Context) error {
		if !validNames(a.ClientID, &a.Username) {
			return nil
		}
		_, err := s.agreements.DeleteOne(ctx, append(byID(agreementKey{a.Username, a.ClientID}), bson.E{Key: "id", Value: a.ID}),
			options.DeleteOne().SetComment(comment(ctx)))
		return err
	})
}

// eraseAgreements removes those of a user.
func (s *Store) eraseAgreements(ctx context.Context, username string) error {
	return s.do(ctx, "erase agreements", func(ctx context.Context) error {
		_, err := s.agreements.DeleteMany(ctx, agreementsOf(username), options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}
