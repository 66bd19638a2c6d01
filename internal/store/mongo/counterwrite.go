package mongo

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterID is the _id. The order of its fields is part of it.
func counterID(id ratelimit.CounterID) bson.D {
	d := bson.D{{Key: "clientId", Value: id.ClientID}, {Key: "username", Value: id.Username}}
	if id.Limit != "" {
		d = append(d, bson.E{Key: "limit", Value: id.Limit})
	}
	return d
}

// counterModel is an upsert, so that a document that is not as the filter wants
// it ends in a duplicate _id, and one that is not there is created.
func counterModel(id ratelimit.CounterID, w *syncer.Write) mongo.WriteModel {
	return mongo.NewUpdateOneModel().SetFilter(counterFilter(id, w)).SetUpdate(counterUpdate(w)).SetUpsert(true)
}

// counterFilter is the condition of the write, the only one, and never the _id
// alone: a server that applies a write twice (a gateway that sent it again) or
// late would count twice.
//
// What it states by equality becomes part of a document that the upsert
// creates, before the update is applied. The update sets or removes all of it.
func counterFilter(id ratelimit.CounterID, w *syncer.Write) bson.D {
	filter := byID(counterID(id))
	if w.Versioned {
		return append(filter, bson.E{Key: "version", Value: sameOrAbsent(w.Version)}, bson.E{Key: "etag", Value: sameOrAbsent(w.Etag)})
	}
	below := bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: w.Seq}}}} // or absent
	filter = append(filter,
		bson.E{Key: "frame", Value: w.Frame},
		bson.E{Key: writerField(w.Writer), Value: below},
		bson.E{Key: "pruned", Value: below})
	for _, f := range w.Remove.Frames {
		filter = append(filter, bson.E{Key: frameField(f.Name), Value: f.Count})
	}
	for _, x := range w.Remove.Writers {
		filter = append(filter, bson.E{Key: writerField(x.Writer), Value: x.Seq})
	}
	return filter
}

// sameOrAbsent is the condition that a field has a value. A field that is absent
// reads as 0.
func sameOrAbsent(n int64) any {
	if n == 0 {
		return bson.D{{Key: "$in", Value: bson.A{n, nil}}}
	}
	return n
}

// counterUpdate has no two operators on one path, nor on a path and one below
// it; [syncer.Write.Check] has refused writes of which that could not be said.
func counterUpdate(w *syncer.Write) bson.D {
	inc := bson.D{{Key: "version", Value: int64(1)}}
	set := bson.D{
		{Key: "etag", Value: w.NewEtag}, {Key: "frame", Value: w.Frame},
	}
	if w.Rewrite {
		set = append(set, bson.E{Key: counts, Value: wholeCounts(w.Delta)})
	} else {
		for _, f := range w.Delta {
			inc = append(inc, bson.E{Key: frameField(f.Name), Value: f.Count})
		}
	}
	// A copy of this process may have written a higher sequence under its name.
	highest := bson.D{{Key: "expire", Value: w.Expire}, {Key: writerField(w.Writer), Value: w.Seq}}
	if w.Pruned != 0 {
		highest = append(highest, bson.E{Key: "pruned", Value: w.Pruned})
	}
	update := bson.D{{Key: "$inc", Value: inc}, {Key: "$set", Value: set}, {Key: "$max", Value: highest}}
	if unset := removedFields(&w.Remove); len(unset) > 0 {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	if !w.Rewrite && len(w.Delta)+len(w.Remove.Frames) == 0 { // a document is not valid without the field
		update = append(update, bson.E{Key: "$setOnInsert", Value: bson.D{{Key: counts, Value: bson.D{}}}})
	}
	return update
}

func wholeCounts(frames []ratelimit.FrameCount) bson.D {
	doc := make(bson.D, 0, len(frames))
	for _, f := range frames {
		doc = append(doc, bson.E{Key: strconv.FormatInt(f.Name, 10), Value: f.Count})
	}
	return doc
}

func removedFields(r *syncer.Removal) (unset bson.D) {
	for _, f := range r.Frames {
		unset = append(unset, bson.E{Key: frameField(f.Name), Value: ""})
	}
	for _, x := range r.Writers {
		unset = append(unset, bson.E{Key: writerField(x.Writer), Value: ""})
	}
	return unset
}

// counts is the field with the count of each frame.
const counts = "requestCounters"

func frameField(name int64) string { return counts + "." + strconv.FormatInt(name, 10) }

func writerField(name string) string { return "writers." + name }
