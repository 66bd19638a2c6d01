// Package memstore is an [exchange.Store] in memory, for tests: the reference implementation of the
// contract, and the database of simulated clusters.
package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// Store is a store in memory, safe for concurrent use. The zero value is an empty store.
type Store struct {
	// Clock is the clock of the store; nil means the clock of this machine. In simulations it
	// jumps. Do not change the field while the store is in use. The function must not call the
	// store.
	Clock func() time.Time

	mu        sync.Mutex
	readFirst bool // in the latest call
	docs      map[ratelimit.CounterID]*document
	instances map[string]syncer.Instance // by ID
}

// document is one counter.
type document struct {
	exchange.Record // all of it, with the frames ordered by name

	expire time.Time
}

// Exchange implements [exchange.Store]. Calls alternate between reading the documents before and
// after the writes, because MongoDB does both at the same time, in either order.
func (s *Store) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := exchange.CheckItems(items); err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]exchange.Result, len(items))
	read := func() {
		for i, it := range items {
			if it.Read {
				results[i].Read, results[i].Record = true, s.read(it.ID)
			}
		}
	}
	s.readFirst = !s.readFirst
	if s.readFirst {
		read()
	}
	for i, it := range items {
		if it.Write != nil {
			results[i].Status, results[i].Err = s.write(it.ID, it.Write)
		}
	}
	if !s.readFirst {
		read()
	}
	return results, nil
}

func (s *Store) write(id ratelimit.CounterID, w *exchange.Write) (exchange.Status, error) {
	if err := w.Check(); err != nil {
		return exchange.Rejected, err
	}
	d, exists := s.docs[id]
	if !exists {
		d = &document{Record: exchange.Record{ID: id}}
	}
	if !d.Meets(w) {
		return exchange.Conflict, nil
	}
	d.Apply(w)
	if w.Expire.After(d.expire) {
		d.expire = w.Expire
	}
	if s.docs == nil {
		s.docs = map[ratelimit.CounterID]*document{}
	}
	s.docs[id] = d
	return exchange.Applied, nil
}

func (s *Store) read(id ratelimit.CounterID) *exchange.Record {
	d, exists := s.docs[id]
	if !exists {
		return nil
	}
	r := clone(&d.Record)
	return &r
}

// clone returns a document that shares nothing with r.
func clone(r *exchange.Record) exchange.Record {
	c := *r
	c.Writers, c.Frames = maps.Clone(r.Writers), slices.Clone(r.Frames)
	return c
}

// Now implements [exchange.Store].
func (s *Store) Now(ctx context.Context) (time.Time, error) { return s.now(), ctx.Err() }

func (s *Store) now() time.Time {
	if s.Clock != nil {
		return s.Clock()
	}
	return time.Now()
}

// Put stores a document unchanged, as if another program had written it, and replaces the existing
// one. Version must not be 0. The frames must be ordered by name. Put ignores Problem and Damaged.
func (s *Store) Put(r exchange.Record, expire time.Time) {
	d := &document{clone(&r), expire}
	d.Problem, d.Damaged = "", false
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.docs == nil {
		s.docs = map[ratelimit.CounterID]*document{}
	}
	s.docs[r.ID] = d
}

// Documents returns all documents, ordered by ID, with all their frames and writers.
func (s *Store) Documents() []exchange.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := make([]exchange.Record, 0, len(s.docs))
	for _, id := range slices.SortedFunc(maps.Keys(s.docs), exchange.CompareIDs) {
		records = append(records, clone(&s.docs[id].Record))
	}
	return records
}

// Expire deletes the documents that expired before now, as a database's TTL monitor does, and returns
// how many.
func (s *Store) Expire(now time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.docs {
		if d.expire.Before(now) {
			delete(s.docs, id)
			n++
		}
	}
	return n
}

// Len returns the number of documents.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.docs)
}
