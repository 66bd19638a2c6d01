package migrations

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// PolicyMarker is the _id of the document in the collection "policies" that has no target: up to which
// version of the trail the targets are folded. Earlier releases kept all policies in the document of
// that _id.
const PolicyMarker = "current"

// PolicyMarkerVersion is the version in that document. It is none that earlier releases have, or replace,
// and what is beside it they cannot read: they keep their last good policies, and refuse changes.
const PolicyMarkerVersion = -1

// PolicyTarget is a document of a target in the collection "policies".
type PolicyTarget struct {
	Target  string `bson:"_id"`
	Version int64  `bson:"version"` // of the entry that last changed it
	Value   string `bson:"value"`   // JSON; null: it was removed
}

// PutPolicyTargets stores targets, each unless there is a version of it that is as high.
//
// An upsert fails with E11000 where the version is as high, and also where another process inserts the
// document at the same time: MongoDB looks for it, and then inserts it, and does not look again where the
// filter has more than the _id. So what failed is repeated without upsert, which changes what is older.
func PutPolicyTargets(ctx context.Context, policies *mongo.Collection, targets []PolicyTarget, comment string) error {
	taken, err := putTargets(ctx, policies, targets, true, comment)
	if err == nil {
		_, err = putTargets(ctx, policies, taken, false, comment)
	}
	return err
}

// putTargets returns those whose _id is taken by a version as high, or was taken meanwhile.
func putTargets(ctx context.Context, policies *mongo.Collection, targets []PolicyTarget, upsert bool, comment string) (taken []PolicyTarget, err error) {
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
		{Key: "version", Value: int64(PolicyMarkerVersion)},
		{Key: "set", Value: "the policies are in the other documents of this collection, and in the collection audit"},
	}
}

// PutPolicyMarker says that the targets are folded up to that version, unless they are further already. It
// makes the marker if there is none, as after a restore without it; it never changes the document of an
// earlier release.
func PutPolicyMarker(ctx context.Context, policies *mongo.Collection, folded int64, comment string) error {
	behind := bson.D{{Key: "_id", Value: PolicyMarker}, {Key: "folded", Value: bson.D{{Key: "$lt", Value: folded}}}}
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

// migrating is the comment of the commands of a migration.
const migrating = "oauth-server: migrate"

// splitPolicies divides the document in which earlier releases have all policies into one for each
// target. The last step makes the marker of the document, if that is still as it was read: what an
// earlier release changes until then is not lost, and afterwards it can change nothing. It may run in
// many processes at once, also beside instances of this release, and be interrupted anywhere.
func splitPolicies(ctx context.Context, db *mongo.Database) error {
	for {
		if done, err := trySplit(ctx, db); done || err != nil {
			return err
		}
	}
}

// wholeDoc is the document of earlier releases.
type wholeDoc struct {
	Version int64    `bson:"version"`
	Set     string   `bson:"set"`
	Entry   bson.Raw `bson:"entry"` // of the last change, which may not be in the trail yet
}

// trySplit reports false if the document was changed meanwhile.
func trySplit(ctx context.Context, db *mongo.Database) (done bool, err error) {
	policies := db.Collection("policies")
	var doc wholeDoc
	err = policies.FindOne(ctx, bson.D{{Key: "_id", Value: PolicyMarker}}).Decode(&doc)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return false, PutPolicyMarker(ctx, policies, 0, migrating) // and looks again: it may be another by now
	case err != nil || doc.Version == PolicyMarkerVersion:
		return err == nil, err
	}
	if len(doc.Entry) > 0 {
		if _, err := db.Collection("audit").InsertOne(ctx, doc.Entry); err != nil && !mongo.IsDuplicateKeyError(err) {
			return false, err
		}
	}
	targets, err := doc.targets(ctx, policies)
	if err != nil {
		return false, err
	}
	if err := PutPolicyTargets(ctx, policies, targets, migrating); err != nil {
		return false, err
	}
	whole := bson.D{{Key: "_id", Value: PolicyMarker}, {Key: "version", Value: doc.Version}}
	result, err := policies.ReplaceOne(ctx, whole, append(policyMarker(), bson.E{Key: "folded", Value: doc.Version}))
	return err == nil && result.MatchedCount == 1, err
}

// targets are those of the document, and the removal of those that an earlier attempt has found in an
// older one.
func (d *wholeDoc) targets(ctx context.Context, policies *mongo.Collection) (all []PolicyTarget, err error) {
	state, err := clientcfg.SplitPolicySet([]byte(d.Set))
	if err == nil && state.Version != d.Version {
		err = fmt.Errorf("%w: version %d is marked as %d", clientcfg.ErrUnreadable, state.Version, d.Version)
	}
	if err != nil {
		return nil, err
	}
	for target, v := range state.Targets {
		all = append(all, PolicyTarget{Target: target, Version: v.Version, Value: string(v.Value)})
	}
	cursor, err := policies.Find(ctx, bson.D{}, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, err
	}
	var there []PolicyTarget
	if err := cursor.All(ctx, &there); err != nil {
		return nil, err
	}
	for _, t := range there {
		if _, still := state.Targets[t.Target]; !still && t.Target != PolicyMarker {
			all = append(all, PolicyTarget{Target: t.Target, Version: d.Version, Value: "null"})
		}
	}
	return all, nil
}

// steps are what no command of the database can do, by the names that files have for them.
var steps = map[string]func(ctx context.Context, db *mongo.Database) error{"split_policies": splitPolicies}
