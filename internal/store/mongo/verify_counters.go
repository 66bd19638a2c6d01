package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// The values of the probes. Sequences are as large as those of a real instance: not exact as doubles.
const (
	probeSeq                 int64 = 1_622_211_780_000<<20 + 77
	probeFrame               int64 = 60_000
	oldFrame, nowFrame, next int64 = 1622211600, 1622211780, 1622211840
	probeEtag                int64 = 1<<62 + 1
)

// counterCase is a write of a counter of its own, its outcome on MongoDB, and how the counter is
// afterwards. Before, it is as [counterBefore] says, unless it is fresh.
type counterCase struct {
	check  int
	name   string
	fresh  bool
	pruned bool // w1 was pruned
	change func(w *syncer.Write)
	want   syncer.Status
	after  string // empty: as before
}

const (
	counterBefore = "2: w0=-1 w1=-9, old=5 now=2"
	prunedBefore  = "2: w0=-1, old=5 now=2, pruned=-9"
)

// counterCases are those of the checks of that number.
func counterCases(check int) []counterCase {
	versioned := func(version, etag int64) func(*syncer.Write) {
		return func(w *syncer.Write) { w.Versioned, w.Version, w.Etag = true, version, etag }
	}
	seq := func(writer string, seq int64) func(*syncer.Write) {
		return func(w *syncer.Write) { w.Writer, w.Seq = writer, probeSeq+seq }
	}
	remove := func(frame, count, seq int64) func(*syncer.Write) {
		return func(w *syncer.Write) {
			w.Remove = syncer.Removal{
				Frames: []ratelimit.FrameCount{{Name: frame, Count: count}}, Writers: []syncer.WriterSeq{{Writer: "w1", Seq: probeSeq + seq}},
			}
			w.Pruned = probeSeq - 9
		}
	}
	count := func(frame, n int64) func(*syncer.Write) {
		return func(w *syncer.Write) {
			versioned(2, probeEtag)(w)
			w.Delta = []ratelimit.FrameCount{{Name: frame, Count: n}}
		}
	}
	all := []counterCase{
		{3, "as seen", false, false, versioned(2, probeEtag), syncer.Applied, "3: w0=0 w1=-9, old=5 now=6"},
		{3, "another version", false, false, versioned(3, probeEtag), syncer.Conflict, ""},
		{3, "another etag", false, false, versioned(2, probeEtag+1), syncer.Conflict, ""},
		{3, "not seen", false, false, versioned(0, 0), syncer.Conflict, ""},
		{3, "a first write", true, false, versioned(0, 0), syncer.Applied, "1: w0=0, now=4"},
		{3, "expired since", true, false, versioned(2, probeEtag), syncer.Unknown, "3: w0=0, now=4"},
		{4, "a writer unknown", false, false, seq("w2", 0), syncer.Applied, "3: w0=-1 w1=-9 w2=0, old=5 now=6"},
		{4, "a higher sequence", false, false, seq("w0", 0), syncer.Applied, "3: w0=0 w1=-9, old=5 now=6"},
		{4, "the same sequence", false, false, seq("w0", -1), syncer.Conflict, ""},
		{4, "a lower sequence", false, false, seq("w0", -2), syncer.Conflict, ""},
		{4, "another frame length", false, false, func(w *syncer.Write) { w.Frame *= 60 }, syncer.Conflict, ""},
		{4, "a first write by sequence", true, false, seq("w0", 0), syncer.Applied, "1: w0=0, now=4"},
		{4, "pruned before", false, true, seq("w1", -8), syncer.Applied, "3: w0=-1 w1=-8, old=5 now=6, pruned=-9"},
		{4, "pruned since", false, true, seq("w1", -9), syncer.Conflict, prunedBefore},
		{5, "removed as seen", false, false, remove(oldFrame, 5, -9), syncer.Applied, "3: w0=0, now=6, pruned=-9"},
		{5, "a count that has grown", false, false, remove(oldFrame, 4, -9), syncer.Conflict, ""},
		{5, "a count that is gone", false, false, remove(next, 5, -9), syncer.Conflict, ""},
		{5, "a writer that has written", false, false, remove(oldFrame, 5, -10), syncer.Conflict, ""},
		{5, "removed from nothing", true, false, remove(oldFrame, 5, -9), syncer.Applied, "1: w0=0, now=4, pruned=-9"},
		{8, "a removal beside a count", false, false, func(w *syncer.Write) {
			versioned(2, probeEtag)(w)
			remove(oldFrame, 5, -9)(w)
		}, syncer.Applied, "3: w0=0, now=6, pruned=-9"},
		{8, "a rewrite", false, false, func(w *syncer.Write) {
			count(next, 1)(w)
			w.Rewrite = true
		}, syncer.Applied, "3: w0=0 w1=-9, next=1"},
		{9, "beyond 53 bits", false, false, count(nowFrame, 1<<53+1), syncer.Applied, "3: w0=0 w1=-9, old=5 now=9007199254740995"},
		{9, "beyond 64 bits", false, false, count(nowFrame, math.MaxInt64), syncer.Rejected, ""},
	}
	return slices.DeleteFunc(all, func(c counterCase) bool { return c.check != check })
}

// id returns the ID of a scratch counter.
func (v *verifier) id(name string) ratelimit.CounterID {
	id := ratelimit.CounterID{ClientID: v.client, Username: name}
	v.ids = append(v.ids, counterID(id))
	return id
}

// write returns a write that counts 4.
func (v *verifier) write() *syncer.Write {
	return &syncer.Write{
		NewEtag: probeEtag + 2, Writer: "w0", Seq: probeSeq, Frame: probeFrame, Expire: v.expire,
		Delta: []ratelimit.FrameCount{{Name: nowFrame, Count: 4}},
	}
}

// prepare makes counters as they are before their cases.
func (v *verifier) prepare(ctx context.Context, pruned bool, ids ...ratelimit.CounterID) error {
	first, second := v.write(), v.write()
	first.Writer, first.Seq, first.Delta = "w1", probeSeq-9, []ratelimit.FrameCount{{Name: oldFrame, Count: 5}}
	first.Versioned, second.Versioned, second.Version, second.Etag = true, true, 1, first.NewEtag
	second.Seq, second.NewEtag, second.Delta = probeSeq-1, probeEtag, []ratelimit.FrameCount{{Name: nowFrame, Count: 2}}
	if pruned {
		second.Remove.Writers, second.Pruned = []syncer.WriterSeq{{Writer: "w1", Seq: first.Seq}}, first.Seq
	}
	for _, id := range ids {
		for _, w := range []*syncer.Write{first, second} {
			got, err := v.send(ctx, id, w)
			if err == nil && got.Status != syncer.Applied {
				err = differs("%s: a write before it was %s: %v", id.Username, got.Status, got.Err)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// counterChecks returns the probe of all cases of a number.
func counterChecks(check int) func(*verifier, context.Context) error {
	return func(v *verifier, ctx context.Context) error {
		cases := counterCases(check)
		ids := make([]ratelimit.CounterID, len(cases))
		for i, c := range cases {
			ids[i] = v.id(strconv.Itoa(check) + " " + c.name)
		}
		return atOnce(len(cases), func(i int) error { return v.counterCase(ctx, &cases[i], ids[i]) })
	}
}

func (v *verifier) counterCase(ctx context.Context, c *counterCase, id ratelimit.CounterID) error {
	if !c.fresh {
		if err := v.prepare(ctx, c.pruned, id); err != nil {
			return err
		}
	}
	w := v.write()
	c.change(w)
	got, err := v.send(ctx, id, w)
	if err != nil {
		return err
	}
	if got.Status != c.want {
		return differs("%s: the write was %s, not %s (%v)", c.name, got.Status, c.want, got.Err)
	}
	return v.isNow(ctx, id, cmp.Or(c.after, counterBefore))
}

// send sends one write. Err of the result has what the reply says of it.
func (v *verifier) send(ctx context.Context, id ratelimit.CounterID, w *syncer.Write) (syncer.Result, error) {
	results, err := v.store.Exchange(ctx, []syncer.Item{{ID: id, Write: w}})
	if len(results) == 1 && results[0].Err != nil {
		return results[0], nil //nolint:nilerr // it is in the result
	}
	if err != nil {
		return syncer.Result{}, err
	}
	return results[0], nil
}

// isNow compares a counter with a description.
func (v *verifier) isNow(ctx context.Context, id ratelimit.CounterID, want string) error {
	results, err := v.store.Exchange(ctx, []syncer.Item{{ID: id, Read: true}})
	if err != nil {
		return err
	}
	if got := describe(results[0].Record); got != want {
		return differs("%s: the document is %q, not %q", id.Username, got, want)
	}
	return nil
}

// describe writes a counter as in [counterBefore].
func describe(r *syncer.Record) string {
	if r == nil {
		return ""
	}
	var writers, frames []string
	for _, w := range []string{"w0", "w1", "w2"} {
		if seq, ok := r.Writers[w]; ok {
			writers = append(writers, fmt.Sprintf("%s=%d", w, seq-probeSeq))
		}
	}
	names := map[int64]string{oldFrame: "old", nowFrame: "now", next: "next"}
	for _, f := range r.Frames {
		frames = append(frames, fmt.Sprintf("%s=%d", names[f.Name], f.Count))
	}
	text := fmt.Sprintf("%d: %s, %s", r.Version, strings.Join(writers, " "), strings.Join(frames, " "))
	if r.Pruned != 0 {
		text += fmt.Sprintf(", pruned=%d", r.Pruned-probeSeq)
	}
	return text
}

// bulkOf sends four writes in one bulk: the second one cannot be applied.
func bulkOf(ordered bool) func(*verifier, context.Context) error {
	return func(v *verifier, ctx context.Context) error {
		ids, models := make([]ratelimit.CounterID, 4), make([]mongo.WriteModel, 4)
		for i := range ids {
			ids[i] = v.id(fmt.Sprintf("ordered %t %d", ordered, i))
			w := v.write()
			w.Versioned = true
			models[i] = counterModel(ids[i], w)
		}
		if err := v.prepare(ctx, false, ids[1]); err != nil {
			return err
		}
		_, err := v.store.counters.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered).SetComment(comment(ctx)))
		var failed mongo.BulkWriteException
		if err != nil && !errors.As(err, &failed) {
			return err
		}
		if e := failed.WriteErrors; len(e) != 1 || e[0].Index != 1 || e[0].Code != duplicateKey {
			return differs("of four writes the second one fails, and the reply names %v", e)
		}
		for i, id := range ids {
			want := "1: w0=0, now=4"
			if i == 1 {
				want = counterBefore
			} else if ordered && i > 1 {
				want = ""
			}
			if err := v.isNow(ctx, id, want); err != nil {
				return err
			}
		}
		return nil
	}
}

// fieldOrder writes a counter beside a document that has the fields of its _id swapped.
func (v *verifier) fieldOrder(ctx context.Context) error {
	id := v.id("fields in order")
	d := counterID(id)
	swapped := bson.D{d[1], d[0]}
	v.ids = append(v.ids, swapped)
	doc := append(byID(swapped), bson.E{Key: "version", Value: int64(7)}, bson.E{Key: "etag", Value: probeEtag},
		bson.E{Key: "expire", Value: v.expire}, bson.E{Key: counts, Value: bson.D{}})
	if _, err := v.store.counters.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx))); err != nil {
		return err
	}
	w := v.write()
	w.Versioned = true
	got, err := v.send(ctx, id, w)
	if err != nil {
		return err
	}
	if got.Status != syncer.Applied {
		return differs("the first write of a counter was %s, beside a document with the fields of its _id swapped", got.Status)
	}
	return v.isNow(ctx, id, "1: w0=0, now=4")
}

// maxOfDates writes a counter with an earlier and a later end than it has.
func (v *verifier) maxOfDates(ctx context.Context) error {
	id := v.id("dates")
	for i, at := range []struct{ written, stored time.Duration }{{0, 0}, {-time.Hour, 0}, {time.Hour, time.Hour}} {
		w := v.write()
		w.Versioned, w.Version, w.Expire = true, int64(i), v.expire.Add(at.written)
		if i > 0 {
			w.Etag = w.NewEtag
		}
		if _, err := v.send(ctx, id, w); err != nil {
			return err
		}
		doc, err := v.store.counters.FindOne(ctx, byID(counterID(id)), options.FindOne().SetComment(comment(ctx))).Raw()
		if err != nil {
			return err
		}
		if got, want := doc.Lookup("expire").Time(), v.expire.Add(at.stored); !got.Equal(want) {
			return differs("the date is %s, not %s", got, want)
		}
	}
	return nil
}

// rangeOfIDs lists the counters of the client as a range of _ids, beside those of another one. In scratch
// collections it also deletes the range.
func (v *verifier) rangeOfIDs(ctx context.Context) error {
	other := ratelimit.CounterID{ClientID: v.client + " next", Username: "u"}
	v.ids = append(v.ids, counterID(other))
	ours := v.id("in the range")
	if err := v.prepare(ctx, false, other, ours); err != nil {
		return err
	}
	all, err := v.store.CountersOf(ctx, v.client, nil, len(v.ids)+1)
	has := func(id ratelimit.CounterID) bool {
		return slices.ContainsFunc(all, func(r syncer.Record) bool { return r.ID == id })
	}
	if err == nil && (has(other) || !has(ours)) {
		err = differs("the range of a client's counters has those of another one, or lacks one")
	}
	if err != nil || v.scratch == "" {
		return err
	}
	if err := v.store.EraseCounters(ctx, v.client, nil); err != nil {
		return err
	}
	return cmp.Or(v.isNow(ctx, ours, ""), v.isNow(ctx, other, counterBefore))
}
