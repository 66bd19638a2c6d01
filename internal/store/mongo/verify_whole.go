package mongo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Sizes of the check of many writers at once.
const (
	wholeWriters = 8
	wholeWrites  = 5
)

// whole lets several writers insert and increment one document at once. Every reader must find its
// two counts equal, and the last one the sum.
func (v *verifier) whole(ctx context.Context) error {
	v.check(checkWhole)
	claim, shared := byID(v.id("claimed at once")), v.id("written at once")
	claims := make([]error, wholeWriters)
	failed := make([]error, wholeWriters)
	var writers sync.WaitGroup
	for w := range wholeWriters {
		writers.Go(func() {
			claims[w] = v.attempt(ctx, func(ctx context.Context) error {
				return v.insert(ctx, claim)
			})
			failed[w] = v.attempt(ctx, func(ctx context.Context) error { return v.writeWhole(ctx, shared, "w"+strconv.Itoa(w)) })
		})
	}
	writers.Wait()
	won := 0
	for _, err := range claims {
		if err == nil {
			won++
		} else if !mongo.IsDuplicateKeyError(err) {
			failed = append(failed, err)
		}
	}
	for _, err := range failed {
		if err = v.misread(err); err != nil {
			return err
		}
	}
	if won != 1 {
		v.fail(checkWhole, "%d of %d inserts of one _id succeeded", won, wholeWriters)
	}
	a, b, err := v.readWhole(ctx, shared)
	if err == nil && (a != wholeWriters*wholeWrites || b != a) {
		v.fail(checkWhole, "of %d writes at once, %d and %d were counted", wholeWriters*wholeWrites, a, b)
	}
	return errors.Join(v.misread(err), v.rotated(ctx))
}

// rotated lets several writers take one document from generation 1 to 2 at once. One must succeed; without
// the acknowledgement of a majority, the driver does not return whose that was.
func (v *verifier) rotated(ctx context.Context) error {
	id := byID(v.id("rotated at once"))
	err := v.attempt(ctx, func(ctx context.Context) error { return v.insert(ctx, fields(id, field("generation", int64(1)))) })
	if err != nil {
		return v.refused(checkWhole, CheckFailed, err)
	}
	var matched [wholeWriters]int64
	var failed [wholeWriters]error
	var writers sync.WaitGroup
	for w := range wholeWriters {
		writers.Go(func() {
			failed[w] = v.attempt(ctx, func(ctx context.Context) error {
				result, err := v.coll.UpdateOne(ctx, fields(id, field("generation", int64(1))),
					field("$set", field("generation", int64(2))), options.UpdateOne().SetComment(comment(ctx)))
				if result != nil {
					matched[w] = result.MatchedCount
				}
				return v.unacknowledged(err)
			})
		})
	}
	writers.Wait()
	var doc struct{ Generation int64 }
	read := v.attempt(ctx, func(ctx context.Context) error {
		return v.coll.FindOne(ctx, id, options.FindOne().SetComment(comment(ctx))).Decode(&doc)
	})
	for _, err := range append(failed[:], read) {
		if errors.Is(err, mongo.ErrNoDocuments) {
			err = errNotFound
		}
		if err = v.misread(err); err != nil {
			return err
		}
	}
	var won int64
	for _, n := range matched {
		won += n
	}
	if won > 1 || read == nil && doc.Generation != 2 {
		v.fail(checkWhole, "%d of %d updates that were to depend on one generation succeeded", won, wholeWriters)
	}
	return nil
}

// Errors of a reader of a document under many writers.
var errTorn, errNotFound = errors.New("a reader found one half of a write"), errors.New("a reader did not find the document")

// misread notes that a reader did not find what was written, or was refused. It returns every other
// error.
func (v *verifier) misread(err error) error {
	if errors.Is(err, errTorn) || errors.Is(err, errNotFound) {
		v.fail(checkWhole, "%v", err)
		return nil
	}
	return v.refused(checkWhole, CheckFailed, err)
}

// writeWhole adds to both counts of the document, several times.
func (v *verifier) writeWhole(ctx context.Context, id bson.D, writer string) error {
	for seq := int64(1); seq <= wholeWrites; seq++ {
		if err := v.countWhole(ctx, id, writer, seq); err != nil {
			return err
		}
	}
	return nil
}

// countWhole adds one to both counts of the document, again if another writer inserted it
// meanwhile, and reads it.
func (v *verifier) countWhole(ctx context.Context, id bson.D, writer string, seq int64) error {
	filter := fields(byID(id), field("writers."+writer, field("$not", field("$gte", seq))))
	update := fields(
		field("$inc", fields(field("a", int64(1)), field("b", int64(1)))), field("$set", field("writers."+writer, seq)),
	)
	for range wholeWriters {
		_, err := v.coll.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true).SetComment(comment(ctx)))
		if err = v.unacknowledged(err); err != nil && !mongo.IsDuplicateKeyError(err) {
			return err
		}
		if err == nil {
			break
		}
	}
	a, b, err := v.readWhole(ctx, id)
	if err == nil && a != b {
		return fmt.Errorf("%w: %d and %d", errTorn, a, b)
	}
	return err
}

func (v *verifier) readWhole(ctx context.Context, id bson.D) (a, b int64, err error) {
	var doc struct{ A, B int64 }
	err = v.coll.FindOne(ctx, byID(id), options.FindOne().SetComment(comment(ctx))).Decode(&doc)
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = errNotFound
	}
	return doc.A, doc.B, err
}
