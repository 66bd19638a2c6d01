package sharing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/gateway/subject"
)

// ReadTimeout is the longest time that a token request waits for the store.
const ReadTimeout = 100 * time.Millisecond

// Options configure [New]. Store and Memory are required.
type Options struct {
	Store  Store
	Memory *subject.Memory // receives the entries that are found
	// MaxWaiting is the maximum length of the queue. 0: DefaultMaxWaiting.
	MaxWaiting int
	Logger     *slog.Logger // nil: discards
}

// DefaultMaxWaiting is 65,536 entries, which need about 8 MB.
const DefaultMaxWaiting = 1 << 16

// Subjects shares the mappings to users. It is safe for concurrent use.
type Subjects struct {
	store  Store
	memory *subject.Memory
	log    *slog.Logger
	bounds bounds
	queue  queue
	reads  background.Streak // throttles the log of failed reads

	flushing chan struct{} // holds one element while a Flush runs; it also guards failures
	failures int           // failures in a row to store the first batch

	found, unknown, failed, skipped atomic.Uint64
	stored, givenUp                 atomic.Uint64
}

// New returns a Subjects that shares through the store.
func New(o Options) *Subjects {
	return &Subjects{
		store: o.Store, memory: o.Memory, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		queue: queue{most: cmp.Or(o.MaxWaiting, DefaultMaxWaiting)}, flushing: make(chan struct{}, 1),
	}
}

// Stats are counters since the start.
type Stats struct {
	// Reads of the store, by result: the token was found, was not found, the read failed or timed
	// out, or the read was skipped, see [Subjects.Find].
	Found, Unknown, Failed, Skipped uint64
	// Entries that were stored, dropped because the queue was full, or given up after maxAttempts.
	Stored, Dropped, GivenUp uint64
	Waiting                  int // entries in the queue
}

// Stats returns the counters.
func (s *Subjects) Stats() Stats {
	st := Stats{
		Found: s.found.Load(), Unknown: s.unknown.Load(), Failed: s.failed.Load(), Skipped: s.skipped.Load(),
		Stored: s.stored.Load(), GivenUp: s.givenUp.Load(),
	}
	st.Waiting, st.Dropped = s.queue.stats()
	return st
}

// Find looks up the user of a refresh token that the memory does not have, and adds it to the
// memory. source is the address of the requester, or its network. Find skips the read if [maxReads]
// are running, if the source had [maxFruitless] fruitless reads in the last minute, or for a second
// after the store has failed.
func (s *Subjects) Find(
	ctx context.Context, now time.Time, token subject.Digest, clientID, source string,
) (user string, known bool) {
	if token.IsZero() {
		return "", false
	}
	if !s.bounds.begin(now, source) {
		s.skipped.Add(1)
		return "", false
	}
	end := gone
	defer func() { s.bounds.end(now, source, end) }()
	within, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	e, err := s.store.Subject(within, KeyOf(token, clientID))
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !now.Before(e.Expires):
		s.unknown.Add(1)
		end, err = fruitless, nil
	case err == nil:
		s.found.Add(1)
		end = found
		s.memory.Put(now, token, clientID, e.Subject, e.Expires)
		user, known = e.Subject, true
	case ctx.Err() != nil: // the client hung up, so the store may be healthy
		s.skipped.Add(1)
		return "", false
	default:
		s.failed.Add(1)
		end = failed
	}
	s.report(ctx, err)
	return user, known
}

// report logs when reads start to fail and when they work again.
func (s *Subjects) report(ctx context.Context, err error) {
	switch news := s.reads.Add(err); {
	case !news:
	case err != nil:
		s.log.LogAttrs(ctx, slog.LevelWarn, "read users of refresh tokens failed; their requests count for no user",
			slog.Any("error", err))
	default:
		s.log.LogAttrs(ctx, slog.LevelInfo, "read users of refresh tokens works again")
	}
}

// Put queues the user of a refresh token for the store. It never blocks. The entry is lost if the
// process ends before the next [Subjects.Flush]. The arguments are the same as for
// [subject.Memory.Put].
func (s *Subjects) Put(now time.Time, token subject.Digest, clientID, user string, expires time.Time) {
	if token.IsZero() || !subject.Fit(user) {
		return
	}
	longest := now.Add(subject.DefaultMaxLifetime)
	if expires.IsZero() || expires.After(longest) {
		expires = longest
	}
	s.queue.add(Entry{Key: KeyOf(token, clientID), Subject: user, Expires: expires})
}
