package mongo

import (
	"context"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// upsertByID sends upserts that filter by _id alone: several writers update one document at once, as revocations are
// stored, and a bulk replaces one, as users of refresh tokens are. MongoDB repeats such an upsert itself when another one has
// inserted meanwhile. A server that answers E11000 instead has to find the document when it is repeated.
func (v *verifier) upsertByID(ctx context.Context) error {
	v.check(checkUpsertByID)
	updated, replaced := v.id("updated by _id"), v.id("replaced by _id")
	failed := make([]error, wholeWriters)
	var writers sync.WaitGroup
	for w := range wholeWriters {
		writers.Go(func() {
			failed[w] = v.attempt(ctx, func(ctx context.Context) error { return v.updateByID(ctx, updated) })
		})
	}
	writers.Wait()
	for _, err := range failed {
		if err = v.refused(checkUpsertByID, CheckFailed, err); err != nil {
			return err
		}
	}
	for n := range int64(2) {
		doc := fields(byID(replaced), field("n", n+1))
		model := mongo.NewReplaceOneModel().SetFilter(byID(replaced)).SetReplacement(doc).SetUpsert(true)
		_, errs, err := v.bulk(ctx, []mongo.WriteModel{model}, false)
		if err = v.refused(checkUpsertByID, CheckFailed, err); err != nil {
			return err
		}
		if len(errs) > 0 {
			v.fail(checkUpsertByID, "a replacement was refused: %s", errs[0].Message)
		}
	}
	docs, err := v.read(ctx, byID(field("$in", bson.A{updated, replaced})))
	if err != nil {
		return v.refused(checkUpsertByID, CheckFailed, err)
	}
	for name, want := range map[string]int64{"updated by _id": wholeWriters, "replaced by _id": 2} {
		if n, _ := whole(docs[name].Lookup("n")); n != want {
			v.fail(checkUpsertByID, "a document that was %s has the count %d, not %d", name, n, want)
		}
	}
	return nil
}

// updateByID adds one to the count of the document, again if another writer inserted it meanwhile.
func (v *verifier) updateByID(ctx context.Context, id bson.D) (err error) {
	for range wholeWriters {
		_, err = v.coll.UpdateOne(ctx, byID(id), field("$inc", field("n", int64(1))), options.UpdateOne().SetUpsert(true).SetComment(comment(ctx)))
		if err = v.unacknowledged(err); !mongo.IsDuplicateKeyError(err) {
			break
		}
	}
	return err
}
