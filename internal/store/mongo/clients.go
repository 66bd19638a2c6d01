package mongo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

type clientDoc struct {
	ID             string            `bson:"_id"`
	Version        int64             `bson:"version"`
	Etag           int64             `bson:"etag"`
	Name           string            `bson:"name,omitempty"`
	SecretSHA256   []byte            `bson:"secretSha256,omitempty"`
	SecretUsed     time.Time         `bson:"secretUsed,omitempty"`
	Former         *formerDoc        `bson:"formerSecret,omitempty"`
	Public         bool              `bson:"public,omitempty"`
	Grants         []clientcfg.Grant `bson:"grants"`
	RedirectURIs   []string          `bson:"redirectUris,omitempty"`
	Scopes         []string          `bson:"scopes,omitempty"`
	Audience       []string          `bson:"audience,omitempty"`
	WithoutPKCE    bool              `bson:"withoutPkce,omitempty"`
	ResourceServer bool              `bson:"resourceServer,omitempty"`
	CreatedAt      time.Time         `bson:"createdAt"`
	NotBefore      time.Time         `bson:"notBefore,omitempty"`
	Stamp          secret.Stamp      `bson:"stamp,omitempty"`
}

// formerDoc is a secret that was replaced.
type formerDoc struct {
	SHA256 []byte    `bson:"sha256"`
	Until  time.Time `bson:"until"`
	Used   time.Time `bson:"used,omitempty"`
}

func newClientDoc(c *clientcfg.Client, version int64) clientDoc {
	doc := clientDoc{
		ID: c.ID, Version: version, Etag: newEtag(), Name: c.Name, Public: c.Public, Grants: c.Grants,
		RedirectURIs: c.RedirectURIs, Scopes: c.Scopes, Audience: c.Audience, WithoutPKCE: c.WithoutPKCE,
		ResourceServer: c.ResourceServer, CreatedAt: c.CreatedAt,
		NotBefore: c.NotBefore, Stamp: c.Stamp,
	}
	if !c.SecretDigest.IsZero() {
		doc.SecretSHA256, doc.SecretUsed = c.SecretDigest[:], c.SecretUsed
	}
	if f := &c.Former; !f.Digest.IsZero() {
		doc.Former = &formerDoc{SHA256: f.Digest[:], Until: f.Until, Used: f.Used}
	}
	return doc
}

func (d *clientDoc) client() (clientcfg.Client, error) {
	digest, err := digestOf(d.SecretSHA256)
	var former clientcfg.FormerSecret
	if f := d.Former; f != nil && err == nil {
		former.Until, former.Used = f.Until, f.Used
		former.Digest, err = digestOf(f.SHA256)
	}
	if err != nil {
		return clientcfg.Client{}, err
	}
	return clientcfg.Client{
		ID: d.ID, Name: d.Name, SecretDigest: digest, SecretUsed: d.SecretUsed, Former: former, Public: d.Public, Grants: d.Grants, RedirectURIs: d.RedirectURIs,
		Scopes: d.Scopes, Audience: d.Audience, WithoutPKCE: d.WithoutPKCE,
		ResourceServer: d.ResourceServer, CreatedAt: d.CreatedAt,
		NotBefore: d.NotBefore, Stamp: d.Stamp, Version: d.Version,
	}, nil
}

// digestOf reads a digest that may be absent.
func digestOf(b []byte) (d secret.Digest, err error) {
	if len(b) != 0 && copy(d[:], b) != len(d) || len(b) > len(d) {
		return d, fmt.Errorf("a digest has %d bytes, not %d", len(b), len(d))
	}
	return d, nil
}

// newEtag returns a random number, so small that the sum of a million stays within 64 bits.
func newEtag() int64 { return 1 + rand.Int64N(1<<42) } //nolint:gosec // distinguishes versions; no secret

// Clients implements [clientcfg.Store].
func (s *Store) Clients(ctx context.Context, each func(clientcfg.Record)) (rev clientcfg.Revision, err error) {
	err = s.do(ctx, "read clients", func(ctx context.Context) error {
		cursor, err := s.clients.Find(ctx, bson.D{}, options.Find().SetComment(comment(ctx)))
		if err != nil {
			return err
		}
		for cursor.Next(ctx) {
			rev += clientcfg.Revision(integer(cursor.Current.Lookup("etag")))
			each(clientRecord(cursor.Current))
		}
		return errors.Join(cursor.Err(), cursor.Close(ctx))
	})
	return rev, err
}

// Client implements [clientcfg.Store].
func (s *Store) Client(ctx context.Context, id string) (c clientcfg.Client, err error) {
	err = s.do(ctx, "read client "+id, func(ctx context.Context) error {
		raw, err := s.clients.FindOne(ctx, byID(id), options.FindOne().SetComment(comment(ctx))).Raw()
		switch {
		case errors.Is(err, mongo.ErrNoDocuments):
			return clientcfg.ErrNotFound
		case err != nil:
			return err
		}
		r := clientRecord(raw)
		c = r.Client
		return r.Err
	})
	return c, err
}

// clientRecord decodes a document. What it holds beside the fields of this release is ignored.
func clientRecord(raw bson.Raw) (r clientcfg.Record) {
	id := raw.Lookup("_id")
	if text, ok := id.StringValueOK(); ok {
		r.ID = text
	} else {
		r.ID = id.String()
	}
	var doc clientDoc
	err := bson.Unmarshal(raw, &doc)
	if err == nil {
		r.Client, err = doc.client()
	}
	if err != nil {
		r.Err = fmt.Errorf("%w: %w", clientcfg.ErrUnreadableClient, err)
	}
	return r
}

// integer is a number as $sum adds it; 0 for what is no number.
func integer(v bson.RawValue) int64 {
	if f, ok := v.DoubleOK(); ok {
		return int64(f)
	}
	n, _ := v.AsInt64OK()
	return n
}

// Revision implements [clientcfg.Store]: the sum of the clients' etags. Every change replaces, adds
// or removes one of them, in the same write.
func (s *Store) Revision(ctx context.Context) (clientcfg.Revision, error) {
	var sums []struct {
		Sum bson.RawValue `bson:"sum"`
	}
	err := s.do(ctx, "read client revision", func(ctx context.Context) error {
		cursor, err := s.clients.Aggregate(ctx, bson.A{
			bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$etag"}}}}}},
		}, options.Aggregate().SetComment(comment(ctx)))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &sums)
	})
	if err != nil || len(sums) == 0 {
		return 0, err
	}
	return clientcfg.Revision(integer(sums[0].Sum)), nil
}

// CreateClient implements [clientcfg.Registry].
func (s *Store) CreateClient(ctx context.Context, c clientcfg.Client) error {
	return s.insert(ctx, "create client "+c.ID, s.clients, newClientDoc(&c, 1), clientcfg.ErrExists)
}

// UpdateClient implements [clientcfg.Registry].
func (s *Store) UpdateClient(ctx context.Context, c clientcfg.Client) error {
	doc := newClientDoc(&c, c.Version+1)
	return s.do(ctx, "update client "+c.ID, func(ctx context.Context) error {
		filter := append(byID(c.ID), bson.E{Key: "version", Value: c.Version},
			bson.E{Key: "stamp.id", Value: bson.D{{Key: "$in", Value: bson.A{c.Stamp.ID, nil}}}}) // nil: there is none
		result, err := s.clients.ReplaceOne(ctx, filter, doc, options.Replace().SetComment(comment(ctx)))
		if err != nil || result.MatchedCount == 1 {
			return err
		}
		return s.whyUnchanged(ctx, &doc)
	})
}

// whyUnchanged returns why a replacement has found no client of the expected version and stamp. It is
// nil if the stored client has the etag of ours: the driver has sent the command twice, and the first was
// applied.
func (s *Store) whyUnchanged(ctx context.Context, ours *clientDoc) error {
	var stored clientDoc
	err := s.clients.FindOne(ctx, byID(ours.ID), options.FindOne().SetComment(comment(ctx))).Decode(&stored)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return clientcfg.ErrNotFound
	case err != nil:
		return err
	case stored.Etag == ours.Etag:
		return nil
	case stored.Version == ours.Version-1:
		return fmt.Errorf("%w: it was deleted and created again", clientcfg.ErrConflict)
	}
	return fmt.Errorf("%w: it is at version %d, not %d", clientcfg.ErrConflict, stored.Version, ours.Version-1)
}

// usesPerBulk bounds one command of RecordUses.
const usesPerBulk = 500

// RecordUses implements [clientcfg.SecretUses]. The etag stays, so no instance reads its clients again.
func (s *Store) RecordUses(ctx context.Context, uses []clientcfg.SecretUse) error {
	for some := range slices.Chunk(uses, usesPerBulk) {
		models := make([]mongo.WriteModel, 0, 2*len(some))
		for _, use := range some {
			models = append(models, useOf(use, "secretSha256", "secretUsed"), useOf(use, "formerSecret.sha256", "formerSecret.used"))
		}
		err := s.do(ctx, "record uses of secrets", func(ctx context.Context) error {
			_, err := s.clients.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false).SetComment(comment(ctx)))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// useOf records a use, if the secret in one field is the one that was used, in another field.
func useOf(use clientcfg.SecretUse, digest, used string) mongo.WriteModel {
	return mongo.NewUpdateOneModel().
		SetFilter(append(byID(use.ClientID), bson.E{Key: digest, Value: use.Digest[:]})).
		SetUpdate(bson.D{{Key: "$max", Value: bson.D{{Key: used, Value: use.At}}}})
}

// DeleteClient implements [clientcfg.Registry].
func (s *Store) DeleteClient(ctx context.Context, id string) error {
	return s.remove(ctx, "delete client", s.clients, id, clientcfg.ErrNotFound)
}
