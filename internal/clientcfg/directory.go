package clientcfg

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Directory is an immutable snapshot of all clients.
type Directory struct {
	revision   Revision
	all        []*Client // ordered by ID
	byID       map[string]*Client
	unreadable map[string]error
}

// ReadDirectory reads all clients. A client that cannot be read, or whose registration is not valid,
// takes only itself out: it is one of [Directory.Unreadable].
func ReadDirectory(ctx context.Context, store Store) (*Directory, error) {
	d := &Directory{byID: map[string]*Client{}, unreadable: map[string]error{}}
	var err error
	if d.revision, err = store.Clients(ctx, d.add); err != nil {
		return nil, fmt.Errorf("clientcfg: read clients: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(d.byID)) {
		d.all = append(d.all, d.byID[id])
	}
	return d, nil
}

func (d *Directory) add(r Record) {
	if err := r.check(); err != nil {
		d.unreadable[r.ID] = err
		return
	}
	d.byID[r.ID] = &r.Client
}

// check returns why the client cannot be served; nil if it can.
func (r *Record) check() error {
	if r.Err != nil {
		return r.Err
	}
	if err := r.Client.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadableClient, err)
	}
	return nil
}

// Client returns the client of that ID. It must not be changed.
func (d *Directory) Client(id string) (*Client, bool) {
	c, ok := d.byID[id]
	return c, ok
}

// All yields every client that can be read, ordered by ID. They must not be changed.
func (d *Directory) All() iter.Seq[*Client] { return slices.Values(d.all) }

// Unreadable returns why clients cannot be read, by their IDs. The map must not be changed. Nothing is
// issued to these clients, and what was issued to them is worthless, as if they were deleted.
func (d *Directory) Unreadable() map[string]error { return d.unreadable }

// Revision is the revision of the store at which the snapshot was taken.
func (d *Directory) Revision() Revision { return d.revision }

// Len is the number of clients that can be read.
func (d *Directory) Len() int { return len(d.byID) }

// FindClient reads one client from the store. Errors: [ErrNotFound], and [ErrUnreadableClient] also if
// the registration is not valid.
func FindClient(ctx context.Context, store Store, id string) (Client, error) {
	c, err := store.Client(ctx, id)
	r := Record{ID: id, Client: c, Err: err}
	if err := r.check(); err != nil {
		return Client{}, err
	}
	return c, nil
}
