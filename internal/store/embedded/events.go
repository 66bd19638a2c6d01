package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
)

// eventsBucket holds the events: under the key, the event as JSON. It is created with the first event,
// because files of earlier releases have none.
var eventsBucket = []byte("events")

// AddEvent implements [clientcfg.EventLog].
func (s *Store) AddEvent(ctx context.Context, e clientcfg.Event) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		events, err := w.tx.CreateBucketIfNotExists(eventsBucket)
		if err != nil {
			return fmt.Errorf("embedded: make the events: %w", err)
		}
		events.FillPercent = 0.9 // its keys grow with time
		return w.putEvent(events, e.Key(), &e)
	})
}

func (w *writeTx) putEvent(events *bolt.Bucket, key string, e *clientcfg.Event) error {
	value, err := json.Marshal(e)
	if err == nil {
		err = events.Put([]byte(key), value)
	}
	if err != nil {
		return fmt.Errorf("embedded: put into events: %w", err)
	}
	w.touched, w.dirty = true, true
	return nil
}

// EndEvent implements [clientcfg.EventLog].
func (s *Store) EndEvent(ctx context.Context, key string, made bool) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		events := w.tx.Bucket(eventsBucket)
		if events == nil {
			return nil
		}
		value := events.Get([]byte(key))
		if value == nil {
			return nil
		}
		if !made {
			w.touched, w.dirty = true, true
			return events.Delete([]byte(key))
		}
		e, ok := clientcfg.ReadEvent(key, value)
		if !ok {
			return nil
		}
		if e.Err != nil {
			return fmt.Errorf("%w: event %s: %w", ErrCorrupt, key, e.Err)
		}
		e.Open = false
		return w.putEvent(events, key, &e)
	})
}

// Events implements [clientcfg.EventLog].
func (s *Store) Events(ctx context.Context, q clientcfg.EventQuery) (list []clientcfg.Event, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		list = nil
		events := tx.Bucket(eventsBucket)
		if events == nil {
			return nil
		}
		c := events.Cursor()
		for k, value := lastBefore(c, q.Before); k != nil && (q.Limit == 0 || len(list) < q.Limit); k, value = c.Prev() {
			e, ok := clientcfg.ReadEvent(string(k), value)
			if ok && (q.Target == "" || e.Target == q.Target) {
				list = append(list, e)
			}
		}
		return nil
	})
	return list, err
}

// lastBefore moves the cursor to the last key, or to the last before one that is not empty.
func lastBefore(c *bolt.Cursor, before string) (key, value []byte) {
	if before == "" {
		return c.Last()
	}
	if k, _ := c.Seek([]byte(before)); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// SweepEvents implements [clientcfg.EventLog].
func (s *Store) SweepEvents(ctx context.Context, before time.Time) (int, error) {
	limit := clientcfg.EventsBefore(before)
	return s.sweepTimeline(ctx, timeline{
		bucket: eventsBucket,
		due:    func(key, _ []byte) (bool, error) { return string(key) < limit, nil },
		remove: func(*writeTx, []byte) (int, error) { return 1, nil },
	})
}
