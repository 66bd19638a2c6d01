package clientcfg

import (
	"iter"
	"slices"
	"sync"
)

// order holds the sorted IDs of a directory's clients, computed on demand. A directory starts with
// the order of the previous one, so a change does not require sorting everything.
type order struct {
	mu    sync.Mutex
	ids   []string // sorted, never modified; nil if unknown
	moved []string // IDs that may have been added or removed since
}

// mostMoved is how many changes are merged into an existing order. After more changes, all IDs are
// sorted again.
const mostMoved = 1000

// begin copies the order of another directory, before any change.
func (o *order) begin(with *order) {
	with.mu.Lock()
	defer with.mu.Unlock()
	o.ids, o.moved = with.ids, slices.Clone(with.moved)
}

// touch records that a client was added, removed or replaced.
func (o *order) touch(id string) {
	if len(o.moved) == mostMoved {
		o.ids, o.moved = nil, nil
	}
	if o.ids != nil {
		o.moved = append(o.moved, id)
	}
}

// ordered returns the sorted client IDs, which the caller must not change.
func (d *Directory) ordered() []string {
	o := &d.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = slices.AppendSeq(make([]string, 0, d.Len()), d.clients.Keys())
		slices.Sort(o.ids)
	}
	o.moved = slices.DeleteFunc(o.moved, func(id string) bool {
		_, was := slices.BinarySearch(o.ids, id)
		_, is := d.clients.Get(id)
		return was == is
	})
	if len(o.moved) == 0 {
		return o.ids
	}
	slices.Sort(o.moved)
	ids, rest := make([]string, 0, d.Len()), o.ids
	for _, id := range slices.Compact(o.moved) {
		at, removed := slices.BinarySearch(rest, id)
		ids, rest = append(ids, rest[:at]...), rest[at:]
		if removed {
			rest = rest[1:]
		} else {
			ids = append(ids, id)
		}
	}
	ids = append(ids, rest...)
	o.ids, o.moved = ids, nil
	return o.ids
}

// After yields the readable clients with IDs greater than id, sorted by ID. The first call sorts
// all IDs. If the previous directory was already sorted, it only merges the changes.
func (d *Directory) After(id string) iter.Seq[*Client] {
	ids := d.ordered()
	first, found := slices.BinarySearch(ids, id)
	if found {
		first++
	}
	return func(yield func(*Client) bool) {
		for _, id := range ids[first:] {
			if c, ok := d.Client(id); ok && !yield(c) {
				return
			}
		}
	}
}
