package mongo

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterID returns the _id. The order of its fields is part of it.
func counterID(id ratelimit.CounterID) bson.D {
	d := bson.D{{Key: "clientId", Value: id.ClientID}, {Key: "username", Value: id.Username}}
	if id.Limit != "" {
		d = append(d, bson.E{Key: "limit", Value: id.Limit})
	}
	return d
}

// counterModel returns the write as an upsert. If there is no document, it creates one; if the
// filter does not match the one there is, it fails because of the duplicate _id.
func counterModel(id ratelimit.CounterID, w *syncer.Write) mongo.WriteModel {
	return mongo.NewUpdateOneModel().SetFilter(counterFilter(id, w)).SetUpdate(counterUpdate(w)).SetUpsert(true)
}

// counterFilter returns the condition of the write. It is never the _id alone: a write that arrives
// twice, because a gateway repeated it, or late would be counted twice.
//
// A versioned write depends on version and etag. The syncer sends one while the document shows no
// other writer, and where the other kind would not match or not do: its frames have to be
// rewritten, it does not state their length, or pruned is ahead of the sequence. Every other write,
// and so most writes of a shared key, depends on the writer's own sequence, which writes of others
// do not change. That is as exact. The update adds, and sums are the same in any order. It raises
// the sequence in the same step, so the sequence of an applied write never matches again. What it
// removes is part of the filter, with the values that were read. And since every write changes the
// etag, a versioned attempt that arrives after its repeat does not match either.
//
// The fields that the filter compares by equality become part of a document that the upsert
// creates, before the update is applied. The update sets or removes each of them.
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

// sameOrAbsent returns the condition that a field has the value; 0 also stands for a field that is
// absent.
func sameOrAbsent(n int64) any {
	if n == 0 {
		return bson.D{{Key: "$in", Value: bson.A{n, nil}}}
	}
	return n
}

// counterUpdate returns the update. It has no two operators on one path, or on a path and one below
// it: [syncer.Write.Check] refuses writes that would need them.
func counterUpdate(w *syncer.Write) bson.D {
	inc := bson.D{{Key: "version", Value: int64(1)}}
	set := bson.D{{Key: "etag", Value: w.NewEtag}, {Key: "frame", Value: w.Frame}}
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
	var unset bson.D
	for _, f := range w.Remove.Frames {
		unset = append(unset, bson.E{Key: frameField(f.Name), Value: ""})
	}
	for _, x := range w.Remove.Writers {
		unset = append(unset, bson.E{Key: writerField(x.Writer), Value: ""})
	}
	if unset != nil {
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

// counts is the field with the count of each frame.
const counts = "requestCounters"

func frameField(name int64) string { return counts + "." + strconv.FormatInt(name, 10) }

func writerField(name string) string { return "writers." + name }
