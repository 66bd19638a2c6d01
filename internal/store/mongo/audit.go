package mongo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// auditDoc is one entry of the audit trail. Its _id is the policy version that the change made.
type auditDoc struct {
	Version int64     `bson:"_id"`
	Nonce   string    `bson:"nonce"` // of the call that wrote it
	At      time.Time `bson:"at"`
	Target  string    `bson:"target"`
	Entry   string    `bson:"entry"` // the whole entry, as JSON
}

func newAuditDoc(e clientcfg.AuditEntry) (auditDoc, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return auditDoc{}, fmt.Errorf("mongo: encode audit entry: %w", err)
	}
	return auditDoc{Version: e.Version, Nonce: secret.ID(), At: e.At, Target: e.Target, Entry: string(text)}, nil
}

// appendAudit adds an entry to the audit trail. An entry of that version stays as it is.
func (s *Store) appendAudit(ctx context.Context, doc *auditDoc) error {
	_, err := s.audit.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx)))
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

// appendPending adds the entry that is stored beside the policies, which the process that changed
// them may not have lived to append. Without a change, and after a sweep, there is none.
func (s *Store) appendPending(ctx context.Context) error {
	doc, err := s.policiesDoc(ctx, bson.D{{Key: "entry", Value: 1}})
	if err != nil || doc.Entry.Version == 0 {
		return err
	}
	return s.appendAudit(ctx, &doc.Entry)
}

// auditByVersion reads the entry of a version. It is zero if there is none.
func (s *Store) auditByVersion(ctx context.Context, version int64) (doc auditDoc, err error) {
	err = s.audit.FindOne(ctx, byID(version), options.FindOne().SetComment(comment(ctx))).Decode(&doc)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return auditDoc{}, nil
	}
	return doc, err
}

// Audit implements [clientcfg.AuditLog].
func (s *Store) Audit(ctx context.Context, q clientcfg.AuditQuery) (entries []clientcfg.AuditEntry, err error) {
	filter := bson.D{}
	if q.Target != "" {
		filter = append(filter, bson.E{Key: "target", Value: q.Target})
	}
	if q.Before > 0 {
		filter = append(filter, bson.E{Key: "_id", Value: bson.D{{Key: "$lt", Value: q.Before}}})
	}
	err = s.do(ctx, "read audit trail", func(ctx context.Context) error {
		if err := s.appendPending(ctx); err != nil {
			return err
		}
		docs, err := findAll[auditDoc](ctx, s.audit, filter, options.Find().SetSort(byID(-1)).SetLimit(int64(q.Limit)))
		for i := 0; err == nil && i < len(docs); i++ {
			var e clientcfg.AuditEntry
			err = json.Unmarshal([]byte(docs[i].Entry), &e)
			entries = append(entries, e)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// SweepAudit implements [clientcfg.AuditLog]. The entry beside the policies is removed as well:
// [Store.appendPending] would append it again.
func (s *Store) SweepAudit(ctx context.Context, before time.Time) (removed int, err error) {
	old := bson.D{{Key: "$lt", Value: before}}
	err = s.do(ctx, "sweep audit trail", func(ctx context.Context) error {
		if err := s.appendPending(ctx); err != nil {
			return err
		}
		_, err := s.policies.UpdateOne(ctx, append(byID(policiesID), bson.E{Key: "entry.at", Value: old}),
			bson.D{{Key: "$unset", Value: bson.D{{Key: "entry", Value: ""}}}}, options.UpdateOne().SetComment(comment(ctx)))
		if err != nil {
			return err
		}
		result, err := s.audit.DeleteMany(ctx, bson.D{{Key: "at", Value: old}}, options.DeleteMany().SetComment(comment(ctx)))
		if err == nil {
			removed = int(result.DeletedCount)
		}
		return err
	})
	return removed, err
}
