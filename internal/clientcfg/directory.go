package clientcfg

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"oauth-server/internal/ratelimit"
)

// Directory is an immutable snapshot of all clients. A new snapshot shares everything unchanged
// with the previous one, so only the change costs time.
type Directory struct {
	revision   int64
	clients    ratelimit.Map[*entry]
	unreadable map[string]error    // few or none
	operators  map[string]struct{} // IDs of clients that can change something over the admin API: few
	ordered    func() []string     // the sorted IDs; the first call sorts them
}

// ReadDirectory reads all clients. An unreadable or invalid client affects no other client, and is
// listed in [Directory.Unreadable].
func ReadDirectory(ctx context.Context, store Store) (*Directory, error) {
	return readDirectory(ctx, store, 0)
}

func readDirectory(ctx context.Context, store Store, revision int64) (*Directory, error) {
	e := (&Directory{}).edit()
	if err := store.Clients(ctx, e.apply); err != nil {
		return nil, err
	}
	return e.directory(revision), nil
}

// Client returns a copy of the client with that ID. The copy does not include when its secrets were
// used, or a former secret that had been invalid for a day when the client was read.
func (d *Directory) Client(id string) (*Client, bool) {
	e, ok := d.clients.Get(id)
	if !ok {
		return nil, false
	}
	return e.client(), true
}

// All yields every readable client, in no particular order.
func (d *Directory) All() iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		for _, e := range d.clients.All() {
			if !yield(e.client()) {
				return
			}
		}
	}
}

// After yields the readable clients with IDs greater than id, sorted by ID. The first call for a
// directory sorts all IDs.
func (d *Directory) After(id string) iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		if d.ordered == nil { // the zero Directory is empty
			return
		}
		ids := d.ordered()
		first, found := slices.BinarySearch(ids, id)
		if found {
			first++
		}
		for _, id := range ids[first:] {
			if c, ok := d.Client(id); ok && !yield(c) {
				return
			}
		}
	}
}

// Operators yields the clients that can change something over the admin API, in no particular
// order. The cost depends only on their number.
func (d *Directory) Operators() iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		for id := range d.operators {
			if c, ok := d.Client(id); ok && !yield(c) {
				return
			}
		}
	}
}

// Unreadable returns why clients cannot be read, by ID. Nothing is issued to these clients, and
// their tokens are not accepted, as if they were deleted.
func (d *Directory) Unreadable() map[string]error {
	return maps.Clone(d.unreadable)
}

// May reports whether any client is registered for the grant. It looks at all clients.
func (d *Directory) May(g Grant) bool {
	for _, e := range d.clients.All() {
		if slices.Contains(e.grants(), g) {
			return true
		}
	}
	return false
}

// Revision is the number of the newest trail entry that the snapshot includes.
func (d *Directory) Revision() int64 { return d.revision }

// Len returns the number of readable clients.
func (d *Directory) Len() int { return d.clients.Len() }

// directoryEdit is a directory under construction from another one.
type directoryEdit struct {
	next    *Directory
	clients *ratelimit.MapEdit[*entry]
}

func (d *Directory) edit() *directoryEdit {
	next := &Directory{unreadable: map[string]error{}, operators: map[string]struct{}{}}
	maps.Copy(next.unreadable, d.unreadable)
	maps.Copy(next.operators, d.operators)
	return &directoryEdit{next: next, clients: d.clients.Edit()}
}

func (e *directoryEdit) directory(revision int64) *Directory {
	d := e.next
	d.revision, d.clients = revision, e.clients.Map()
	d.ordered = sync.OnceValue(func() []string { return slices.Sorted(d.clients.Keys()) })
	return d
}

// apply adds, replaces or marks unreadable the client in the record.
func (e *directoryEdit) apply(r Record) {
	e.remove(r.ID)
	if r.Err != nil {
		e.next.unreadable[r.ID] = r.Err
		return
	}
	e.clients.Set(r.ID, newEntry(&r.Client))
	if r.Client.Operates() {
		e.next.operators[r.ID] = struct{}{}
	}
}

// remove removes a client, if it exists.
func (e *directoryEdit) remove(id string) {
	e.clients.Delete(id)
	delete(e.next.operators, id)
	delete(e.next.unreadable, id)
}
