package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Exchange implements [syncer.Store]. All items are written and read in one transaction; an item is
// read after it was written.
func (s *Store) Exchange(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
	if err := syncer.CheckItems(items); err != nil {
		return nil, fmt.Errorf("bolt: %w", err)
	}
	results := make([]syncer.Result, len(items))
	var err error
	if slices.ContainsFunc(items, func(it syncer.Item) bool { return it.Write != nil }) {
		err = s.writes.do(ctx, func(w *writeTx) error { return w.exchange(items, results) })
	} else {
		err = s.view(ctx, func(tx *bbolt.Tx) error {
			readCounters(tx, items, results)
			return nil
		})
	}
	if err != nil {
		return nil, err // nothing was committed, and what was read may include it
	}
	return results, nil
}

// exchange replaces all results: a change may run more than once.
func (w *writeTx) exchange(items []syncer.Item, results []syncer.Result) error {
	tb, err := w.table(counters)
	if err != nil {
		return err
	}
	for i, it := range items {
		results[i] = syncer.Result{}
		if it.Write == nil {
			continue
		}
		if results[i], err = tb.count(it.ID, it.Write); err != nil {
			return err
		}
	}
	readCounters(w.tx, items, results)
	return nil
}

func readCounters(tx *bbolt.Tx, items []syncer.Item, results []syncer.Result) {
	table := bucketOf(tx, counters.Name)
	for i, it := range items {
		if !it.Read {
			continue
		}
		results[i].Read = true
		if v := table.Get([]byte(counterKey(it.ID))); v != nil {
			results[i].Record = readCounter(it.ID, v)
		}
	}
}

// readCounter returns a stored counter within the bounds of the syncer. One that cannot be read has its
// Problem set.
func readCounter(id ratelimit.CounterID, value []byte) *syncer.Record {
	c, _, err := decodeCounter(id, value)
	if err != nil {
		return &syncer.Record{ID: id, Problem: err.Error()}
	}
	c.Problem = strings.Join(c.Bound(), ", ")
	return &c
}

// count applies one write; the error is that of the transaction. A write that cannot be stored, or
// whose document cannot be read, is rejected alone.
func (t *tableTx) count(id ratelimit.CounterID, write *syncer.Write) (syncer.Result, error) {
	key := counterKey(id)
	c, expires, refused := decodeCounter(id, t.records.Get([]byte(key)))
	if len(key) > bbolt.MaxKeySize {
		refused = fmt.Errorf("bolt: the names of the counter have %d bytes", len(key))
	}
	if refused = errors.Join(write.Check(), refused); refused != nil {
		return syncer.Result{Status: syncer.Rejected, Err: refused}, nil //nolint:nilerr // it concerns this write alone
	}
	if !c.Meets(write) {
		return syncer.Result{Status: syncer.Conflict}, nil
	}
	c.Apply(write)
	if write.Expire.After(expires) {
		expires = write.Expire
	}
	return syncer.Result{Status: syncer.Applied}, t.put(key, "", encodeCounter(&c, expires))
}

// CountersOf implements admin.StoredCounters.
func (s *Store) CountersOf(ctx context.Context, clientID string, username *string, limit int) (records []syncer.Record, err error) {
	prefix := counterPrefix(clientID, username)
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		for k, value := range from(bucketOf(tx, counters.Name), string(prefix)) {
			if !bytes.HasPrefix(k, prefix) || len(records) >= limit {
				break
			}
			id, err := counterIDOf(k)
			if err != nil {
				return err
			}
			records = append(records, *readCounter(id, value))
		}
		return nil
	})
	return records, err
}

// Now implements [store.Backend], with the clock of this machine.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }

// EraseCounters implements admin.Eraser. The keys of a client's counters are adjacent, and among them
// those of a user.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	prefix := counterPrefix(clientID, username)
	return s.deleteWhile(ctx, counters, string(prefix), func(k, _ []byte) bool { return bytes.HasPrefix(k, prefix) })
}
