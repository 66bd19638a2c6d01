package storetest

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterEffects states the whole document after one write without a document, or onto the document
// of [conditioned].
func counterEffects(t *testing.T, s fixture) {
	t.Helper()
	full := syncer.Write{
		NewEtag: 1<<62 + 1, Writer: "me", Seq: 1<<60 + 1, Frame: minute, Delta: frames(old, 3, frame, 4), Pruned: 7, Expire: Epoch,
		Remove: syncer.Removal{
			Frames:  frames(old-60, 8, old-120, 9),
			Writers: []syncer.WriterSeq{{Writer: "x", Seq: 5}, {Writer: "y", Seq: 6}},
		},
	}
	created := syncer.Record{
		Version: 1, Etag: full.NewEtag, Frame: minute, Pruned: 7,
		Writers: map[string]int64{"me": full.Seq}, Frames: frames(old, 3, frame, 4),
	}
	for i, test := range []struct {
		name   string
		onto   bool // the document of conditioned; otherwise none
		change func(w *syncer.Write, r *syncer.Record)
		want   func(r *syncer.Record)
	}{
		{"creates, unversioned", false, nil, nil},
		{"creates, versioned", false, func(w *syncer.Write, _ *syncer.Record) { onto(nil, w) }, nil},
		{
			"creates, and counts nothing", false,
			func(w *syncer.Write, _ *syncer.Record) { w.Delta, w.Remove = nil, syncer.Removal{} },
			func(r *syncer.Record) { r.Frames = nil },
		},
		{
			"creates, and counts nothing, versioned", false,
			func(w *syncer.Write, _ *syncer.Record) { onto(nil, w).Delta, w.Remove = nil, syncer.Removal{} },
			func(r *syncer.Record) { r.Frames = nil },
		},
		{
			"creates, and only removes", false,
			func(w *syncer.Write, _ *syncer.Record) { w.Delta = nil },
			func(r *syncer.Record) { r.Frames = nil },
		},
		{
			"creates by a rewrite", false,
			func(w *syncer.Write, _ *syncer.Record) { onto(nil, w).Rewrite, w.Remove.Frames = true, nil },
			nil,
		},
		{
			"changes all", true,
			func(w *syncer.Write, _ *syncer.Record) {
				w.Delta, w.Pruned = frames(old-60, 1, frame, 2), 16
				w.Remove = syncer.Removal{Frames: frames(old, 3), Writers: []syncer.WriterSeq{{Writer: "a", Seq: 10}}}
			},
			func(r *syncer.Record) {
				r.Version, r.Pruned, r.Writers["b"], r.Frames = 3, 16, 20, frames(old-60, 1, frame, 11)
			},
		},
		{
			"gives back", true,
			func(w *syncer.Write, _ *syncer.Record) {
				w.Delta, w.Pruned, w.Remove = frames(old, -3, frame, -2), 0, syncer.Removal{}
			},
			func(r *syncer.Record) {
				r.Version, r.Pruned, r.Writers["a"], r.Writers["b"], r.Frames = 3, 15, 10, 20, frames(old, 0, frame, 7)
			},
		},
		{
			"adds zero to a frame that is not there", true,
			func(w *syncer.Write, _ *syncer.Record) {
				w.Delta, w.Remove = frames(frame+60, 0), syncer.Removal{}
			},
			func(r *syncer.Record) {
				r.Version, r.Pruned, r.Writers["a"], r.Writers["b"], r.Frames = 3, 15, 10, 20, frames(old, 3, frame, 9, frame+60, 0)
			},
		},
		{
			"counts nothing", true,
			func(w *syncer.Write, _ *syncer.Record) { w.Delta, w.Remove = nil, syncer.Removal{} },
			func(r *syncer.Record) {
				r.Version, r.Pruned, r.Writers["a"], r.Writers["b"], r.Frames = 3, 15, 10, 20, frames(old, 3, frame, 9)
			},
		},
		{
			"rewrites", true,
			func(w *syncer.Write, r *syncer.Record) {
				onto(r, w).Rewrite, w.Seq, w.Frame = true, 5, 1000
				w.Remove = syncer.Removal{Writers: []syncer.WriterSeq{{Writer: "b", Seq: 20}}}
			},
			func(r *syncer.Record) {
				r.Version, r.Etag, r.Frame, r.Pruned = 3, 13, 1000, 15
				r.Writers = map[string]int64{"a": 10, "me": 5}
			},
		},
		{
			"rewrites to nothing", true,
			func(w *syncer.Write, r *syncer.Record) {
				onto(r, w).Rewrite, w.Delta, w.Remove = true, nil, syncer.Removal{}
			},
			func(r *syncer.Record) {
				r.Version, r.Etag, r.Pruned, r.Frames = 3, 13, 15, nil
				r.Writers = map[string]int64{"a": 10, "b": 20, "me": 3}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := fmt.Sprintf("user %02d", i)
			w, want := full, created
			var before *syncer.Record
			if want.ID, want.Writers = counterID(name), map[string]int64{"me": full.Seq}; test.onto {
				before = conditioned(t, s, name)
			}
			if test.change != nil {
				test.change(&w, before)
			}
			if test.want != nil {
				test.want(&want)
			}
			equal(t, "document", &want, apply(t, s, want.ID, &w))
		})
	}
}

func counterExpires(t *testing.T, s fixture) {
	t.Helper()
	id, other := counterID("u"), counterID("v")
	w := adding("me", 1)
	w.Expire = Epoch.Add(time.Hour)
	r := apply(t, s, id, w)
	apply(t, s, id, onto(r, adding("me", 1))) // expires earlier
	apply(t, s, other, adding("me", 1))
	sweep(t, s, Epoch.Add(time.Minute), 1)
	if load(t, s, id) == nil || load(t, s, other) != nil {
		t.Error("the wrong one was swept, or expire was lowered")
	}
	w = onto(load(t, s, id), adding("me", 1))
	w.Expire = Epoch.Add(2 * time.Hour)
	apply(t, s, id, w)
	sweep(t, s, Epoch.Add(90*time.Minute), 0)
	sweep(t, s, Epoch.Add(3*time.Hour), 1)
	if r := load(t, s, id); r != nil {
		t.Errorf("it outlived its time: %+v", r)
	}
}

// counterPruned: a writer is removed although it may come back. If its earlier writes arrive late,
// they must not count again.
func counterPruned(t *testing.T, s fixture) {
	t.Helper()
	id := counterID("u")
	late := adding("gone", 5)
	late.Seq = 40
	apply(t, s, id, late)
	w := adding("me", 1)
	w.Seq, w.NewEtag, w.Pruned = 50, 21, 40
	w.Remove.Writers = []syncer.WriterSeq{{Writer: "gone", Seq: 40}}
	r := apply(t, s, id, w)
	equal(t, "writers", map[string]int64{"me": 50}, r.Writers)
	equal(t, "late, unchanged", r, attempt(t, s, id, unversioned(late), syncer.Conflict))
	for i, pruned := range []int64{30, 0} { // lower, and none
		w := adding("me", 1)
		w.Seq, w.NewEtag, w.Pruned = 51+int64(i), 22, pruned
		if r := apply(t, s, id, w); r.Pruned != 40 {
			t.Errorf("pruned is %d after %d", r.Pruned, pruned)
		}
	}
	late.Seq = 41
	if r := apply(t, s, id, unversioned(late)); total(r) != 5+3+5 {
		t.Errorf("the document is %+v", r)
	}
}

func counterAbsurd(t *testing.T, s fixture) {
	t.Helper()
	r := &syncer.Record{
		ID: counterID("u"), Version: 1, Etag: -5, Frame: minute, Writers: map[string]int64{"a": -1},
		Frames: frames(7, 1, old, -1<<62, frame, 1<<62, 1<<62, 5),
	}
	s.put(t, *r)
	equal(t, "read as stored", r, load(t, s, r.ID))
	w := onto(r, adding("me", 3))
	w.Rewrite, w.Delta = true, frames(old, 2, frame, 3)
	equal(t, "mended", frames(old, 2, frame, 3), apply(t, s, r.ID, w).Frames)
}

func manyFrames(n int64) (list []ratelimit.FrameCount) {
	for i := range n {
		list = append(list, frames(old+60*i, i+1)...)
	}
	return list
}

func counterTooManyFrames(t *testing.T, s fixture) {
	t.Helper()
	r := syncer.Record{ID: counterID("u"), Version: 3, Etag: 4, Frame: minute, Frames: manyFrames(syncer.MaxFramesRead)}
	s.put(t, r)
	equal(t, "as many as are read", r.Frames, load(t, s, r.ID).Frames)
	r.Frames = manyFrames(syncer.MaxFramesRead + 5)
	s.put(t, r)
	got := look(t, s, r.ID)
	equal(t, "the newest", r.Frames[5:], got.Frames)
	if !got.Damaged || got.Problem == "" || got.Version != 3 || got.Etag != 4 {
		t.Errorf("damaged is %v, the problem %q, at version %d and etag %d", got.Damaged, got.Problem, got.Version, got.Etag)
	}
	w := onto(got, adding("me", 1))
	w.Rewrite, w.Delta = true, got.Frames[len(got.Frames)-2:]
	equal(t, "rewritten", w.Delta, apply(t, s, r.ID, w).Frames)
}

func counterTooManyWriters(t *testing.T, s fixture) {
	t.Helper()
	r := syncer.Record{ID: counterID("u"), Version: 3, Etag: 4, Frame: minute, Writers: map[string]int64{}, Frames: frames(frame, 1)}
	for i := range int64(syncer.MaxWritersRead + 5) {
		r.Writers[fmt.Sprintf("w%d", i)] = i + 1
	}
	s.put(t, r)
	got := look(t, s, r.ID)
	if len(got.Writers) != syncer.MaxWritersRead || got.Writers["w4"] != 0 || got.Writers["w5"] != 6 {
		t.Errorf("%d writers were read, with w4: %d and w5: %d", len(got.Writers), got.Writers["w4"], got.Writers["w5"])
	}
	if got.Problem == "" || got.Damaged {
		t.Errorf("the problem is %q, damaged %v", got.Problem, got.Damaged)
	}
}
