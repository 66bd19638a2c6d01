package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// policyMarkerID is the _id of the document in the collection "policies" that has no target: up to which
// version of the trail the targets are folded. Earlier releases kept all policies in the document of
// that _id.
const policyMarkerID = "current"

// policyMarkerVersion is the version in that document. It is none that earlier releases have, or replace,
// and what is beside it they cannot read: they keep their last good policies, and refuse changes.
const policyMarkerVersion = -1

// policyTarget is a document of a target in the collection "policies".
type policyTarget struct {
	Target  string `bson:"_id"`
	Version int64  `bson:"version"` // of the entry that last changed it
	Value   string `bson:"value"`   // JSON; null: it was removed
}

// putPolicyTargets stores targets, each unless there is a version of it that is as high.
//
// An upsert fails with E11000 where the version is as high, and also where another process inserts the
// document at the same time: MongoDB looks for it, and then inserts it, and does not look again where the
// filter has more than the _id. So what failed is repeated without upsert, which changes what is older.
func putPolicyTargets(ctx context.Context, policies *mongo.Collection, targets []policyTarget, comment string) error {
	taken, err := putTargets(ctx, policies, targets, true, comment)
	if err == nil {
		_, err = putTargets(ctx, policies, taken, false, comment)
	}
	return err
}

// putTargets returns those whose _id is taken by a version as high, or was taken meanwhile.
func putTargets(ctx context.Context, policies *mongo.Collection, targets []policyTarget, upsert bool, comment string) (taken []policyTarget, err error) {
	if len(targets) == 0 {
		return nil, nil
	}
	writes := make([]mongo.WriteModel, len(targets))
	for i, t := range targets {
		older := bson.D{{Key: "_id", Value: t.Target}, {Key: "version", Value: bson.D{{Key: "$lt", Value: t.Version}}}}
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "version", Value: t.Version}, {Key: "value", Value: t.Value}}}}
		writes[i] = mongo.NewUpdateOneModel().SetFilter(older).SetUpdate(set).SetUpsert(upsert)
	}
	_, err = policies.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false).SetComment(comment))
	var failed mongo.BulkWriteException
	if !errors.As(err, &failed) || failed.WriteConcernError != nil {
		return nil, err
	}
	for _, e := range failed.WriteErrors {
		if !upsert || !mongo.IsDuplicateKeyError(e) || e.Index < 0 || e.Index >= len(targets) {
			return nil, err
		}
		taken = append(taken, targets[e.Index])
	}
	return taken, nil
}

// policyMarker is what the marker has beside up to which version the targets are folded.
func policyMarker() bson.D {
	return bson.D{
		{Key: "version", Value: int64(policyMarkerVersion)},
		{Key: "set", Value: "the policies are in the other documents of this collection, and in the collection audit"},
	}
}

// putPolicyMarker says that the targets are folded up to that version, unless they are further already. It
// makes the marker if there is none, as after a restore without it; it never changes the document of an
// earlier release.
func putPolicyMarker(ctx context.Context, policies *mongo.Collection, folded int64, comment string) error {
	behind := bson.D{{Key: "_id", Value: policyMarkerID}, {Key: "folded", Value: bson.D{{Key: "$lt", Value: folded}}}}
	put := func(upsert bool) error {
		_, err := policies.UpdateOne(ctx, behind, bson.D{
			{Key: "$set", Value: bson.D{{Key: "folded", Value: folded}}},
			{Key: "$setOnInsert", Value: policyMarker()},
		}, options.UpdateOne().SetUpsert(upsert).SetComment(comment))
		return err
	}
	err := put(true)
	if mongo.IsDuplicateKeyError(err) { // it is further already, or was made meanwhile
		err = put(false)
	}
	return err
}
