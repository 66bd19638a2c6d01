package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oauth-server/internal/store"
)

// An entry of the trail is a document of the collection "trail":
//
//	_id:    its number, an int64
//	nonce, at, value
//	refs:   [{table, key}]
//	writes: until they are applied, the fields of its records: [{table, key, value, version, …}]
//
// The insert of that document is the moment at which the entry takes effect: from then on anybody who reads
// or continues the trail applies its writes first. Applying them again changes nothing, and a process that
// was paused on the way cannot undo newer writes: a record has the number of its entry as version, and is
// only replaced by one with a greater version. Only the newest entry can have writes, because the next one
// is inserted after they are applied.

// trailEntry is an entry of the trail and its pending writes.
type trailEntry struct {
	store.Entry
	writes []store.Write
}

// Append implements [store.Backend].
func (s *Store) Append(ctx context.Context, e store.Entry, writes ...store.Write) (store.Mark, error) {
	e.Nonce = newNonce()
	writes = slices.Clone(writes)
	for i := range writes {
		writes[i].Record.Version, writes[i].Record.Nonce = e.Number, e.Nonce
	}
	doc, err := entryDocument(&e, writes)
	if err != nil {
		return store.Mark{}, fmt.Errorf("mongo: append to the trail: %w", err)
	}
	err = s.do(ctx, "append to the trail", func(ctx context.Context) error {
		if err := s.mayAppend(ctx, e.Number, writes); err != nil {
			return err
		}
		_, err := s.trail.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx)))
		if err != nil {
			err = s.outcome(ctx, s.trail, e.Number, store.Seen{}, e.Nonce, err)
		}
		return err
	})
	if err != nil {
		return store.Mark{}, err
	}
	ctx = context.WithoutCancel(ctx) // it is stored
	if err = s.apply(ctx, &trailEntry{e, writes}); err != nil {
		err = s.apply(ctx, &trailEntry{e, writes}) // a reply was lost, perhaps
	}
	return e.Mark(), err
}

// mayAppend applies the writes of the newest entry, and returns an error unless the number is the next one
// and the records are older. The records are read first: one with that number or a later one, without such
// an entry, is not of this trail.
func (s *Store) mayAppend(ctx context.Context, number int64, writes []store.Write) error {
	var stray *store.Ref
	for _, of := range byTable(writes) {
		keys := make([]string, len(of))
		for i := range of {
			keys[i] = of[i].Record.Key
		}
		filter := append(byID(bson.D{{Key: "$in", Value: keys}}), bson.E{Key: "version", Value: bson.D{{Key: "$gte", Value: number}}})
		docs, err := findAll[bson.Raw](ctx, s.db.Collection(of[0].Table.Name), filter, options.Find().SetProjection(byID(1)).SetLimit(1))
		if err != nil {
			return err
		}
		for _, doc := range docs {
			key, _ := doc.Lookup("_id").StringValueOK()
			stray = &store.Ref{Table: of[0].Table.Name, Key: key}
		}
	}
	newest, err := s.newestEntry(ctx)
	switch {
	case err != nil:
		return err
	case newest.Number != number-1:
		return store.ErrConflict
	case stray != nil:
		return fmt.Errorf("the document %q of the collection %s was written by a later entry than number %d, the newest of the collection trail: "+
			"they are not of one moment; restore both from one backup", stray.Key, stray.Table, newest.Number)
	}
	return s.apply(ctx, &newest)
}

// newestEntry reads the number, the nonce and the pending writes of the newest entry; all zero: the trail
// is empty.
func (s *Store) newestEntry(ctx context.Context) (trailEntry, error) {
	newest, err := findAll[bson.Raw](ctx, s.trail, numbered(1, maxNumber), options.Find().SetSort(byID(-1)).SetLimit(1).
		SetProjection(bson.D{{Key: "nonce", Value: 1}, {Key: "writes", Value: 1}}))
	if err != nil || len(newest) == 0 {
		return trailEntry{}, err
	}
	return readEntry(newest[0])
}

// apply applies the writes of an entry, and removes them from it.
func (s *Store) apply(ctx context.Context, e *trailEntry) error {
	if len(e.writes) == 0 {
		return nil
	}
	return s.do(ctx, "apply an entry of the trail", func(ctx context.Context) error {
		for _, of := range byTable(e.writes) {
			models := make([]*mongo.UpdateOneModel, len(of))
			for i := range of {
				update, err := writeUpdate(&of[i])
				if err != nil {
					return err
				}
				models[i] = newer(&of[i].Record, update)
			}
			if err := putNewer(ctx, s.db.Collection(of[0].Table.Name), models); err != nil {
				return err
			}
		}
		_, err := s.trail.UpdateOne(ctx, append(byID(e.Number), bson.E{Key: "nonce", Value: e.Nonce}),
			bson.D{{Key: "$unset", Value: bson.D{{Key: "writes", Value: ""}}}}, options.UpdateOne().SetComment(comment(ctx)))
		return err
	})
}

// byTable groups writes.
func byTable(writes []store.Write) (groups [][]store.Write) {
	index := map[string]int{}
	for _, w := range writes {
		i, ok := index[w.Table.Name]
		if !ok {
			i = len(groups)
			index[w.Table.Name], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// Trail implements [store.Backend]. It takes one command if there is no entry after the mark.
func (s *Store) Trail(ctx context.Context, after store.Mark, limit int) (entries []store.Entry, mark store.Mark, err error) {
	err = s.do(ctx, "read the trail", func(ctx context.Context) error {
		newest, err := s.newestEntry(ctx)
		if err == nil {
			err = s.apply(ctx, &newest)
		}
		if err != nil {
			return err
		}
		if mark = newest.Mark(); mark == after {
			return nil
		}
		entries, err = s.entriesAfter(ctx, after, mark.Number, limit)
		return err
	})
	if errors.Is(err, store.ErrMarkLost) {
		if lost := s.present(ctx); lost != nil {
			return nil, store.Mark{}, lost
		}
	}
	return entries, mark, err
}

// entriesAfter reads the entries from a mark to a number.
func (s *Store) entriesAfter(ctx context.Context, after store.Mark, to int64, limit int) (entries []store.Entry, err error) {
	page, err := findAll[bson.Raw](ctx, s.trail, numbered(max(after.Number, 1), to),
		options.Find().SetSort(byID(1)).SetLimit(int64(limit)+1).SetProjection(bson.D{{Key: "writes", Value: 0}}))
	if err != nil {
		return nil, err
	}
	for i, doc := range page {
		e, _ := readEntry(doc) // without writes
		switch {
		case e.Number != max(after.Number, 1)+int64(i),
			i == 0 && after.Number > 0 && e.Mark() != after:
			return nil, store.ErrMarkLost
		case e.Number > after.Number && len(entries) < limit:
			entries = append(entries, e.Entry)
		}
	}
	if len(page) == 0 {
		err = store.ErrMarkLost
	}
	return entries, err
}

// History implements [store.Backend].
func (s *Store) History(ctx context.Context, before int64, each func(store.Entry) error) error {
	filter := numbered(1, maxNumber)
	if before > 0 {
		filter = numbered(1, before-1)
	}
	opts := options.Find().SetSort(byID(-1)).SetProjection(bson.D{{Key: "writes", Value: 0}})
	return s.eachDocument(ctx, "read the history", s.trail, filter, opts, func(doc bson.Raw) error {
		e, _ := readEntry(doc) // without writes
		return each(e.Entry)
	})
}

// Trim implements [store.Backend].
func (s *Store) Trim(ctx context.Context, through int64) error {
	return s.do(ctx, "trim the trail", func(ctx context.Context) error {
		newest, err := s.newestEntry(ctx)
		if err != nil {
			return err
		}
		_, err = s.trail.DeleteMany(ctx, numbered(1, min(through, newest.Number-1)), options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}

// entryDocument returns the document of an entry, and sets its Refs.
func entryDocument(e *store.Entry, writes []store.Write) (bson.D, error) {
	if err := e.Check(writes); err != nil {
		return nil, err
	}
	value, err := documentOf(e.Value)
	if err != nil {
		return nil, err
	}
	pending, refs := make([]bson.D, len(writes)), make([]bson.D, len(writes))
	e.Refs = make([]store.Ref, len(writes))
	for i := range writes {
		r := &writes[i].Record
		ref := bson.D{{Key: "table", Value: writes[i].Table.Name}, {Key: "key", Value: r.Key}}
		refs[i], e.Refs[i] = ref, store.Ref{Table: writes[i].Table.Name, Key: r.Key}
		if pending[i], err = writeDocument(ref, &writes[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", writes[i].Table.Name, err)
		}
	}
	doc := append(byID(e.Number),
		bson.E{Key: "nonce", Value: e.Nonce}, bson.E{Key: "at", Value: e.At}, bson.E{Key: "value", Value: value})
	if len(writes) > 0 {
		doc = append(doc, bson.E{Key: "refs", Value: refs}, bson.E{Key: "writes", Value: pending})
	}
	return doc, nil
}

func writeDocument(ref bson.D, w *store.Write) (bson.D, error) {
	update, err := writeUpdate(w)
	if err != nil {
		return nil, err
	}
	fields, _ := update[0].Value.(bson.D)
	return append(ref[:2:2], fields...), nil
}

// writeUpdate returns the update that applies a write.
func writeUpdate(w *store.Write) (bson.D, error) {
	if w.Delete {
		return tombstoneUpdate(&w.Record), nil
	}
	return recordUpdate(&w.Record)
}

// readEntry reads a document of the trail. The error is that of its writes; what else cannot be read is in
// the Err of the entry.
func readEntry(doc bson.Raw) (e trailEntry, err error) {
	first := eachField(doc, func(name string, v bsoncore.Value) error {
		if name == "writes" {
			err = eachItem(v, e.addWrite)
			return nil
		}
		return e.field(name, v)
	})
	if first != nil {
		e.Err = unreadable(first)
	}
	if err != nil {
		err = fmt.Errorf("the writes of entry %d of the trail: %w", e.Number, unreadable(err))
	}
	return e, err
}

func (e *trailEntry) field(name string, v bsoncore.Value) (err error) {
	ok := true
	switch name {
	case "_id":
		e.Number, ok = v.AsInt64OK()
	case "nonce":
		e.Nonce, ok = v.AsInt64OK()
	case "at":
		e.At, ok = v.TimeOK()
	case "value":
		if ok = v.Type == bsoncore.TypeEmbeddedDocument; ok {
			e.Value, err = appendObject(nil, v.Data, false, 0)
		}
	case "refs":
		err = eachItem(v, func(item bsoncore.Document) error {
			table, isText := item.Lookup("table").StringValueOK()
			key, isToo := item.Lookup("key").StringValueOK()
			if !isText || !isToo {
				return errors.New("a reference has no table or key")
			}
			e.Refs = append(e.Refs, store.Ref{Table: table, Key: key})
			return nil
		})
	}
	return fieldError(name, v, ok, err)
}

// addWrite reads a pending write. Its document is that of a record, with table and key in the place of _id.
func (e *trailEntry) addWrite(item bsoncore.Document) error {
	var w store.Write
	var rd reader
	err := eachField(item, func(name string, v bsoncore.Value) (err error) {
		var ok bool
		switch name {
		case "table":
			w.Table.Name, ok = v.StringValueOK()
		case "key":
			rd.record.Key, ok = v.StringValueOK()
		default:
			return rd.field(name, v)
		}
		return fieldError(name, v, ok, err)
	})
	if err == nil && (w.Table.Name == "" || rd.record.Key == "" || rd.gone != (rd.record.Value == nil)) {
		err = errors.New("a write has no table, key or value")
	}
	w.Record, w.Delete = rd.record, rd.gone
	e.writes = append(e.writes, w)
	return err
}

// eachItem calls do with the documents of an array, until it fails.
func eachItem(array bsoncore.Value, do func(bsoncore.Document) error) error {
	list, ok := array.ArrayOK()
	if !ok {
		return fmt.Errorf("a value of type %s in the place of an array", bson.Type(array.Type))
	}
	values, err := list.Values()
	if err != nil {
		return err
	}
	for _, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return fmt.Errorf("a value of type %s in an array of documents", bson.Type(v.Type))
		}
		if err := do(doc); err != nil {
			return err
		}
	}
	return nil
}
