package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/store"
	"oauth-server/migrations"
)

// entryDoc is an entry of the trail in the collection "trail".
//
// The entry takes effect at the moment of its insert. From then on every process that reads or
// continues the trail applies its writes first. Applying them again changes nothing. A process that
// was paused in between cannot undo newer writes: a record has the number of its entry as version,
// and is only replaced by one with a greater version. Only the newest entry can have writes,
// because the next one is inserted after they are applied.
type entryDoc struct {
	Number int64       `bson:"_id"`
	Nonce  int64       `bson:"nonce"`
	At     time.Time   `bson:"at"`
	Value  bson.Raw    `bson:"value"`
	Refs   []store.Ref `bson:"refs,omitempty"`   // with the members table and key
	Writes []writeDoc  `bson:"writes,omitempty"` // until they have been applied
}

// writeDoc is a write with the new fields of its record.
type writeDoc struct {
	Table string `bson:"table"`
	Key   string `bson:"key"`
	Set   bson.D `bson:"set"`
}

// newEntryDoc returns the document of an entry.
func newEntryDoc(e *store.Entry, writes []store.Write) (*entryDoc, error) {
	if err := e.Check(writes); err != nil {
		return nil, err
	}
	d := &entryDoc{Number: e.Number, Nonce: store.NewNonce(), At: e.At}
	var err error
	if d.Value, err = documentOf(e.Value); err != nil {
		return nil, err
	}
	for _, w := range writes {
		w.Record.Version, w.Record.Nonce = d.Number, d.Nonce
		table, key, set := w.Table.Name, w.Record.Key, tombstone(d.Number, d.Nonce)
		if !w.Delete {
			if set, err = fieldsOf(&w.Record); err != nil {
				return nil, fmt.Errorf("%s: %w", table, err)
			}
		}
		d.Refs, d.Writes = append(d.Refs, store.Ref{Table: table, Key: key}), append(d.Writes, writeDoc{table, key, set})
	}
	return d, nil
}

// readEntry reads a document of the trail, without its writes.
func readEntry(doc bson.Raw) (e store.Entry) {
	var ok bool
	e.Number, _ = whole(doc.Lookup("_id"))
	e.Nonce, ok = whole(doc.Lookup("nonce"))
	var d entryDoc
	err := bson.Unmarshal(doc, &d)
	if err == nil && !ok {
		err = errors.New("its nonce is missing")
	}
	if err == nil {
		e.At, e.Refs = d.At, d.Refs
		e.Value, err = appendObject(nil, d.Value, false, 0)
	}
	if err != nil {
		e.Err = unreadable(err)
	}
	return e
}

// Append implements [store.Backend].
func (s *Store) Append(ctx context.Context, e store.Entry, writes ...store.Write) (store.Mark, error) {
	d, err := newEntryDoc(&e, writes)
	if err != nil {
		return store.Mark{}, fmt.Errorf("mongo: append to the trail: %w", err)
	}
	if err = s.mayAppend(ctx, d); err != nil {
		return store.Mark{}, err
	}
	err = s.do(ctx, "append to the trail", func(ctx context.Context) error {
		_, err := s.trail.InsertOne(ctx, d, options.InsertOne().SetComment(comment(ctx)))
		if err != nil {
			err = s.outcome(ctx, s.trail, d.Number, store.Seen{}, d.Nonce, err)
		}
		return err
	})
	if err != nil {
		return store.Mark{}, err
	}
	ctx = context.WithoutCancel(ctx) // the entry is stored
	mark := store.Mark{Number: d.Number, Nonce: d.Nonce}
	if err = s.apply(ctx, mark, d.Writes); err != nil {
		err = s.apply(ctx, mark, d.Writes) // a reply may have been lost
	}
	return mark, err
}

// mayAppend applies the writes of the newest entry, and returns an error unless the number is the
// next one and the records are older. It reads the records first: a record with that number or a
// later one, but without such an entry, does not belong to this trail.
func (s *Store) mayAppend(ctx context.Context, d *entryDoc) error {
	var strange error
	for table, writes := range byTable(d.Writes) {
		keys := make([]string, len(writes))
		for i := range writes {
			keys[i] = writes[i].Key
		}
		filter := append(byID(anyOf(keys)), bson.E{Key: "version", Value: bson.D{{Key: "$gte", Value: d.Number}}})
		opts := options.Find().SetProjection(byID(1)).SetLimit(1)
		err := s.find(ctx, "look for newer records", s.db.Collection(table), filter, opts, func(doc bson.Raw) error {
			strange = fmt.Errorf("mongo: the document %s of the collection %s was written by entry %d of the trail or a later one, and the collection trail "+
				"ends before it: restore both from the same backup", doc.Lookup("_id"), table, d.Number)
			return nil
		})
		if err != nil {
			return err
		}
	}
	newest, pending, err := s.newestEntry(ctx)
	switch {
	case err != nil:
		return err
	case newest.Number != d.Number-1:
		return store.ErrConflict
	case strange != nil:
		return strange
	}
	return s.apply(ctx, newest, pending)
}

// maxNumber is above the number of every entry.
const maxNumber = 1 << 62

// numbered returns the filter for the entries of a range. An _id of another type, made by hand, does not match.
func numbered(from, to int64) bson.D {
	return byID(bson.D{{Key: "$gte", Value: from}, {Key: "$lte", Value: to}})
}

// newestEntry reads the mark and the pending writes of the newest entry. They are zero if the trail
// is empty.
func (s *Store) newestEntry(ctx context.Context) (mark store.Mark, pending []writeDoc, err error) {
	opts := options.Find().SetSort(byID(-1)).SetLimit(1).SetProjection(bson.D{{Key: "nonce", Value: 1}, {Key: "writes", Value: 1}})
	err = s.find(ctx, "read the newest entry of the trail", s.trail, numbered(1, maxNumber), opts, func(doc bson.Raw) error {
		mark.Number, _ = whole(doc.Lookup("_id"))
		mark.Nonce, _ = whole(doc.Lookup("nonce"))
		var d struct{ Writes []writeDoc }
		if err := bson.Unmarshal(doc, &d); err != nil {
			return fmt.Errorf("the writes of entry %d of the trail, which must be removed (docs/data.md#trail): %w", mark.Number, unreadable(err))
		}
		pending = d.Writes
		return nil
	})
	return mark, pending, err
}

// apply applies the writes of an entry, and removes them from it.
func (s *Store) apply(ctx context.Context, entry store.Mark, writes []writeDoc) error {
	if len(writes) == 0 {
		return nil
	}
	return s.do(ctx, "apply an entry of the trail", func(ctx context.Context) error {
		for table, writes := range byTable(writes) {
			models := make([]mongo.WriteModel, len(writes))
			for i, w := range writes {
				models[i] = newer(w.Key, entry.Number, w.Set)
			}
			if err := putNewer(ctx, s.db.Collection(table), models); err != nil {
				return err
			}
		}
		ours := append(byID(entry.Number), bson.E{Key: "nonce", Value: entry.Nonce})
		applied := bson.D{{Key: "$unset", Value: bson.D{{Key: "writes", Value: ""}}}}
		_, err := s.trail.UpdateOne(ctx, ours, applied, options.UpdateOne().SetComment(comment(ctx)))
		return err
	})
}

func byTable(writes []writeDoc) map[string][]writeDoc {
	tables := map[string][]writeDoc{}
	for _, w := range writes {
		tables[w.Table] = append(tables[w.Table], w)
	}
	return tables
}

// Trail implements [store.Backend]. Without entries after the mark it needs one command.
func (s *Store) Trail(ctx context.Context, after store.Mark, limit int) ([]store.Entry, store.Mark, error) {
	newest, pending, err := s.newestEntry(ctx)
	if err == nil {
		err = s.apply(ctx, newest, pending)
	}
	if err != nil || newest == after {
		return nil, newest, err
	}
	var entries []store.Entry
	first := max(after.Number, 1)
	next := first
	opts := options.Find().SetSort(byID(1)).SetLimit(int64(limit) + 1).SetProjection(withoutWrites)
	err = s.find(ctx, "read the trail", s.trail, numbered(first, newest.Number), opts, func(doc bson.Raw) error {
		e := readEntry(doc)
		switch {
		case e.Number != next, next == after.Number && e.Mark() != after:
			return store.ErrMarkLost
		case e.Number > after.Number && len(entries) < limit:
			entries = append(entries, e)
		}
		next++
		return nil
	})
	if err == nil && next == first {
		err = store.ErrMarkLost
	}
	if errors.Is(err, store.ErrMarkLost) {
		err = cmp.Or(s.present(ctx), err)
	}
	if err != nil {
		entries = nil
	}
	return entries, newest, err
}

// present returns an error if the database lacks migrations. A store opens only with all
// migrations, so the database has lost its data or is another one. Instances then keep the known
// clients and policies.
func (s *Store) present(ctx context.Context) error {
	return s.do(ctx, "read migrations", func(ctx context.Context) error {
		pending, err := migrations.Pending(ctx, s.db)
		if err == nil && len(pending) > 0 {
			err = fmt.Errorf("the database lacks %s: its data are lost, or it is another database", pending[0])
		}
		return err
	})
}

// History implements [store.Backend].
func (s *Store) History(ctx context.Context, before int64, each func(store.Entry) error) error {
	if before <= 0 {
		before = maxNumber
	}
	opts := options.Find().SetSort(byID(-1)).SetBatchSize(batch).SetProjection(withoutWrites)
	return s.find(ctx, "read the history", s.trail, numbered(1, before-1), opts, func(doc bson.Raw) error { return each(readEntry(doc)) })
}

// withoutWrites is the projection of an entry that [readEntry] reads.
var withoutWrites = bson.D{{Key: "writes", Value: 0}}

// Trim implements [store.Backend].
func (s *Store) Trim(ctx context.Context, through int64) error {
	newest, _, err := s.newestEntry(ctx)
	if err != nil {
		return err
	}
	return s.do(ctx, "trim the trail", func(ctx context.Context) error {
		_, err := s.trail.DeleteMany(ctx, numbered(1, min(through, newest.Number-1)), options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}
