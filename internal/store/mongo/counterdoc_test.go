package mongo

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/exchange"
)

func sound() bson.D {
	return bson.D{
		{Key: "_id", Value: counterID(hotID)},
		{Key: "version", Value: int64(3)},
		{Key: "etag", Value: int64(4)},
		{Key: "frame", Value: int64(60_000)},
		{Key: "pruned", Value: int64(5)},
		{Key: "writers", Value: bson.D{{Key: "me", Value: int64(7)}}},
		{Key: "expire", Value: time.Now().Add(time.Hour)},
		{Key: "requestCounters", Value: bson.D{{Key: "1622211840", Value: int64(2)}, {Key: "1622211780", Value: int64(1)}}},
	}
}

func with(doc bson.D, name string, value any) bson.D {
	for i := range doc {
		if doc[i].Key == name {
			doc[i].Value = value
		}
	}
	return doc
}

func without(doc bson.D, name string) (rest bson.D) {
	for _, e := range doc {
		if e.Key != name {
			rest = append(rest, e)
		}
	}
	return rest
}

func many(n int, value any) (doc bson.D) {
	for i := range n {
		doc = append(doc, bson.E{Key: fmt.Sprint(1000 + i), Value: value})
	}
	return doc
}

// foreign is a document that no release can have written.
type foreign struct {
	doc     bson.D
	says    string
	damaged bool // it has parts that only a rewrite can remove
}

func foreignDocuments() map[string]foreign {
	frames := func(e ...bson.E) bson.D { return with(sound(), "requestCounters", bson.D(e)) }
	const old = "1622211780"
	return map[string]foreign{
		"no version":            {without(sound(), "version"), "version is missing", false},
		"no counters":           {without(sound(), "requestCounters"), "requestCounters is missing", false},
		"only an _id":           {sound()[:1], "version is missing, and 3 more", false},
		"no frame":              {without(sound(), "frame"), "frame is missing", false},
		"version in words":      {with(sound(), "version", "three"), "version is not a whole number", false},
		"version 0":             {with(sound(), "version", int64(0)), "version is 0", false},
		"etag a fraction":       {with(sound(), "etag", 0.5), "etag is not a whole number", false},
		"etag not a number":     {with(sound(), "etag", bson.Null{}), "etag is not a whole number", false},
		"frame in words":        {with(sound(), "frame", "60s"), "frame is not a whole number", false},
		"frame below zero":      {with(sound(), "frame", int64(-1)), "frame is -1", false},
		"pruned in words":       {with(sound(), "pruned", "x"), "pruned is not a whole number", false},
		"counters a list":       {with(sound(), "requestCounters", bson.A{1}), "requestCounters is not a document", true},
		"counters in words":     {with(sound(), "requestCounters", "x"), "requestCounters is not a document", true},
		"writers a number":      {with(sound(), "writers", 7), "writers is not a document", false},
		"a writer like a path":  {with(sound(), "writers", bson.D{{Key: "a.b", Value: 1}}), `"a.b" is not a writer name`, false},
		"a writer without name": {with(sound(), "writers", bson.D{{Key: "", Value: 1}}), `"" is not a writer name`, false},
		"a writer in words":     {with(sound(), "writers", bson.D{{Key: "me", Value: "x"}}), "sequence of writer me", false},
		"a count in words":      {frames(bson.E{Key: old, Value: "1"}), "count of frame 1622211780", true},
		"a count a fraction":    {frames(bson.E{Key: old, Value: 1.5}), "count of frame 1622211780", true},
		"a count beyond all":    {frames(bson.E{Key: old, Value: 1e300}), "count of frame 1622211780", true},
		"a frame in words":      {frames(bson.E{Key: "now", Value: int64(1)}), `"now" is not a frame name`, true},
		"a frame below zero":    {frames(bson.E{Key: "-5", Value: int64(1)}), `"-5" is not a frame name`, true},
		"a frame padded":        {frames(bson.E{Key: "007", Value: int64(1)}), `"007" is not a frame name`, true},
		"a frame too large":     {frames(bson.E{Key: "99999999999999999999", Value: int64(1)}), "is not a frame name", true},
		"a huge map of rubbish": {with(sound(), "requestCounters", many(5000, "x")), "and 4999 more", true},
	}
}

// TestForeignDocuments: documents written by other programs are reported, and their valid parts are
// read. Where only a rewrite helps, it does.
func TestForeignDocuments(t *testing.T) {
	s, _, _ := throughProxy(t)
	for name, test := range foreignDocuments() {
		t.Run(name, func(t *testing.T) {
			putDocument(t, s, test.doc)
			r := document(t, s)
			if r.ID != hotID || !strings.Contains(r.Problem, test.says) || r.Damaged != test.damaged {
				t.Errorf("damaged is %v, the problem %q, want %q", r.Damaged, r.Problem, test.says)
			}
			// The result of a write to this document depends on the server (one hangs up on a
			// list). It must only not look like a lost race, unless the condition itself is wrong.
			got, err := writeOne(t.Context(), s, hotID, aWrite("me", 9, 1))
			if err == nil && got.Status == exchange.Conflict && r.Frame != 0 {
				t.Errorf("a write onto it: %+v", got)
			}
			if test.damaged {
				putDocument(t, s, test.doc)
				w := onto(r, aWrite("me", 9, 1), true)
				w.Rewrite = true
				mustApply(t, s, w, exchange.Applied)
				if r := document(t, s); r.Damaged || r.Problem != "" || counted(r) != 1 {
					t.Errorf("after a rewrite it is %+v", r)
				}
			}
		})
	}
}

func TestSoundDocument(t *testing.T) {
	for name, doc := range map[string]bson.D{
		"as we write it":  sound(),
		"from a shell":    with(with(sound(), "version", 3.0), "etag", int32(4)),
		"an extra field":  append(sound(), bson.E{Key: "note", Value: "x"}),
		"another order":   append(sound()[1:], sound()[0]),
		"without expire":  without(sound(), "expire"),
		"other numbers":   with(with(sound(), "frame", int32(60_000)), "pruned", 5.0),
		"a limit's count": with(sound(), "_id", counterID(exchange.CounterID{ClientID: "shop", Username: "alice"})),
	} {
		raw, err := bson.Marshal(doc)
		check.OK(t, err)
		want := exchange.Record{
			ID: hotID, Version: 3, Etag: 4, Frame: 60_000, Pruned: 5, Writers: map[string]int64{"me": 7},
			Frames: []exchange.FrameCount{{Name: 1622211780, Count: 1}, {Name: 1622211840, Count: 2}},
		}
		if diff := cmp.Diff(want, counterRecord(raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReadAsStored: counts are read as stored, and a document without pruned is valid.
func TestReadAsStored(t *testing.T) {
	doc := without(sound(), "pruned")
	doc = with(doc, "requestCounters", bson.D{{Key: "9", Value: int64(math.MaxInt64)}, {Key: "7", Value: int64(-3)}, {Key: "8", Value: -2.0}})
	raw, err := bson.Marshal(doc)
	check.OK(t, err)
	want := exchange.Record{
		ID: hotID, Version: 3, Etag: 4, Frame: 60_000, Writers: map[string]int64{"me": 7},
		Frames: []exchange.FrameCount{{Name: 7, Count: -3}, {Name: 8, Count: -2}, {Name: 9, Count: math.MaxInt64}},
	}
	check.Equal(t, "record", counterRecord(raw), want)
}

func FuzzCounterRecord(f *testing.F) {
	raw, err := bson.Marshal(sound())
	check.OK(f, err)
	f.Add(raw)
	f.Add([]byte{})
	f.Add(raw[:len(raw)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		r := counterRecord(b)
		for _, frame := range r.Frames {
			if frame.Name < 0 {
				t.Errorf("frame %+v was let in", frame)
			}
		}
	})
}

// TestHeadlessDocuments: another program made a document without a version, an etag or both. A
// write with the condition that they are absent takes it over.
func TestHeadlessDocuments(t *testing.T) {
	s, _, _ := throughProxy(t)
	for _, missing := range [][]string{{"version"}, {"etag"}, {"version", "etag"}, {"version", "etag", "frame"}} {
		t.Run(strings.Join(missing, " "), func(t *testing.T) {
			doc := sound()
			for _, name := range missing {
				doc = without(doc, name)
			}
			putDocument(t, s, doc)
			r := document(t, s)
			mustApply(t, s, onto(r, aWrite("me", 9, 5), true), exchange.Applied)
			if after := document(t, s); after.Problem != "" || after.Version != r.Version+1 || counted(after) != counted(r)+5 {
				t.Errorf("before %+v\nafter %+v", r, after)
			}
			mustApply(t, s, onto(r, aWrite("me", 10, 5), true), exchange.Conflict)
		})
	}
}
