package mongo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

func sound() bson.D {
	return bson.D{
		{Key: "_id", Value: counterID(hotID)},
		{Key: "version", Value: int64(3)},
		{Key: "etag", Value: int64(4)},
		{Key: "writers", Value: bson.D{{Key: "me", Value: int64(7)}}},
		{Key: "expire", Value: time.Now()},
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

// foreignDocuments are documents that nobody of us can have written.
func foreignDocuments() map[string]struct {
	doc  bson.D
	says string
} {
	frames := func(e ...bson.E) bson.D { return with(sound(), "requestCounters", bson.D(e)) }
	return map[string]struct {
		doc  bson.D
		says string
	}{
		"no version":            {without(sound(), "version"), "version is missing"},
		"no counters":           {without(sound(), "requestCounters"), "requestCounters is missing"},
		"only an _id":           {sound()[:1], "version is missing, and 2 more"},
		"version in words":      {with(sound(), "version", "three"), "version is no whole number"},
		"etag a fraction":       {with(sound(), "etag", 0.5), "etag is no whole number"},
		"etag not a number":     {with(sound(), "etag", bson.Null{}), "etag is no whole number"},
		"counters a list":       {with(sound(), "requestCounters", bson.A{1}), "requestCounters is no document"},
		"writers a number":      {with(sound(), "writers", 7), "writers is no document"},
		"a writer like a path":  {with(sound(), "writers", bson.D{{Key: "a.b", Value: 1}}), `"a.b" is no writer's name`},
		"a writer without name": {with(sound(), "writers", bson.D{{Key: "", Value: 1}}), `"" is no writer's name`},
		"a writer in words":     {with(sound(), "writers", bson.D{{Key: "me", Value: "x"}}), "sequence of writer me"},
		"a negative count":      {frames(bson.E{Key: "1622211780", Value: int64(-1)}), "count of frame 1622211780"},
		"a count in words":      {frames(bson.E{Key: "1622211780", Value: "1"}), "count of frame 1622211780"},
		"a frame in words":      {frames(bson.E{Key: "now", Value: int64(1)}), `"now" is no frame's name`},
		"a frame below zero":    {frames(bson.E{Key: "-5", Value: int64(1)}), `"-5" is no frame's name`},
		"a frame padded":        {frames(bson.E{Key: "007", Value: int64(1)}), `"007" is no frame's name`},
		"a frame too large":     {frames(bson.E{Key: "99999999999999999999", Value: int64(1)}), "is no frame's name"},
		"a huge map":            {with(sound(), "requestCounters", many(100_000, int64(1))), "it has 100000 frames"},
		"a huge map of rubbish": {with(sound(), "requestCounters", many(5000, "x")), "and 4999 more"},
		"many writers":          {with(sound(), "writers", many(20_000, int64(1))), "it has 20000 writers"},
	}
}

// TestForeignDocuments: what others have written is reported, and what of it
// makes sense is read.
func TestForeignDocuments(t *testing.T) {
	s, _, _ := throughProxy(t)
	for name, test := range foreignDocuments() {
		t.Run(name, func(t *testing.T) {
			if _, err := s.counters.DeleteMany(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			anything := options.InsertOne().SetBypassDocumentValidation(true)
			if _, err := s.counters.InsertOne(t.Context(), test.doc, anything); err != nil {
				t.Fatal(err)
			}
			r := document(t, s)
			if r.ID != hotID || !strings.Contains(r.Problem, test.says) {
				t.Errorf("the problem is %q, want %q", r.Problem, test.says)
			}
			if len(r.Frames) > syncer.MaxFramesRead || len(r.Writers) > maxWritersRead {
				t.Errorf("%d frames and %d writers were read", len(r.Frames), len(r.Writers))
			}
			// What the server makes of a write onto it is its own matter (one
			// hangs up on a list); it must only not pass for a lost race.
			outcomes, err := s.Apply(t.Context(), "me", []syncer.Write{again(aWrite(9, 1))})
			if err == nil && outcomes[0].Status == syncer.Conflict {
				t.Errorf("a write onto it: %v", outcomes)
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
		"a limit's count": with(sound(), "_id", counterID(ratelimit.CounterID{ClientID: "shop", Username: "alice"})),
	} {
		raw, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		want := syncer.Record{
			ID: hotID, Version: 3, Etag: 4, Writers: map[string]int64{"me": 7},
			Frames: []ratelimit.FrameCount{{Name: 1622211780, Count: 1}, {Name: 1622211840, Count: 2}},
		}
		if diff := cmp.Diff(want, counterRecord(raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzCounterRecord(f *testing.F) {
	raw, err := bson.Marshal(sound())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{})
	f.Add(raw[:len(raw)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		r := counterRecord(b)
		if len(r.Frames) > syncer.MaxFramesRead {
			t.Errorf("%d frames", len(r.Frames))
		}
		for _, frame := range r.Frames {
			if frame.Count < 0 || frame.Name < 0 {
				t.Errorf("frame %+v was let in", frame)
			}
		}
	})
}
