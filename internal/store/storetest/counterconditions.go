package storetest

import (
	"fmt"
	"testing"

	"oauth-server/internal/syncer"
)

// conditioned stores the document for the tests of conditions, and returns it.
func conditioned(t *testing.T, s fixture, name string) *syncer.Record {
	t.Helper()
	id := counterID(name)
	first := adding("a", 4)
	first.Seq, first.Delta = 10, frames(old, 3, frame, 4)
	apply(t, s, id, first)
	second := adding("b", 5)
	second.Seq, second.NewEtag, second.Pruned = 20, 12, 15
	return apply(t, s, id, second)
}

// counterConditions varies a write of writer c with sequence 30 onto a document of version 2 and etag
// 12 with writers a: 10 and b: 20, frames old: 3 and frame: 9, and pruned: 15.
func counterConditions(t *testing.T, s fixture) {
	t.Helper()
	removeFrames := func(names ...int64) func(w *syncer.Write) {
		return func(w *syncer.Write) { w.Remove.Frames = frames(names...) }
	}
	removeWriter := func(name string, seq int64) func(w *syncer.Write) {
		return func(w *syncer.Write) {
			w.Remove.Writers = append(w.Remove.Writers, syncer.WriterSeq{Writer: name, Seq: seq})
		}
	}
	by := func(writer string, seq int64) func(w *syncer.Write) {
		return func(w *syncer.Write) { w.Writer, w.Seq = writer, seq }
	}
	at := func(version, etag int64) func(w *syncer.Write) {
		return func(w *syncer.Write) { w.Versioned, w.Version, w.Etag = true, version, etag }
	}
	const applied, conflict = syncer.Applied, syncer.Conflict
	for i, test := range []struct {
		name    string
		want    syncer.Status
		changes []func(w *syncer.Write)
	}{
		{"a new writer", applied, nil},
		{"version and etag do not matter", applied, []func(*syncer.Write){func(w *syncer.Write) { w.Version, w.Etag = 99, 99 }}},
		{"a writer that goes on", applied, []func(*syncer.Write){by("b", 21)}},
		{"its sequence again", conflict, []func(*syncer.Write){by("b", 20)}},
		{"a sequence before its last", conflict, []func(*syncer.Write){by("b", 19)}},
		{"behind another writer", applied, []func(*syncer.Write){by("c", 16)}},
		{"goes on behind another writer", applied, []func(*syncer.Write){by("a", 16)}},
		{"at the pruned sequence", conflict, []func(*syncer.Write){by("c", 15)}},
		{"below the pruned sequence", conflict, []func(*syncer.Write){by("c", 14)}},
		{"goes on below the pruned sequence", conflict, []func(*syncer.Write){by("a", 14)}},
		{"shorter frames", conflict, []func(*syncer.Write){func(w *syncer.Write) { w.Frame = minute - 1 }}},
		{"longer frames", conflict, []func(*syncer.Write){func(w *syncer.Write) { w.Frame = minute + 1 }}},
		{"removes a frame", applied, []func(*syncer.Write){removeFrames(old, 3)}},
		{"removes a frame that was less", conflict, []func(*syncer.Write){removeFrames(old, 2)}},
		{"removes a frame that was more", conflict, []func(*syncer.Write){removeFrames(old, 4)}},
		{"removes a frame that is not there", conflict, []func(*syncer.Write){removeFrames(old-60, 1)}},
		{"removes an empty frame that is not there", conflict, []func(*syncer.Write){removeFrames(old-60, 0)}},
		{"removes two, one of them not there", conflict, []func(*syncer.Write){removeFrames(old, 3, old-60, 1)}},
		{"removes a writer", applied, []func(*syncer.Write){removeWriter("a", 10)}},
		{"removes both writers", applied, []func(*syncer.Write){removeWriter("a", 10), removeWriter("b", 20)}},
		{"removes a writer that was behind", conflict, []func(*syncer.Write){removeWriter("a", 9)}},
		{"removes a writer that was ahead", conflict, []func(*syncer.Write){removeWriter("a", 11)}},
		{"removes a writer that is not there", conflict, []func(*syncer.Write){removeWriter("x", 1)}},
		{"removes both, one has gone on", conflict, []func(*syncer.Write){removeWriter("a", 10), removeWriter("b", 19)}},
		{"removes a frame and a writer", applied, []func(*syncer.Write){removeFrames(old, 3), removeWriter("a", 10)}},
		{"removes a frame, and a writer that has gone on", conflict, []func(*syncer.Write){removeFrames(old, 3), removeWriter("a", 9)}},

		{"versioned", applied, []func(*syncer.Write){at(2, 12)}},
		{"versioned, as if there were none", conflict, []func(*syncer.Write){at(0, 0)}},
		{"versioned, another version", conflict, []func(*syncer.Write){at(1, 12)}},
		{"versioned, another etag", conflict, []func(*syncer.Write){at(2, 11)}},
		{"versioned, as it was before", conflict, []func(*syncer.Write){at(1, 11)}},
		{"versioned, of other frames", applied, []func(*syncer.Write){at(2, 12), func(w *syncer.Write) { w.Frame = 1000 }}},
		{"versioned, its sequence again", applied, []func(*syncer.Write){at(2, 12), by("b", 20)}},
		{"versioned, below its sequence, which stays", applied, []func(*syncer.Write){at(2, 12), by("b", 19)}},
		{"versioned, below the pruned sequence", applied, []func(*syncer.Write){at(2, 12), by("c", 14)}},
		{"versioned, removes what was different", applied, []func(*syncer.Write){at(2, 12), removeFrames(old, 2), removeWriter("a", 9)}},
		{"versioned, removes what is not there", applied, []func(*syncer.Write){at(2, 12), removeFrames(old-60, 2), removeWriter("x", 9)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := conditioned(t, s, fmt.Sprintf("user %02d", i))
			w := adding("c", 1)
			w.Seq, w.NewEtag = 30, 13
			for _, change := range test.changes {
				change(w)
			}
			want := before
			if test.want == applied {
				want = after(before, w)
			}
			equal(t, "document", want, attempt(t, s, before.ID, w, test.want))
		})
	}
}

// after returns the document after a write that is applied, by the contract.
func after(r *syncer.Record, w *syncer.Write) *syncer.Record {
	writers, counts := map[string]int64{}, map[int64]int64{}
	for name, seq := range r.Writers {
		writers[name] = seq
	}
	for _, f := range r.Frames {
		counts[f.Name] = f.Count
	}
	for _, x := range w.Remove.Writers {
		delete(writers, x.Writer)
	}
	for _, f := range w.Remove.Frames {
		delete(counts, f.Name)
	}
	for _, f := range w.Delta {
		counts[f.Name] += f.Count
	}
	writers[w.Writer] = max(writers[w.Writer], w.Seq)
	next := &syncer.Record{
		ID: r.ID, Version: r.Version + 1, Etag: w.NewEtag, Frame: w.Frame, Pruned: max(r.Pruned, w.Pruned), Writers: writers,
	}
	for _, name := range []int64{old - 60, old, frame} {
		if count, there := counts[name]; there {
			next.Frames = append(next.Frames, frames(name, count)...)
		}
	}
	return next
}
