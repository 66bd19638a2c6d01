package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Collection stores the values of one type in a table. It is safe for concurrent use.
type Collection[T any] struct {
	Backend Backend
	Table   Table
	// Encode returns the record of a value: its Key, Value, Owner and Expires; Version only for PutAll.
	Encode func(v *T) (Record, error)
	// Decode returns the value of a record, or an error if the record has no valid value. It keeps
	// no reference to r.Value.
	Decode func(r *Record) (T, error)
	// Skipped is called for each unreadable record that List leaves out; nil: Report is called.
	Skipped func(table, key string, err error)
}

// Reporter is a [Backend] that records unreadable records. It is safe for concurrent use.
type Reporter interface {
	Unreadable(table, key string, err error)
}

// Report reports an unreadable record to the Backend, if it is a [Reporter].
func (c *Collection[T]) Report(key string, err error) {
	if r, ok := c.Backend.(Reporter); ok {
		r.Unreadable(c.Table.Name, key, err)
	}
}

// Get reads one value and its state. Errors: [ErrNotFound], [ErrUnreadable].
func (c *Collection[T]) Get(ctx context.Context, key string) (v T, seen Seen, err error) {
	found := false
	err = c.Backend.Get(ctx, c.Table, func(r Record) (err error) {
		found, seen = true, r.Seen()
		if v, err = c.decode(&r); err != nil {
			c.Report(key, err)
		}
		return err
	}, key)
	if err == nil && !found {
		err = ErrNotFound
	}
	return v, seen, err
}

// List calls each with the values that match, ordered by key, until it fails. Unreadable records
// are left out and reported to Skipped. Decoding takes most of the time of reading a long table, so
// all processors decode, each some records at a time.
func (c *Collection[T]) List(ctx context.Context, q Query, each func(v T, seen Seen) error) error {
	var pending []*decoding[T] // the oldest first
	some := &decoding[T]{}
	err := c.Backend.List(ctx, c.Table, q, func(r Record) error {
		if some.add(r); len(some.records) < decodedTogether {
			return nil
		}
		full := some
		full.decoded.Go(func() { full.decode(c) })
		pending = append(pending, full)
		if len(pending) <= runtime.GOMAXPROCS(0) {
			some = &decoding[T]{}
			return nil
		}
		some, pending = pending[0], pending[1:]
		err := some.deliver(c, each)
		some.reset()
		return err
	})
	some.decode(c)
	for _, d := range append(pending, some) {
		if err == nil {
			err = d.deliver(c, each)
		}
	}
	return err
}

// decodedTogether is how many records one goroutine decodes. A shorter list needs no goroutine.
const decodedTogether = 256

// decoding is a group of records of a List.
type decoding[T any] struct {
	records []Record // without their values
	buffer  []byte   // their values
	ends    []int    // ends of the values in the buffer
	values  []T
	decoded sync.WaitGroup
}

// reset makes the memory available for reuse.
func (d *decoding[T]) reset() {
	d.records, d.buffer, d.ends = d.records[:0], d.buffer[:0], d.ends[:0]
}

func (d *decoding[T]) add(r Record) {
	d.buffer = append(d.buffer, r.Value...)
	d.ends = append(d.ends, len(d.buffer))
	r.Value = nil
	d.records = append(d.records, r)
}

func (d *decoding[T]) decode(c *Collection[T]) {
	d.values = slices.Grow(d.values[:0], len(d.records))[:len(d.records)]
	begin := 0
	for i := range d.records {
		r := &d.records[i]
		r.Value, begin = d.buffer[begin:d.ends[i]], d.ends[i]
		d.values[i], r.Err = c.decode(r)
	}
}

func (d *decoding[T]) deliver(c *Collection[T], each func(v T, seen Seen) error) error {
	d.decoded.Wait()
	for i := range d.records {
		r := &d.records[i]
		switch {
		case r.Err == nil:
			if err := each(d.values[i], r.Seen()); err != nil {
				return err
			}
		case c.Skipped != nil:
			c.Skipped(c.Table.Name, r.Key, r.Err)
		default:
			c.Report(r.Key, r.Err)
		}
	}
	return nil
}

// Put replaces the value in the state seen, and returns the new state. [ErrConflict]: another
// writer was faster.
func (c *Collection[T]) Put(ctx context.Context, v *T, seen Seen) (Seen, error) {
	r, err := c.Encode(v)
	if err != nil {
		return Seen{}, fmt.Errorf("encode record of %s: %w", c.Table.Name, err)
	}
	return c.Backend.Put(ctx, c.Table, r, seen)
}

// PutAll stores each value unless the same or a greater version of it exists.
func (c *Collection[T]) PutAll(ctx context.Context, values []T) error {
	records := make([]Record, len(values))
	for i := range values {
		var err error
		if records[i], err = c.Encode(&values[i]); err != nil {
			return fmt.Errorf("encode record of %s: %w", c.Table.Name, err)
		}
	}
	return c.Backend.PutAll(ctx, c.Table, records)
}

// Write returns the write of a value, for [Backend.Append].
func (c *Collection[T]) Write(v *T) (Write, error) {
	r, err := c.Encode(v)
	if err != nil {
		return Write{}, fmt.Errorf("encode record of %s: %w", c.Table.Name, err)
	}
	return Write{Table: c.Table, Record: r}, nil
}

func (c *Collection[T]) decode(r *Record) (v T, err error) {
	if err = r.Err; err == nil {
		v, err = c.Decode(r)
	}
	if err != nil && !errors.Is(err, ErrUnreadable) {
		err = fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return v, err
}

// Readable returns a function that returns the error of decoding a record; nil if it can be
// decoded.
func Readable[T any](decode func(*Record) (T, error)) func(*Record) error {
	return func(r *Record) error {
		if r.Err != nil {
			return r.Err
		}
		_, err := decode(r)
		return err
	}
}

// Unmarshal decodes the value of a record. A member unknown to v is an error: a newer version of
// this program wrote it.
func Unmarshal(r *Record, v any) error {
	d := json.NewDecoder(bytes.NewReader(r.Value))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
