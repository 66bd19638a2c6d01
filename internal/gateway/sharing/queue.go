package sharing

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// FlushEvery is how often what waits is to be stored, which is how long another instance may not know a token.
	FlushEvery = 250 * time.Millisecond
	// RetryAfter is how long after a failure it is to be tried again.
	RetryAfter = 5 * time.Second
	// writeTimeout is how long one call of the store may take.
	writeTimeout = 5 * time.Second
	// maxAttempts is how often in a row a batch may fail: for five minutes, at RetryAfter.
	maxAttempts = 60
)

// queue has the entries that wait to be stored, the oldest first.
type queue struct {
	mu      sync.Mutex
	most    int
	entries []Entry
	dropped uint64 // the oldest, for want of room
}

func (q *queue) add(e Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(q.entries, e)
	q.trim()
}

// take removes a batch.
func (q *queue) take() []Entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(MaxBatch, len(q.entries))
	batch := q.entries[:n:n]
	if q.entries = q.entries[n:]; len(q.entries) == 0 {
		q.entries = nil // and with it what has grown while the store was away
	}
	return batch
}

// putBack adds a batch again, before all others.
func (q *queue) putBack(batch []Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(batch, q.entries...)
	q.trim()
}

func (q *queue) trim() {
	if n := len(q.entries) - q.most; n > 0 {
		clear(q.entries[:n]) // so that nothing holds their texts
		q.entries = q.entries[n:]
		q.dropped += uint64(n)
	}
}

func (q *queue) stats() (waiting int, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries), q.dropped
}

// Flush stores what waits, in batches, until nothing does. After an error the rest waits for the next Flush. What the
// store has refused [maxAttempts] times in a row is given up, so that it never holds up the rest for good. To be called
// every [FlushEvery], after a failure [RetryAfter], and at the stop; of several at once, one stores.
func (s *Subjects) Flush(ctx context.Context) error {
	select {
	case s.flushing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.flushing }()
	return s.flush(ctx)
}

// FlushNow is [Subjects.Flush] for an answer that waits for it: for [ReadTimeout] at most, and not while the store fails.
func (s *Subjects) FlushNow(ctx context.Context) {
	if s == nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	select {
	case s.flushing <- struct{}{}:
	case <-within.Done():
		return
	}
	defer func() { <-s.flushing }()
	if s.failures == 0 {
		_ = s.flush(within) // the rest waits for the next Flush
	}
}

// flush is Flush for the one that stores.
func (s *Subjects) flush(ctx context.Context) error {
	for batch := s.queue.take(); len(batch) > 0; batch = s.queue.take() {
		if err := s.put(ctx, batch); err != nil {
			return fmt.Errorf("store users of refresh tokens: %w", err)
		}
	}
	return nil
}

// put stores a batch.
func (s *Subjects) put(ctx context.Context, batch []Entry) error {
	within, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := s.store.PutSubjects(within, newest(batch))
	if err == nil {
		s.failures = 0
		s.stored.Add(uint64(len(batch)))
		return nil
	}
	if ctx.Err() == nil {
		s.failures++
	}
	if s.failures < maxAttempts {
		s.queue.putBack(batch)
		return err
	}
	s.failures = 0
	s.givenUp.Add(uint64(len(batch)))
	return err
}

// newest returns the last entry of each key.
func newest(batch []Entry) []Entry {
	list := make([]Entry, 0, len(batch))
	places := make(map[string]int, len(batch))
	for _, e := range batch {
		if at, twice := places[e.Key]; twice {
			list[at] = e
			continue
		}
		places[e.Key] = len(list)
		list = append(list, e)
	}
	return list
}
