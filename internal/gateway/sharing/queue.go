package sharing

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// FlushEvery is the interval between flushes. Another instance may not know a token for that
	// long.
	FlushEvery = 250 * time.Millisecond
	// RetryAfter is the delay before the next flush after a failure.
	RetryAfter = 5 * time.Second
	// writeTimeout bounds one write to the store.
	writeTimeout = 5 * time.Second
	// maxAttempts is the number of failures in a row after which a batch is dropped: five minutes
	// at RetryAfter.
	maxAttempts = 60
)

// queue holds the entries to be stored, oldest first.
type queue struct {
	mu      sync.Mutex
	most    int
	entries []Entry
	dropped uint64 // the oldest entries, when the queue was full
}

func (q *queue) add(e Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(q.entries, e)
	q.trim()
}

// take removes and returns the first batch.
func (q *queue) take() []Entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(MaxBatch, len(q.entries))
	batch := q.entries[:n:n]
	if q.entries = q.entries[n:]; len(q.entries) == 0 {
		q.entries = nil // frees the memory of a queue that grew while the store was unavailable
	}
	return batch
}

// putBack returns a batch to the front of the queue.
func (q *queue) putBack(batch []Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(batch, q.entries...)
	q.trim()
}

func (q *queue) trim() {
	if n := len(q.entries) - q.most; n > 0 {
		clear(q.entries[:n]) // releases their strings
		q.entries = q.entries[n:]
		q.dropped += uint64(n)
	}
}

func (q *queue) stats() (waiting int, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries), q.dropped
}

// Flush writes the queue to the store in batches. After an error the rest stays in the queue for
// the next Flush. A batch that fails [maxAttempts] times in a row is dropped, so it cannot block
// the rest forever. Call Flush every [FlushEvery], [RetryAfter] after a failure, and at shutdown.
// Concurrent calls run one at a time.
func (s *Subjects) Flush(ctx context.Context) error {
	select {
	case s.flushing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.flushing }()
	return s.flush(ctx)
}

// FlushNow is [Subjects.Flush] for an answer that waits for it. It takes at most [ReadTimeout] and
// does nothing while the store fails.
func (s *Subjects) FlushNow(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	select {
	case s.flushing <- struct{}{}:
	case <-within.Done():
		return
	}
	defer func() { <-s.flushing }()
	if s.failures == 0 {
		_ = s.flush(within) // the rest stays for the next Flush
	}
}

// flush implements Flush. The caller holds flushing.
func (s *Subjects) flush(ctx context.Context) error {
	for batch := s.queue.take(); len(batch) > 0; batch = s.queue.take() {
		if err := s.put(ctx, batch); err != nil {
			return fmt.Errorf("store users of refresh tokens: %w", err)
		}
	}
	return nil
}

// put stores a batch. If that fails, it puts the batch back, or drops it after maxAttempts.
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

// newest returns the last entry for each key.
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
