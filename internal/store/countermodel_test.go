package store_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/store/exchange"
)

// modelDocument is a document as the contract of [exchange.Store] defines it.
type modelDocument struct {
	version, etag, frame, pruned int64
	writers                      map[string]int64
	counts                       map[int64]int64 // by frame
	expire                       time.Time
}

// meets reports whether the condition of a write holds. Without a document, d is nil.
func (d *modelDocument) meets(w *exchange.Write) bool {
	switch {
	case d == nil:
		return !w.Versioned || w.Version == 0 && w.Etag == 0
	case w.Versioned:
		return d.version == w.Version && d.etag == w.Etag
	}
	met := d.frame == w.Frame && d.writers[w.Writer] < w.Seq && d.pruned < w.Seq
	for _, f := range w.Remove.Frames {
		count, there := d.counts[f.Name]
		met = met && there && count == f.Count
	}
	for _, x := range w.Remove.Writers {
		met = met && d.writers[x.Writer] == x.Seq
	}
	return met
}

// after returns the document that a write leaves.
func (d *modelDocument) after(w *exchange.Write) *modelDocument {
	next := modelDocument{writers: map[string]int64{}, counts: map[int64]int64{}}
	if d != nil {
		next = *d
		next.writers, next.counts = maps.Clone(d.writers), maps.Clone(d.counts)
	}
	if w.Rewrite {
		clear(next.counts)
	}
	for _, x := range w.Remove.Writers {
		delete(next.writers, x.Writer)
	}
	for _, f := range w.Remove.Frames {
		delete(next.counts, f.Name)
	}
	for _, f := range w.Delta {
		next.counts[f.Name] += f.Count
	}
	next.writers[w.Writer] = max(next.writers[w.Writer], w.Seq)
	next.version, next.etag, next.frame, next.pruned = next.version+1, w.NewEtag, w.Frame, max(next.pruned, w.Pruned)
	if w.Expire.After(next.expire) {
		next.expire = w.Expire
	}
	return &next
}

// record returns the document as a store must return it.
func (d *modelDocument) record(id exchange.CounterID) *exchange.Record {
	if d == nil {
		return nil
	}
	r := &exchange.Record{ID: id, Version: d.version, Etag: d.etag, Frame: d.frame, Pruned: d.pruned, Writers: d.writers}
	for _, name := range slices.Sorted(maps.Keys(d.counts)) {
		r.Frames = append(r.Frames, exchange.FrameCount{Name: name, Count: d.counts[name]})
	}
	return r
}

// chance draws writes around the documents of the model.
type chance struct{ *rand.Rand }

func (c chance) one(in int) bool { return c.IntN(in) == 0 }

// near returns a value, or sometimes another one beside it.
func (c chance) near(n int64) int64 { return n + []int64{0, 0, 0, 0, 1, -1, -2}[c.IntN(7)] }

// write returns a random write. It often depends on a document as it is, and sometimes on one that
// differs in one value.
func (c chance) write(d *modelDocument) *exchange.Write {
	if d == nil {
		d = &modelDocument{frame: minute}
	}
	w := &exchange.Write{
		Versioned: c.one(2), Version: d.version, Etag: d.etag, NewEtag: 1 + c.Int64N(1<<62), Frame: d.frame,
		Writer: string(rune('a' + c.IntN(4))), Expire: epoch.Add(time.Duration(c.IntN(4)) * time.Hour),
	}
	if c.one(4) {
		w.Version, w.Etag = max(c.near(d.version), 0), c.near(d.etag)
	}
	if c.one(20) {
		w.Version, w.Etag = 0, 0
	}
	if c.one(8) {
		w.Frame = c.near(minute)
	}
	w.Seq = max(c.near(max(d.writers[w.Writer], d.pruned*int64(c.IntN(2)))+1), 1)
	if c.one(4) {
		w.Pruned = max(c.near(d.pruned), 0)
	}
	free := []int64{old - 60, old, frame, frame + 60, 1} // frames that the write does not name yet
	c.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	if w.Rewrite = w.Versioned && c.one(5); !w.Rewrite {
		for range c.IntN(3) {
			w.Remove.Frames = append(w.Remove.Frames, exchange.FrameCount{Name: free[0], Count: c.near(d.counts[free[0]])})
			free = free[1:]
		}
	}
	counts := c.IntN(3)
	if w.Versioned && len(w.Remove.Frames) > 0 { // on MongoDB, one that counts nothing leaves an invalid document if the document has expired since
		counts++
	}
	for range counts {
		w.Delta = append(w.Delta, exchange.FrameCount{Name: free[0], Count: c.Int64N(8) - 2})
		free = free[1:]
	}
	for _, writer := range []string{"a", "b", "x"} {
		if writer != w.Writer && c.one(6) {
			w.Remove.Writers = append(w.Remove.Writers, exchange.WriterSeq{Writer: writer, Seq: max(c.near(d.writers[writer]), 1)})
		}
	}
	return w
}

// counterModel makes random exchanges and compares each result with the model. Most writes depend
// on a document as it is, others on a document that differs a little.
func counterModel(t *testing.T, s fixture) {
	t.Helper()
	const keys, rounds = 24, 60
	c := chance{rand.New(rand.NewPCG(1, 2))}
	model := make([]*modelDocument, keys)
	seen := map[exchange.Status]int{}
	for range rounds {
		items := make([]exchange.Item, keys)
		for k := range items {
			if items[k] = (exchange.Item{ID: counterID(strconv.Itoa(100 + k)), Read: !c.one(3)}); !c.one(5) {
				items[k].Write = c.write(model[k])
			}
		}
		for k, got := range exchanged(t, s, items...) {
			it, before := &items[k], model[k]
			if it.Write != nil {
				seen[got.Status]++
				model[k] = modelResult(t, before, it.Write, got.Status)
			}
			read := model[k]
			if r := got.Record; r == nil && before == nil || r != nil && before != nil && r.Etag == before.etag {
				read = before // it was read before the write
			}
			want := read.record(it.ID)
			if !it.Read {
				want = nil
			}
			equal(t, "what was read", want, got.Record)
			if got.Read != it.Read {
				t.Fatalf("%+v was read: %v", it, got.Read)
			}
		}
		if c.one(6) {
			now := epoch.Add(time.Duration(c.IntN(240)) * time.Minute)
			s.sweep(now)
			for k, d := range model {
				if d != nil && d.expire.Before(now) {
					model[k] = nil
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	for k, d := range model {
		equal(t, "the document at the end", d.record(counterID(strconv.Itoa(100+k))), load(t, s, counterID(strconv.Itoa(100+k))))
	}
	if seen[exchange.Applied] < 300 || seen[exchange.Conflict] < 100 {
		t.Errorf("the outcomes are %v: the test is blind", seen)
	}
}

// modelResult returns the document after a write with an outcome that must be right. A write that
// depends on a document that is gone may be refused, or create a document with an unknown outcome.
func modelResult(t *testing.T, before *modelDocument, w *exchange.Write, got exchange.Status) *modelDocument {
	t.Helper()
	want := exchange.Conflict
	if before.meets(w) {
		want = exchange.Applied
	}
	if gone := before == nil && want == exchange.Conflict; got != want && (!gone || got != exchange.Unknown) {
		t.Errorf("%+v onto %+v is %s, want %s", w, before, got, want)
	}
	if got == exchange.Conflict {
		return before
	}
	after := before.after(w)
	if got == exchange.Unknown {
		after.version += w.Version
	}
	return after
}
