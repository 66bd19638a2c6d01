package mongo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// maxWritersRead bounds what is read of a document's writers; there are as many
// as instances were alive lately. Those of the highest sequences are read.
const maxWritersRead = 10_000

// counterReader takes a document apart and keeps what makes sense of it: other
// programs may have written it, or half of it.
type counterReader struct {
	record  syncer.Record
	problem string // the first
	more    int    // further ones
}

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
	for _, name := range []string{"version", "etag", "requestCounters"} {
		if !has[name] {
			r.complain("%s is missing", name)
		}
	}
	r.trim()
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
	case "writers":
		r.record.Writers = map[string]int64{}
		r.each(name, v, r.writer)
	case "requestCounters":
		r.each(name, v, r.frame)
	}
}

// text reads a field of the _id, by which the document was asked for.
func (r *counterReader) text(id bson.RawValue, name string) string {
	doc, ok := id.DocumentOK()
	if !ok {
		return ""
	}
	s, _ := doc.Lookup(name).StringValueOK()
	return s
}

// number reads a whole number of any of the types that a shell may write.
func (r *counterReader) number(name string, v bson.RawValue) int64 {
	n, ok := whole(v)
	if !ok {
		r.complain("%s is no whole number", name)
	}
	return n
}

func whole(v bson.RawValue) (int64, bool) {
	if f, ok := v.DoubleOK(); ok {
		return int64(f), f == math.Trunc(f) && math.Abs(f) <= 1<<53
	}
	if n, ok := v.Int32OK(); ok {
		return int64(n), true
	}
	return v.Int64OK()
}

func (r *counterReader) each(name string, v bson.RawValue, read func(key string, v bson.RawValue)) {
	doc, ok := v.DocumentOK()
	if !ok {
		r.complain("%s is no document", name)
		return
	}
	elements, err := doc.Elements()
	if err != nil {
		r.complain("%s is no sound document: %v", name, err)
	}
	for _, e := range elements {
		read(e.Key(), e.Value())
	}
}

func (r *counterReader) writer(name string, v bson.RawValue) {
	if !validWriter(name) {
		r.complain("%.40q is no writer's name", name)
		return
	}
	if seq, ok := whole(v); ok {
		r.record.Writers[name] = seq
		return
	}
	r.complain("the sequence of writer %.40s is no whole number", name)
}

func (r *counterReader) frame(key string, v bson.RawValue) {
	name, err := strconv.ParseInt(key, 10, 64)
	if err != nil || name < 0 || strconv.FormatInt(name, 10) != key {
		r.complain("%.40q is no frame's name", key)
		return
	}
	count, ok := whole(v)
	if !ok || count < 0 {
		r.complain("the count of frame %d makes no sense", name)
		return
	}
	r.record.Frames = append(r.record.Frames, ratelimit.FrameCount{Name: name, Count: count})
}

// trim puts the frames in order and leaves out what nobody of us wrote.
func (r *counterReader) trim() {
	frames := r.record.Frames
	slices.SortFunc(frames, func(a, b ratelimit.FrameCount) int { return cmp.Compare(a.Name, b.Name) })
	if extra := len(frames) - syncer.MaxFramesRead; extra > 0 {
		r.complain("it has %d frames, more than any limit", len(frames))
		r.record.Frames = slices.Clone(frames[extra:])
	}
	if len(r.record.Writers) > maxWritersRead {
		r.complain("it has %d writers", len(r.record.Writers))
		r.record.Writers = newestWriters(r.record.Writers)
	}
}

func newestWriters(all map[string]int64) map[string]int64 {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(all[b], all[a]) })
	newest := make(map[string]int64, maxWritersRead)
	for _, name := range names[:maxWritersRead] {
		newest[name] = all[name]
	}
	return newest
}

// validWriter reports whether the name can be one of ours, and so part of a
// field's path.
func validWriter(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
