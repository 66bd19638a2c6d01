package exchange

import (
	"cmp"
	"slices"
)

// Meets reports whether the condition of a write holds for a document, as [Store] states it. The document
// has all of its frames, ordered by name. The zero Record is no document.
func (r *Record) Meets(w *Write) bool {
	if w.Versioned {
		return r.Version == w.Version && r.Etag == w.Etag
	}
	if r.Version == 0 {
		return true
	}
	// Sequences are above 0. An absent writer and an absent pruned read as 0.
	return r.Frame == w.Frame && r.Writers[w.Writer] < w.Seq && r.Pruned < w.Seq && r.has(&w.Remove)
}

// has reports whether the document has everything in x, with the values that x states.
func (r *Record) has(x *Removal) bool {
	for _, f := range x.Frames {
		if !slices.Contains(r.Frames, f) {
			return false
		}
	}
	for _, w := range x.Writers {
		if seq, there := r.Writers[w.Writer]; !there || seq != w.Seq {
			return false
		}
	}
	return true
}

// Apply changes a document by a write that it [Record.Meets]. The caller sets the expiry.
func (r *Record) Apply(w *Write) {
	if w.Rewrite {
		r.Frames = nil
	}
	for _, f := range w.Remove.Frames {
		r.Frames = slices.DeleteFunc(r.Frames, func(have FrameCount) bool { return have.Name == f.Name })
	}
	for _, f := range w.Delta {
		i, there := slices.BinarySearchFunc(r.Frames, f, ByName)
		if !there {
			r.Frames = slices.Insert(r.Frames, i, FrameCount{Name: f.Name})
		}
		r.Frames[i].Count += f.Count
	}
	if r.Writers == nil {
		r.Writers = map[string]int64{}
	}
	for _, x := range w.Remove.Writers {
		delete(r.Writers, x.Writer)
	}
	r.Writers[w.Writer] = max(r.Writers[w.Writer], w.Seq)
	r.Version, r.Etag, r.Frame, r.Pruned = r.Version+1, w.NewEtag, w.Frame, max(r.Pruned, w.Pruned)
}

// ByName compares frames in the order of a [Record].
func ByName(a, b FrameCount) int { return cmp.Compare(a.Name, b.Name) }
