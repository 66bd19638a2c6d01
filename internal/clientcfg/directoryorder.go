package clientcfg

import (
	"iter"
	"slices"
	"sync"
)

// order is the IDs of the clients of a directory, ordered when they are asked for. A directory begins with
// those of the one before, so that a change does not cost the order of all.
type order struct {
	mu    sync.Mutex
	ids   []string // ordered, and never changed; nil: not known
	moved []string // IDs of which any may have been added or removed since
}

// mostMoved is how many changes the order is brought up to date with. After more, all IDs are ordered anew.
const mostMoved = 1000

// begin makes the order that of another directory, before any change.
func (o *order) begin(with *order) {
	with.mu.Lock()
	defer with.mu.Unlock()
	o.ids, o.moved = with.ids, slices.Clone(with.moved)
}

// touch notes that a client is added, removed or replaced.
func (o *order) touch(id string) {
	if len(o.moved) == mostMoved {
		o.ids, o.moved = nil, nil
	}
	if o.ids != nil {
		o.moved = append(o.moved, id)
	}
}

// ordered returns the IDs of the clients, which must not be changed.
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

// After yields the clients that can be read and whose ID is greater, ordered by ID. The first call orders
// all of them, unless the directory before has: then those that have changed since.
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
