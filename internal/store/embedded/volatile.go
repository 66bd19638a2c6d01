package embedded

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/store"
)

// volatile holds the tables that need not survive the process, in memory: no other one can have the file
// open. The zero value is empty.
type volatile struct {
	mu     sync.Mutex
	tables map[string]map[string]store.Record // by name and key; their values are not changed
}

// listVolatile calls each with the records that match, ordered by key; limit 0: with all.
func (s *Store) listVolatile(
	ctx context.Context, t store.Table, match func(r *store.Record) bool, limit int, each func(store.Record) error,
) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.volatile.mu.Lock()
	records := maps.Clone(s.volatile.tables[t.Name])
	s.volatile.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(records)) {
		r := records[key]
		if !match(&r) {
			continue
		}
		if err := each(r); err != nil {
			return err
		}
		if limit--; limit == 0 {
			break
		}
	}
	return nil
}

// matches is what a listing does with the records of a file.
func matches(q *store.Query, r *store.Record) bool {
	return strings.HasPrefix(r.Key, q.Prefix) && r.Key > q.After && (q.Owner == "" || r.Owner == q.Owner) &&
		(q.ChangedSince.IsZero() || !r.Changed.Before(q.ChangedSince.Add(-store.ChangedOverlap)))
}

// changeVolatile calls change with the records of a table, which it may change.
func (s *Store) changeVolatile(ctx context.Context, t store.Table, change func(records map[string]store.Record) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.volatile.mu.Lock()
	defer s.volatile.mu.Unlock()
	if s.volatile.tables == nil {
		s.volatile.tables = map[string]map[string]store.Record{}
	}
	if s.volatile.tables[t.Name] == nil {
		s.volatile.tables[t.Name] = map[string]store.Record{}
	}
	return change(s.volatile.tables[t.Name])
}

// inMemory returns a record as it is read later.
func inMemory(r store.Record) store.Record {
	r.Value = bytes.Clone(r.Value)
	r.Expires, r.Changed = fromMillis(millis(r.Expires)), fromMillis(millis(r.Changed))
	return r
}

func (v *volatile) sweep(now time.Time) (removed int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, table := range v.tables {
		before := len(table)
		maps.DeleteFunc(table, func(_ string, r store.Record) bool { return !r.Expires.IsZero() && r.Expires.Before(now) })
		removed += before - len(table)
	}
	return removed
}
