package mongo

import (
	"fmt"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterReader reads the document of a counter. Other programs may have written to it, so it keeps
// the fields that are valid and reports the first problem with the others.
type counterReader struct {
	doc     bson.Raw
	record  syncer.Record
	problem string // the first
	more    int    // further ones
}

// counterRecord returns the record of a document. It has a Problem if a part of the document is not
// valid, and is never an error.
func counterRecord(doc bson.Raw) syncer.Record {
	r := counterReader{doc: doc}
	for _, name := range []string{"version", "etag", "frame", counts} {
		if doc.Lookup(name).IsZero() {
			r.complain("%s is missing", name)
		}
	}
	r.record.ID = ratelimit.CounterID{ClientID: r.text("clientId"), Username: r.text("username"), Limit: r.text("limit")}
	r.record.Version, r.record.Etag = r.number("version", 1), r.number("etag", math.MinInt64)
	r.record.Frame, r.record.Pruned = max(r.number("frame", 0), 0), r.number("pruned", math.MinInt64)
	r.record.Writers = map[string]int64{}
	r.each("writers", r.writer)
	r.each(counts, r.frame)
	for _, problem := range r.record.Bound() {
		r.complain("%s", problem)
	}
	r.record.Problem = r.problem
	if r.more > 0 {
		r.record.Problem += fmt.Sprintf(", and %d more", r.more)
	}
	return r.record
}

func (r *counterReader) complain(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
		return
	}
	r.more++
}

// text reads a field of the _id. A document that was read by its _id has it.
func (r *counterReader) text(name string) string {
	s, _ := r.doc.Lookup("_id", name).StringValueOK()
	return s
}

// number reads a whole number, which may be absent.
func (r *counterReader) number(name string, least int64) int64 {
	v := r.doc.Lookup(name)
	n, ok := whole(v)
	switch {
	case v.IsZero():
	case !ok:
		r.complain("%s is no whole number", name)
	case n < least:
		r.complain("%s is %d", name, n)
	}
	return n
}

// whole returns the value of a whole number of any BSON type that a shell may write, and false for any
// other value. A double beyond 2^53 is not exact, and so no whole number.
func whole(v bson.RawValue) (int64, bool) {
	if f, ok := v.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) <= 1<<53
	}
	if n, ok := v.Int32OK(); ok {
		return int64(n), true
	}
	return v.Int64OK()
}

// each calls read for the elements of a document, which may be absent. Only a rewrite can remove frames
// that it cannot read, so they make the record Damaged.
func (r *counterReader) each(name string, read func(key string, v bson.RawValue)) {
	v := r.doc.Lookup(name)
	if v.IsZero() {
		return
	}
	doc, ok := v.DocumentOK()
	elements, err := doc.Elements()
	if !ok || err != nil {
		r.complain("%s is no document", name)
		r.record.Damaged = r.record.Damaged || name == counts
	}
	for _, e := range elements {
		read(e.Key(), e.Value())
	}
}

// writer reads an entry of writers.
func (r *counterReader) writer(name string, v bson.RawValue) {
	seq, ok := whole(v)
	switch {
	case !syncer.ValidWriter(name):
		r.complain("%.40q is no writer's name", name)
	case !ok:
		r.complain("the sequence of writer %.40s is no whole number", name)
	default:
		r.record.Writers[name] = seq
	}
}

// frame reads a count as it is stored, whatever its size. One that is not valid is left out; only a
// rewrite of all frames can remove it, so the record is Damaged.
func (r *counterReader) frame(key string, v bson.RawValue) {
	name, err := strconv.ParseInt(key, 10, 64)
	count, ok := whole(v)
	switch {
	case err != nil || name < 0 || strconv.FormatInt(name, 10) != key:
		r.complain("%.40q is no frame's name", key)
	case !ok:
		r.complain("the count of frame %d is no whole number", name)
	default:
		r.record.Frames = append(r.record.Frames, ratelimit.FrameCount{Name: name, Count: count})
		return
	}
	r.record.Damaged = true
}
