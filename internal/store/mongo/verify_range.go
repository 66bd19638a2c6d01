package mongo

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// rangeOfIDs reads the documents of the scratch client as a range of _ids, and finds none of them in a
// range of numbers. In a scratch collection it also deletes them as a range.
func (v *verifier) rangeOfIDs(ctx context.Context) error {
	if len(v.documents) == 0 {
		return nil // it remains unchecked
	}
	v.check(checkRange)
	start := field("clientId", v.client)
	end := fields(start, field("username", bson.MaxKey{}))
	ofClient := byID(fields(field("$gte", start), field("$lte", end)))
	inRange, err := v.read(ctx, ofClient)
	if err != nil {
		return v.refused(checkRange, CheckFailed, err)
	}
	v.sameAsRange(inRange, "in the range")
	numbers, err := v.read(ctx, numbered(0, maxNumber))
	if err != nil {
		return v.refused(checkRange, CheckFailed, err)
	}
	for _, name := range slices.Sorted(maps.Keys(v.documents)) {
		if numbers[name] != nil {
			v.fail(checkRange, "%q: it is in a range of numbers", name)
		}
	}
	if !v.alone {
		return nil
	}
	_, err = v.coll.DeleteMany(ctx, ofClient, options.DeleteMany().SetComment(comment(ctx)))
	if err = v.unacknowledged(err); err != nil {
		return v.refused(checkRange, CheckFailed, err)
	}
	left, err := v.read(ctx, byID(field("$in", v.ids)))
	if err != nil {
		return v.refused(checkRange, CheckFailed, err)
	}
	deleted := maps.Clone(v.documents)
	maps.DeleteFunc(deleted, func(name string, _ bson.Raw) bool { return left[name] != nil })
	v.sameAsRange(deleted, "deleted with the range")
	return nil
}

// sameAsRange compares the documents that the server took for the range with those in it.
func (v *verifier) sameAsRange(taken map[string]bson.Raw, what string) {
	for _, name := range slices.Sorted(maps.Keys(v.documents)) {
		id := v.documents[name].Lookup("_id").Document()
		client, _ := id.Lookup("clientId").StringValueOK()
		first, err := id.IndexErr(0)
		ours := client == v.client && err == nil && first.Key() == "clientId"
		if _, found := taken[name]; found != ours {
			v.fail(checkRange, "%q: %s is %t, not %t", name, what, found, ours)
		}
	}
}
