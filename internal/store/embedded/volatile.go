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
// open. Without tables it is empty.
type volatile struct {
	usable func(ctx context.Context) error // returns why the store cannot be used

	mu     sync.Mutex
	tables map[string]map[string]store.Record // by name and key; their values are not changed
}

func (v *volatile) get(ctx context.Context, t store.Table, each func(store.Record) error, keys []string) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	for _, key := range keys {
		v.mu.Lock()
		r, ok := v.tables[t.Name][key]
		v.mu.Unlock()
		if ok {
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *volatile) list(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	table := maps.Clone(v.tables[t.Name])
	v.mu.Unlock()
	left := q.Limit
	for _, key := range slices.Sorted(maps.Keys(table)) {
		r := table[key]
		if !strings.HasPrefix(key, q.Prefix) || key <= q.After || q.Owner != "" && r.Owner != q.Owner ||
			!q.ChangedSince.IsZero() && r.Changed.Before(q.ChangedSince.Add(-changedOverlap)) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(r); err != nil {
			return err
		}
		if left--; left == 0 {
			break
		}
	}
	return nil
}

func (v *volatile) put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.tables[t.Name][r.Key]; old.Seen() != seen {
		return store.ErrConflict
	}
	v.set(t, r)
	return nil
}

func (v *volatile) putNewer(ctx context.Context, t store.Table, records []store.Record) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range records {
		if old, ok := v.tables[t.Name][r.Key]; !ok || old.Version < r.Version {
			v.set(t, r)
		}
	}
	return nil
}

func (v *volatile) set(t store.Table, r store.Record) {
	if v.tables == nil {
		v.tables = map[string]map[string]store.Record{}
	}
	if v.tables[t.Name] == nil {
		v.tables[t.Name] = map[string]store.Record{}
	}
	r.Value = bytes.Clone(r.Value)
	r.Expires, r.Changed = fromMillis(millis(r.Expires)), fromMillis(millis(r.Changed))
	v.tables[t.Name][r.Key] = r
}

func (v *volatile) delete(ctx context.Context, t store.Table, seen *store.Seen, keys ...string) error {
	if err := v.usable(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range keys {
		if old := v.tables[t.Name][key]; seen != nil && old.Seen() != *seen {
			return store.ErrConflict
		}
		delete(v.tables[t.Name], key)
	}
	return nil
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
