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
	FirstParty     bool              `bson:"firstParty,omitempty"`
	Labels         []string          `bson:"labels,omitempty"` // name=value; names may have dots, so they are no names of fields
	CreatedAt      time.Time         `bson:"createdAt"`
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
		ResourceServer: c.ResourceServer, FirstParty: c.FirstParty, Labels: c.Labels.Pairs(), CreatedAt: c.CreatedAt,
		Stamp: c.Stamp,
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
		ResourceServer: d.ResourceServer, FirstParty: d.FirstParty, Labels: clientcfg.LabelsOf(d.Labels), CreatedAt: d.CreatedAt,
		Stamp: d.Stamp, Version: d.Version,
	}, nil
}

// digestOf reads a digest that may be absent.
func digestOf(b []byte) (d secret.Digest, err error) {
	if len(b) != 0 && copy(d[:], b) != len(d) || len(b) > len(d) {
		return d, fmt.Errorf("a digest has %d bytes, not %d", len(b), len(d))
	}
	return d, nil
}

// newEtag returns a random number, so small that the sum of eight million stays within 64 bits.
func newEtag() int64 { return 1 + rand.Int64N(1<<40) } //nolint:gosec // distinguishes versions; no secret

// Clients implements [clientcfg.Store].
func (s *Store) Clients(ctx context.Context, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	mark, err := s.ClientsMark(ctx)
	if err != nil {
		return mark, err
	}
	return mark, s.eachClient(ctx, bson.D{}, each)
}

// ClientsMark implements [clientcfg.Store].
func (s *Store) ClientsMark(ctx context.Context) (mark clientcfg.Mark, err error) {
	err = s.do(ctx, "read last change of clients", func(ctx context.Context) (err error) {
		mark, err = s.lastMark(ctx)
		return err
	})
	return mark, err
}

// clientsAtOnce is the size of a batch, about 2 MB. The server's own is 16 MB, which one that is busy
// may not send within the timeout of an operation.
const clientsAtOnce = 5_000

// eachClient reads the clients that match. The timeout is that of each batch, so that there is no limit
// to all.
func (s *Store) eachClient(ctx context.Context, filter bson.D, each func(clientcfg.Record)) error {
	const operation = "read clients"
	var cursor *mongo.Cursor
	err := s.do(ctx, operation, func(ctx context.Context) (err error) {
		cursor, err = s.clients.Find(ctx, filter, options.Find().SetBatchSize(clientsAtOnce).SetComment(comment(ctx)))
		return err
	})
	if err != nil {
		return err
	}
	err = clientcfg.DecodeAll(func(add func(bson.Raw)) (err error) {
		for more := true; more && err == nil; {
			err = s.do(ctx, operation, func(ctx context.Context) error {
				for more = cursor.Next(ctx); more; more = cursor.Next(ctx) {
					add(slices.Clone(cursor.Current))
					if cursor.RemainingBatchLength() == 0 {
						break
					}
				}
				return cursor.Err()
			})
		}
		return err
	}, clientRecord, each)
	return errors.Join(err, wrap(operation, cursor.Close(context.WithoutCancel(ctx))))
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
	r.ID = idText(raw)
	r.Tag = integer(raw.Lookup("etag"))
	var doc clientDoc
	err := doc.decode(raw)
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

// ClientsSum implements [clientcfg.Store]. A tag is the etag: every release changes it with every
// change.
func (s *Store) ClientsSum(ctx context.Context) (clientcfg.Sum, error) {
	var sums []struct {
		Clients int64         `bson:"clients"`
		Tags    bson.RawValue `bson:"tags"`
	}
	sumOf := func(v any) bson.D { return bson.D{{Key: "$sum", Value: v}} }
	err := s.do(ctx, "read sum of clients", func(ctx context.Context) error {
		cursor, err := s.clients.Aggregate(ctx, bson.A{
			bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "clients", Value: sumOf(1)}, {Key: "tags", Value: sumOf("$etag")}}}},
		}, options.Aggregate().SetComment(comment(ctx)))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &sums)
	})
	if err != nil || len(sums) == 0 {
		return clientcfg.Sum{}, err
	}
	return clientcfg.Sum{Clients: sums[0].Clients, Tags: integer(sums[0].Tags)}, nil
}

// CreateClient implements [clientcfg.Registry].
func (s *Store) CreateClient(ctx context.Context, c clientcfg.Client) error {
	doc := newClientDoc(&c, 1)
	return s.changeClient(ctx, clientWrite{operation: "create client " + c.ID, id: c.ID, write: func(ctx context.Context) error {
		_, err := s.clients.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx)))
		if mongo.IsDuplicateKeyError(err) {
			return clientcfg.ErrExists
		}
		return err
	}})
}

// UpdateClient implements [clientcfg.Registry].
func (s *Store) UpdateClient(ctx context.Context, c clientcfg.Client) error {
	doc := newClientDoc(&c, c.Version+1)
	return s.changeUnchanged(ctx, "update client "+c.ID, &doc, func(ctx context.Context, expected bson.D) (int64, error) {
		result, err := s.clients.ReplaceOne(ctx, expected, doc, options.Replace().SetComment(comment(ctx)))
		if err != nil {
			return 0, err
		}
		return result.MatchedCount, nil
	})
}

// DeleteUnchanged implements [clientcfg.Registry].
func (s *Store) DeleteUnchanged(ctx context.Context, c clientcfg.Client) error {
	doc := newClientDoc(&c, c.Version+1)
	return s.changeUnchanged(ctx, "delete client", &doc, func(ctx context.Context, expected bson.D) (int64, error) {
		result, err := s.clients.DeleteOne(ctx, expected, options.DeleteOne().SetComment(comment(ctx)))
		if err != nil {
			return 0, err
		}
		return result.DeletedCount, nil
	})
}

// changeUnchanged writes if the stored client is of the version before that of the document, and of its
// stamp. write returns how many clients were as expected.
func (s *Store) changeUnchanged(ctx context.Context, operation string, doc *clientDoc, write func(ctx context.Context, expected bson.D) (int64, error)) error {
	expected := append(byID(doc.ID), bson.E{Key: "version", Value: doc.Version - 1},
		bson.E{Key: "stamp.id", Value: bson.D{{Key: "$in", Value: bson.A{doc.Stamp.ID, nil}}}}) // nil: an empty one
	return s.changeClient(ctx, clientWrite{
		operation: operation, id: doc.ID,
		check: func(ctx context.Context) error { // so that a conflict, which is usual, is not announced
			err := s.clients.FindOne(ctx, expected, options.FindOne().SetProjection(byID(1)).SetComment(comment(ctx))).Err()
			if errors.Is(err, mongo.ErrNoDocuments) {
				return s.whyUnchanged(ctx, doc)
			}
			return err
		},
		write: func(ctx context.Context) error {
			n, err := write(ctx, expected)
			if err != nil || n == 1 {
				return err
			}
			return s.whyUnchanged(ctx, doc)
		},
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

// RecordUses implements [clientcfg.SecretUses]. It is announced to no instance.
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
	return s.changeClient(ctx, clientWrite{operation: "delete client", id: id, write: func(ctx context.Context) error {
		result, err := s.clients.DeleteOne(ctx, byID(id), options.DeleteOne().SetComment(comment(ctx)))
		if err == nil && result.DeletedCount == 0 {
			return clientcfg.ErrNotFound
		}
		return err
	}})
}
