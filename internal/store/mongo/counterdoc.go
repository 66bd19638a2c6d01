package mongo

import (
	"fmt"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterReader reads the document of a counter field by field. Other programs may have written to
// it, so it keeps the fields that are valid and reports the first problem with the others.
type counterReader struct {
	record  syncer.Record
	problem string // the first
	more    int    // further ones
}

// counterRecord returns the record of a document. It has a Problem if a part of the document is not
// valid, and is never an error.
func counterRecord(raw bson.Raw) syncer.Record {
	var r counterReader
	elements, err := raw.Elements()
	if err != nil {
		r.complain("it is no sound document: %v", err)
	}
	has := map[string]bool{}
	for _, e := range elements {
		has[e.Key()] = true
		r.field(e.Key(), e.Value())
	}
	for _, name := range []string{"version", "etag", "frame", counts} {
		if !has[name] {
			r.complain("%s is missing", name)
		}
	}
	if has["version"] && r.record.Version < 1 {
		r.complain("version is %d", r.record.Version)
	}
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

func (r *counterReader) field(name string, v bson.RawValue) {
	switch name {
	case "_id":
		r.record.ID.ClientID = r.text(v, "clientId")
		r.record.ID.Username = r.text(v, "username")
		r.record.ID.Limit = r.text(v, "limit")
	case "version":
		r.record.Version = r.number(name, v)
	case "etag":
		r.record.Etag = r.number(name, v)
	case "frame":
		if r.record.Frame = r.number(name, v); r.record.Frame < 0 {
			r.complain("frame is %d", r.record.Frame)
			r.record.Frame = 0
		}
	case "pruned":
		r.record.Pruned = r.number(name, v)
	case "writers":
		r.record.Writers = map[string]int64{}
		r.each(name, v, r.writer)
	case counts:
		if !r.each(name, v, r.frame) {
			r.record.Damaged = true
		}
	}
}

// text reads a field of the _id. A document that was read by its _id has it.
func (r *counterReader) text(id bson.RawValue, name string) string {
	doc, ok := id.DocumentOK()
	if !ok {
		return ""
	}
	s, _ := doc.Lookup(name).StringValueOK()
	return s
}

// number reads a whole number of any BSON type that a shell may write.
func (r *counterReader) number(name string, v bson.RawValue) int64 {
	n, ok := whole(v)
	if !ok {
		r.complain("%s is no whole number", name)
	}
	return n
}

// whole returns the value of a whole number, and false for any other value. A double beyond 2^53 is
// not exact, and so no whole number.
func whole(v bson.RawValue) (int64, bool) {
	if f, ok := v.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) <= 1<<53
	}
	if n, ok := v.Int32OK(); ok {
		return int64(n), true
	}
	return v.Int64OK()
}

// each calls read for the elements of a document. It returns false if it cannot read all of them.
func (r *counterReader) each(name string, v bson.RawValue, read func(key string, v bson.RawValue)) (whole bool) {
	doc, ok := v.DocumentOK()
	if !ok {
		r.complain("%s is no document", name)
		return false
	}
	elements, err := doc.Elements()
	if err != nil {
		r.complain("%s is no sound document: %v", name, err)
	}
	for _, e := range elements {
		read(e.Key(), e.Value())
	}
	return err == nil
}

// writer reads an entry of writers.
func (r *counterReader) writer(name string, v bson.RawValue) {
	if !syncer.ValidWriter(name) {
		r.complain("%.40q is no writer's name", name)
		return
	}
	if seq, ok := whole(v); ok {
		r.record.Writers[name] = seq
		return
	}
	r.complain("the sequence of writer %.40s is no whole number", name)
}

// frame reads a count as it is stored, whatever its size. One that is not valid is left out; only a
// rewrite of all frames can remove it, so the record is Damaged.
func (r *counterReader) frame(key string, v bson.RawValue) {
	name, err := strconv.ParseInt(key, 10, 64)
	if err != nil || name < 0 || strconv.FormatInt(name, 10) != key {
		r.complain("%.40q is no frame's name", key)
		r.record.Damaged = true
		return
	}
	count, ok := whole(v)
	if !ok {
		r.complain("the count of frame %d is no whole number", name)
		r.record.Damaged = true
		return
	}
	r.record.Frames = append(r.record.Frames, ratelimit.FrameCount{Name: name, Count: count})
}
