package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// auditDoc is one entry of the trail. Its _id is the version of the policies that it made.
type auditDoc struct {
	Version int64     `bson:"_id"`
	Nonce   string    `bson:"nonce"` // the ID of the entry; in entries of earlier releases, of the call that wrote it
	At      time.Time `bson:"at"`
	Target  any       `bson:"target"` // the one that it shows as changed, or a list of them
	Entry   string    `bson:"entry"`  // the whole entry, as JSON
}

// storedEntry is an entry as it is read: whatever is beside the version may be of another type, by hand or
// by another release. Then it is that entry alone which cannot be read.
type storedEntry struct {
	Version bson.RawValue `bson:"_id"`
	Nonce   bson.RawValue `bson:"nonce"`
	Entry   bson.RawValue `bson:"entry"`
}

// version is the number under which it is stored; false if that is none of an entry.
func (e *storedEntry) version() (int64, bool) { return wholeNumber(e.Version) }

// id is the ID of the entry, empty if it is no text.
func (e *storedEntry) id() string {
	id, _ := e.Nonce.StringValueOK()
	return id
}

// text is the whole entry as JSON. Of another type it is none.
func (e *storedEntry) text() []byte { return textOf(e.Entry) }

// textOf is a text that should be JSON. That of any other type is none, and says what it is.
func textOf(v bson.RawValue) []byte {
	text, ok := v.StringValueOK()
	if !ok {
		text = fmt.Sprintf("(%s, not a text)", v.Type)
	}
	return []byte(text)
}

func newAuditDoc(e *clientcfg.PolicyEntry) (*auditDoc, error) {
	text, err := clientcfg.EncodePolicyEntry(e)
	if err != nil {
		return nil, err
	}
	doc := &auditDoc{Version: e.Version, Nonce: e.ID, At: e.At, Target: e.Target, Entry: string(text)}
	if len(e.More) > 0 {
		doc.Target = e.Targets()
	}
	return doc, nil
}

// Audit implements [clientcfg.AuditLog].
func (s *Store) Audit(ctx context.Context, q clientcfg.AuditQuery) (entries []clientcfg.AuditEntry, err error) {
	filter := numbered(1, maxNumber)
	if q.Before > 0 {
		filter = numbered(1, q.Before-1)
	}
	if q.Target != "" {
		filter = append(filter, bson.E{Key: "target", Value: q.Target})
	}
	err = s.do(ctx, "read audit trail", func(ctx context.Context) error {
		docs, err := findAll[storedEntry](ctx, s.audit, filter, options.Find().SetSort(byID(-1)).SetLimit(int64(q.Limit)))
		for i := 0; err == nil && i < len(docs); i++ {
			version, _ := docs[i].version()
			entries = append(entries, clientcfg.ShowPolicyEntry(docs[i].text(), version))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// SweepAudit implements [clientcfg.AuditLog]. It folds first, and removes nothing beyond the marker, and
// nothing after an entry that is young enough: the newest entry has the highest version. A target that
// was removed leaves the fold when no entry of its time is left: until then, a process that folds an
// older entry, and was held up, must not bring it back.
func (s *Store) SweepAudit(ctx context.Context, before, now time.Time) (removed int, err error) {
	folding := s.foldPolicies(ctx) // what it cannot fold stays
	err = s.do(ctx, "sweep audit trail", func(ctx context.Context) error {
		folded, err := s.policiesFolded(ctx)
		if err != nil {
			return err
		}
		young, err := s.oldestEntry(ctx, bson.E{Key: "at", Value: bson.D{{Key: "$gte", Value: before}, {Key: "$lte", Value: now}}})
		if err != nil {
			return err
		}
		old, err := s.entryID(ctx, 1, young-1, bson.E{Key: "at", Value: bson.D{{Key: "$lt", Value: before}}})
		if err != nil {
			return err
		}
		upTo := numbered(1, min(folded, old.Number))
		result, err := s.audit.DeleteMany(ctx, upTo, options.DeleteMany().SetComment(comment(ctx)))
		if err != nil {
			return err
		}
		removed = int(result.DeletedCount)
		oldest, err := s.oldestEntry(ctx)
		if err != nil {
			return err
		}
		gone := bson.D{{Key: "$lte", Value: min(folded, oldest-1)}}
		_, err = s.policies.DeleteMany(ctx, bson.D{{Key: "value", Value: "null"}, {Key: "version", Value: gone}},
			options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
	return removed, errors.Join(err, folding)
}

// oldestEntry returns the version of the oldest entry that matches, the highest number if there is none.
func (s *Store) oldestEntry(ctx context.Context, filter ...bson.E) (int64, error) {
	oldest, err := findAll[storedEntry](ctx, s.audit, append(numbered(1, maxNumber), filter...),
		options.Find().SetSort(byID(1)).SetProjection(byID(1)).SetLimit(1))
	if err != nil || len(oldest) == 0 {
		return maxNumber, err
	}
	version, _ := oldest[0].version()
	return version, nil
}
