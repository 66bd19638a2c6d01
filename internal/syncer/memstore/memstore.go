// Package memstore is a [syncer.Store] in memory. It is the reference that the
// contract is tried on, and the database of simulated clusters; it keeps nothing across restarts.
package memstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Store is safe for concurrent use. The zero value is an empty store.
type Store struct {
	mu        sync.Mutex
	docs      map[ratelimit.CounterID]*document
	instances map[string]syncer.Instance
}

type document struct {
	version, etag int64
	writers       map[string]int64
	frames        map[int64]int64
	expire        time.Time
}

// Apply implements [syncer.Store].
func (s *Store) Apply(_ context.Context, instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]syncer.Outcome, len(writes))
	for i := range writes {
		out[i].Status = s.apply(instance, &writes[i])
	}
	return out, nil
}

func (s *Store) apply(instance string, w *syncer.Write) syncer.Status {
	d, exists := s.docs[w.ID]
	if !exists {
		d = &document{}
	}
	if w.Blind {
		if seq, wrote := d.writers[instance]; wrote && seq >= w.Seq {
			return syncer.Conflict
		}
	} else if d.version != w.Version || d.etag != w.Etag {
		return syncer.Conflict
	}
	if !exists {
		d.writers, d.frames = map[string]int64{}, map[int64]int64{}
		if s.docs == nil {
			s.docs = map[ratelimit.CounterID]*document{}
		}
		s.docs[w.ID] = d
	}
	d.change(instance, w)
	return syncer.Applied
}

func (d *document) change(instance string, w *syncer.Write) {
	for _, name := range w.Dead {
		delete(d.frames, name)
	}
	for _, name := range w.Silent {
		delete(d.writers, name)
	}
	for _, f := range w.Delta {
		d.frames[f.Name] += f.Count
	}
	d.version++
	d.etag = w.NewEtag
	d.writers[instance] = w.Seq
	if w.Expire.After(d.expire) {
		d.expire = w.Expire
	}
}

// Load implements [syncer.Store].
func (s *Store) Load(_ context.Context, ids []ratelimit.CounterID) (out []syncer.Record, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if d, ok := s.docs[id]; ok {
			r := syncer.Record{ID: id, Version: d.version, Etag: d.etag, Writers: maps.Clone(d.writers)}
			for _, name := range slices.Sorted(maps.Keys(d.frames)) {
				r.Frames = append(r.Frames, ratelimit.FrameCount{Name: name, Count: d.frames[name]})
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// Now implements [syncer.Store] with the clock of this machine.
func (s *Store) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// Expire deletes the documents that expired before now, as a database's TTL
// monitor does, and returns how many.
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

// Len is the number of documents.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.docs)
}

// Beat implements [syncer.Instances].
func (s *Store) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) ([]syncer.Instance, error) {
	self.Beaten, _ = s.Now(ctx) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances == nil {
		s.instances = map[string]syncer.Instance{}
	}
	s.instances[self.ID] = self
	var alive []syncer.Instance
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		if self.Beaten.Sub(s.instances[id].Beaten) < ttl {
			alive = append(alive, s.instances[id])
		} else {
			delete(s.instances, id)
		}
	}
	return alive, nil
}

// Leave implements [syncer.Instances].
func (s *Store) Leave(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, id)
	return nil
}
