package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// counters is the table of the counters. Only the functions below use it. The key is the three
// names, each preceded by its length. The nonce is the etag, and the value is
//
//	varint     length of the frames
//	varint     pruned
//	varint     number of writers; then the name and the sequence of each
//	varint     number of frames; then the name and the count of each
var counters = store.Table{Name: "counters"}

func counterKey(id exchange.CounterID) string {
	return string(appendString(counterPrefix(id.ClientID, &id.Username), id.Limit))
}

// counterPrefix returns the beginning of the keys of a client's counters, or of one username's.
func counterPrefix(clientID string, username *string) []byte {
	prefix := appendString(nil, clientID)
	if username != nil {
		prefix = appendString(prefix, *username)
	}
	return prefix
}

// counterIDOf is the inverse of counterKey.
func counterIDOf(key []byte) (exchange.CounterID, error) {
	d := &decoder{rest: key}
	id := exchange.CounterID{ClientID: d.string(), Username: d.string(), Limit: d.string()}
	return id, d.finish()
}

func encodeCounter(c *exchange.Record, expires time.Time) []byte {
	b := make([]byte, 0, 256)
	b = binary.AppendVarint(binary.AppendVarint(b, c.Frame), c.Pruned)
	b = binary.AppendVarint(b, int64(len(c.Writers)))
	for _, name := range slices.Sorted(maps.Keys(c.Writers)) {
		b = binary.AppendVarint(appendString(b, name), c.Writers[name])
	}
	b = binary.AppendVarint(b, int64(len(c.Frames)))
	for _, f := range c.Frames {
		b = binary.AppendVarint(binary.AppendVarint(b, f.Name), f.Count)
	}
	return encodeRecord(&store.Record{Version: c.Version, Nonce: c.Etag, Expires: expires, Value: b})
}

// decodeCounter returns the whole document of a counter and its expiry. For nil it returns the
// empty document. Errors: [store.ErrUnreadable].
func decodeCounter(id exchange.CounterID, value []byte) (c exchange.Record, expires time.Time, err error) {
	c = exchange.Record{ID: id, Writers: map[string]int64{}}
	if value == nil {
		return c, expires, nil
	}
	r, err := decodeRecord(value)
	if err != nil {
		return c, expires, err
	}
	d := decoder{rest: r.value}
	c.Version, c.Etag, c.Frame, c.Pruned = r.version, r.nonce, d.varint(), d.varint()
	for n := d.varint(); n > 0 && d.err == nil; n-- {
		name := d.string()
		c.Writers[name] = d.varint()
	}
	for n := d.varint(); n > 0 && d.err == nil; n-- {
		c.Frames = append(c.Frames, exchange.FrameCount{Name: d.varint(), Count: d.varint()})
	}
	return c, fromMillis(r.expires), d.finish()
}

// Exchange implements [exchange.Store]. All items are written and read in one transaction. Each item
// is read after its write.
func (s *Store) Exchange(ctx context.Context, items []exchange.Item) ([]exchange.Result, error) {
	if err := exchange.CheckItems(items); err != nil {
		return nil, fmt.Errorf("bolt: %w", err)
	}
	results := make([]exchange.Result, len(items))
	var err error
	if slices.ContainsFunc(items, func(it exchange.Item) bool { return it.Write != nil }) {
		err = s.change(ctx, counters, func(tb *table) error { return tb.exchange(items, results) })
	} else {
		err = s.read(ctx, counters, func(tb *table) { tb.readCounters(items, results) })
	}
	if err != nil {
		return nil, err // results may include writes that were not committed
	}
	return results, nil
}

// exchange overwrites all results, because a change may run more than once.
func (t *table) exchange(items []exchange.Item, results []exchange.Result) (err error) {
	for i, it := range items {
		results[i] = exchange.Result{}
		if it.Write == nil {
			continue
		}
		if results[i], err = t.count(it.ID, it.Write); err != nil {
			return err
		}
	}
	t.readCounters(items, results)
	return nil
}

func (t *table) readCounters(items []exchange.Item, results []exchange.Result) {
	for i, it := range items {
		if !it.Read {
			continue
		}
		results[i].Read = true
		if v := t.get(counterKey(it.ID)); v != nil {
			results[i].Record = readCounter(it.ID, v)
		}
	}
}

// readCounter returns a stored counter. An unreadable counter has its Problem set.
func readCounter(id exchange.CounterID, value []byte) *exchange.Record {
	c, _, err := decodeCounter(id, value)
	if err != nil {
		return &exchange.Record{ID: id, Problem: err.Error()}
	}
	return &c
}

// count applies one write. An error fails the whole transaction. A write that cannot be stored, or
// that changes an unreadable document, is rejected on its own.
func (t *table) count(id exchange.CounterID, write *exchange.Write) (exchange.Result, error) {
	key := counterKey(id)
	c, expires, refused := decodeCounter(id, t.get(key))
	if len(key) > bbolt.MaxKeySize {
		refused = fmt.Errorf("bolt: counter names have %d bytes", len(key))
	}
	if refused = errors.Join(write.Check(), refused); refused != nil {
		return exchange.Result{Status: exchange.Rejected, Err: refused}, nil //nolint:nilerr // it concerns this write alone
	}
	if !c.Meets(write) {
		return exchange.Result{Status: exchange.Conflict}, nil
	}
	c.Apply(write)
	if write.Expire.After(expires) {
		expires = write.Expire
	}
	return exchange.Result{Status: exchange.Applied}, t.put(key, "", encodeCounter(&c, expires))
}

// CountersOf implements admin.StoredCounters.
func (s *Store) CountersOf(ctx context.Context, clientID string, username *string, limit int) (records []exchange.Record, err error) {
	prefix := counterPrefix(clientID, username)
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		for k, value := range from(tx.Bucket([]byte(counters.Name)), string(prefix)) {
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

// EraseCounters implements admin.Eraser. The keys of a client's counters are adjacent, and within
// them the keys of each user.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	prefix := counterPrefix(clientID, username)
	return s.deleteWhile(ctx, counters, string(prefix), func(k, _ []byte) bool { return bytes.HasPrefix(k, prefix) })
}
