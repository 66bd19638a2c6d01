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

// ReadTimeout is how long a token request waits for the store at most.
const ReadTimeout = 100 * time.Millisecond

// Options configure [New]. Store and Memory are required.
type Options struct {
	Store  Store
	Memory *subject.Memory // gets what is found
	// MaxWaiting is how many entries wait for the store at most. 0: DefaultMaxWaiting.
	MaxWaiting int
	Logger     *slog.Logger // discards
}

// DefaultMaxWaiting is 65,536 entries, for which some 8 MB are needed.
const DefaultMaxWaiting = 1 << 16

// Subjects shares what leads to users. It is safe for concurrent use. A nil one shares nothing.
type Subjects struct {
	store  Store
	memory *subject.Memory
	log    *slog.Logger
	bounds bounds
	queue  queue
	reads  background.Streak // those that fail are logged now and then

	flushing chan struct{} // has one element while a Flush is under way, which guards the next
	failures int           // to store the first batch, in a row

	found, unknown, failed, skipped atomic.Uint64
	stored, givenUp                 atomic.Uint64
}

// New returns what shares through the store.
func New(o Options) *Subjects {
	return &Subjects{
		store: o.Store, memory: o.Memory, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		queue: queue{most: cmp.Or(o.MaxWaiting, DefaultMaxWaiting)}, flushing: make(chan struct{}, 1),
	}
}

// Stats are what has been done since the start.
type Stats struct {
	// Reads of the store: it had the refresh token; did not; failed or took too long; was not asked, see [Subjects.Find].
	Found, Unknown, Failed, Skipped uint64
	// Entries that were stored; dropped, because too many waited; given up, after many attempts.
	Stored, Dropped, GivenUp uint64
	Waiting                  int // entries
}

// Stats returns what has been done.
func (s *Subjects) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	st := Stats{
		Found: s.found.Load(), Unknown: s.unknown.Load(), Failed: s.failed.Load(), Skipped: s.skipped.Load(),
		Stored: s.stored.Load(), GivenUp: s.givenUp.Load(),
	}
	st.Waiting, st.Dropped = s.queue.stats()
	return st
}

// Find asks the store whose a refresh token of the client is that the memory does not have, and puts what it finds there.
// The source is the address that asks, or its network. It does not ask if [maxReads] are under way, if the source has
// asked for [maxFruitless] that were not there in the last minute, or for a second after the store has failed.
func (s *Subjects) Find(
	ctx context.Context, now time.Time, token subject.Digest, clientID, source string,
) (user string, known bool) {
	if s == nil || token.IsZero() {
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
	case ctx.Err() != nil: // the client has hung up, which says nothing about the store
		s.skipped.Add(1)
		return "", false
	default:
		s.failed.Add(1)
		end = failed
	}
	s.report(ctx, err)
	return user, known
}

// report logs that reads fail, and that they work again.
func (s *Subjects) report(ctx context.Context, err error) {
	switch news := s.reads.Add(err); {
	case !news:
	case err != nil:
		s.log.LogAttrs(ctx, slog.LevelWarn, "users of refresh tokens not read from the store; such requests count for no user",
			slog.Any("error", err))
	default:
		s.log.LogAttrs(ctx, slog.LevelInfo, "users of refresh tokens are read from the store again")
	}
}

// Put has the store keep whose a refresh token of the client is. It is lost if the process ends before the next
// [Subjects.Flush], and never waits. The arguments are those of [subject.Memory.Put].
func (s *Subjects) Put(now time.Time, token subject.Digest, clientID, user string, expires time.Time) {
	if s == nil || token.IsZero() || !subject.Fit(user) {
		return
	}
	longest := now.Add(subject.DefaultMaxLifetime)
	if expires.IsZero() || expires.After(longest) {
		expires = longest
	}
	s.queue.add(Entry{Key: KeyOf(token, clientID), Subject: user, Expires: expires})
}
