package clientcfg

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
)

// Directory is an immutable snapshot of all clients.
type Directory struct {
	revision Revision
	all      []Client // ordered by ID
	byID     map[string]*Client
}

// NewDirectory validates the clients and indexes them. A single invalid client makes the
// whole snapshot invalid.
func NewDirectory(clients []Client, rev Revision) (*Directory, error) {
	d := &Directory{revision: rev, all: clients, byID: make(map[string]*Client, len(clients))}
	for i := range clients {
		c := &clients[i]
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("client %q: %w", c.ID, err)
		}
		d.byID[c.ID] = c
	}
	return d, nil
}

// Client returns the client of that ID. It must not be changed.
func (d *Directory) Client(id string) (*Client, bool) {
	c, ok := d.byID[id]
	return c, ok
}

// All yields every client, ordered by ID. They must not be changed.
func (d *Directory) All() iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		for i := range d.all {
			if !yield(&d.all[i]) {
				return
			}
		}
	}
}

// Revision is the revision of the store at which the snapshot was taken.
func (d *Directory) Revision() Revision { return d.revision }

// Len is the number of clients.
func (d *Directory) Len() int { return len(d.byID) }

// Source holds the newest valid [Directory]. Reads are a pointer load.
type Source struct {
	store   Store
	current atomic.Pointer[Directory]
	checked atomic.Pointer[time.Time]
}

// NewSource reads the first directory and fails if that cannot be used.
func NewSource(ctx context.Context, store Store) (*Source, error) {
	s := &Source{store: store}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Client returns the client of that ID from the current snapshot, without I/O.
func (s *Source) Client(id string) (*Client, bool) { return s.current.Load().Client(id) }

// Directory returns the current snapshot.
func (s *Source) Directory() *Directory { return s.current.Load() }

// CheckedAt is when the directory was last found to be the newest.
func (s *Source) CheckedAt() time.Time { return *s.checked.Load() }

// Refresh reads the store if its revision has changed. After an error the last good
// directory stays in use.
func (s *Source) Refresh(ctx context.Context) error {
	asked := time.Now()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	s.checked.Store(&asked)
	return nil
}

func (s *Source) refresh(ctx context.Context) error {
	old := s.current.Load()
	if old != nil {
		rev, err := s.store.Revision(ctx)
		if err != nil {
			return fmt.Errorf("clientcfg: read revision: %w", err)
		}
		if rev == old.revision {
			return nil
		}
	}
	clients, rev, err := s.store.Clients(ctx)
	if err != nil {
		return fmt.Errorf("clientcfg: read clients: %w", err)
	}
	next, err := NewDirectory(clients, rev)
	if err != nil {
		return fmt.Errorf("clientcfg: refused revision %d: %w", rev, err)
	}
	s.current.Store(next)
	return nil
}
