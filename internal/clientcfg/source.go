package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/admission"
)

// The sum over all clients is compared every five minutes on average: it is for changes by earlier
// releases only, and costs the store a walk over an index. It says nothing if clients change while it
// is taken. Then it is taken again, and in the end all clients are read instead.
const (
	sumEvery = 5 * time.Minute
	sumAgain = 30 * time.Second
	sumUntil = 3 * time.Minute // after the first of these comparisons was due
)

// mostWait is how long [Source.Renew] waits for another reader of changes.
const mostWait = time.Second

// Source holds the newest [Directory]. Reads are a pointer load.
type Source struct {
	store   Store
	log     *slog.Logger
	current atomic.Pointer[Directory]
	checked atomic.Pointer[time.Time]

	turn  turn // held while changes are read; guards the fields below
	known shapes
	// behind: the directory lacks changes from before its mark. It follows what changes after it, and is
	// not the newest until all clients are read.
	behind    bool
	meanwhile map[string]struct{} // IDs of the changes since a read of all clients began; nil: none is under way
	sumAt     time.Time           // when the sum is compared next
	allAt     time.Time           // from when on all clients are read if that comparison says nothing
}

// NewSource reads the first directory and fails if the store cannot be read. When a client cannot be
// read, or can be again, it is logged; nil discards.
func NewSource(ctx context.Context, store Store, log *slog.Logger) (*Source, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{store: store, log: log, turn: newTurn()}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Client returns the client of that ID from the current snapshot, without I/O.
func (s *Source) Client(id string) (*Client, bool) { return s.current.Load().Client(id) }

// Directory returns the current snapshot.
func (s *Source) Directory() *Directory { return s.current.Load() }

// CheckedAt is when the directory was last found to be the newest.
func (s *Source) CheckedAt() time.Time { return *s.checked.Load() }

// Refresh reads what has changed in the store, and all clients if that is not known. It follows what
// changes while it does the latter, which one caller at a time does. After an error the last good
// directory stays in use.
func (s *Source) Refresh(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	return s.refresh(ctx)
}

// Renew reads what has changed unless the directory was the newest at most so long ago; 0: before the call.
// Callers that wait for each other share one read. A process that was stopped, or cut off from the store, learns
// in this way what it has missed before it judges by it. It is for requests: it never reads all clients, and
// returns an error where that is needed. One caller at a time reads, so these reads need no lane before the
// store; who waits too long for another one is refused as by a lane, with an error that is *[admission.ShedError].
func (s *Source) Renew(ctx context.Context, atMost time.Duration) error {
	since := time.Now().Round(0).Add(-atMost)
	if s.renewed(since) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	if err := s.take(waiting); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", err, s.shed())
		}
		return err
	}
	defer s.release()
	if s.renewed(since) { // by another caller
		return nil
	}
	_, err := s.follow(ctx, s.current.Load())
	return err
}

// shed returns the error of a caller that has waited too long: it is to come again the later, the longer nothing
// could be read.
func (s *Source) shed() error {
	return &admission.ShedError{RetryAfter: admission.RetryAfter(time.Since(s.CheckedAt())), Short: admission.Store}
}

// renewed reports whether a read that began after that time has found the directory to be the newest.
func (s *Source) renewed(since time.Time) bool {
	// The monotonic clock stands still while the machine is suspended; the other may be set back.
	at := s.CheckedAt()
	return at.After(since) && !at.After(time.Now().Round(0))
}

func (s *Source) take(ctx context.Context) error {
	return s.turn.take(ctx, "clients")
}

func (s *Source) release() { s.turn.release() }

func (s *Source) refresh(ctx context.Context) error {
	old := s.current.Load()
	if old == nil {
		s.sumIn(rand.N(sumEvery)) //nolint:gosec // spreads the instances
		return s.readFirst(ctx)
	}
	next, err := s.follow(ctx, old)
	switch {
	case s.meanwhile != nil: // another caller reads all
		return err
	case errors.Is(err, ErrMarkLost):
		return s.catchUp(ctx)
	case err == nil && time.Now().After(s.sumAt):
		return s.compareSum(ctx, next)
	}
	return err
}

// follow reads the changes since a directory, and returns the one that is in use afterwards. If that is
// not the newest in spite of it, the error is [ErrMarkLost].
func (s *Source) follow(ctx context.Context, old *Directory) (*Directory, error) {
	asked := time.Now()
	e := old.edit(&s.known)
	var changed []string
	mark, err := s.store.ClientChanges(ctx, old.mark, func(r Record) {
		e.apply(r)
		changed = append(changed, r.ID)
	})
	if err != nil {
		return old, fmt.Errorf("clientcfg: read changes of clients: %w", err)
	}
	next := old
	if len(changed) > 0 || mark != old.mark {
		next = e.directory(mark)
	}
	if s.meanwhile != nil {
		for _, id := range changed {
			s.meanwhile[id] = struct{}{}
		}
	}
	s.use(ctx, old, next)
	if s.behind {
		return next, fmt.Errorf("clientcfg: read changes of clients: %w", ErrMarkLost)
	}
	s.checked.Store(&asked)
	return next, nil
}

// compareSum reads all clients if the store has others than the directory, because a release has
// changed them that does not announce that, and also if that cannot be found out for too long.
func (s *Source) compareSum(ctx context.Context, d *Directory) error {
	s.sumAt = time.Now().Add(sumAgain)
	sum, err := s.store.ClientsSum(ctx)
	switch {
	case errors.Is(err, ErrNoSum):
		s.sumLater()
		return nil
	case err != nil:
		return fmt.Errorf("clientcfg: read sum of clients: %w", err)
	}
	next := d
	if sum != d.sum() { // announced changes may be the difference
		if next, err = s.follow(ctx, d); err != nil {
			return err
		}
	}
	meanwhile := next.sum() != d.sum()
	switch {
	case sum == next.sum():
		s.sumLater()
		return nil
	case meanwhile && time.Now().Before(s.allAt):
		return nil
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "clients may have been changed by another release; reading all",
		slog.Int64("clients", sum.Clients), slog.Int("known", next.Len()), slog.Bool("announced_meanwhile", meanwhile))
	err = s.readAll(ctx)
	if err == nil {
		s.sumLater()
	}
	return err
}

func (s *Source) sumLater() {
	s.sumIn(sumEvery*4/5 + rand.N(sumEvery*2/5)) //nolint:gosec // spreads the instances
}

func (s *Source) sumIn(d time.Duration) {
	s.sumAt = time.Now().Add(d)
	s.allAt = s.sumAt.Add(sumUntil)
}

// mostLogged bounds the lines of one refresh.
const mostLogged = 20

// logUnreadable logs which clients cannot be read any more, and which can be again: when that begins
// and ends, not each time.
func (s *Source) logUnreadable(ctx context.Context, old, next *Directory) {
	changed := 0
	few := func() bool { changed++; return changed <= mostLogged }
	for _, id := range slices.Sorted(maps.Keys(next.unreadable)) {
		if _, before := old.unreadable[id]; !before && few() {
			s.log.LogAttrs(ctx, slog.LevelError, "client cannot be read and is not served; the others are",
				slog.String("client_id", id), slog.Any("error", next.unreadable[id].err))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old.unreadable)) {
		if _, still := next.unreadable[id]; still || !few() {
			continue
		}
		if _, ok := next.Client(id); ok {
			s.log.LogAttrs(ctx, slog.LevelInfo, "client can be read again", slog.String("client_id", id))
		} else {
			s.log.LogAttrs(ctx, slog.LevelInfo, "client that could not be read was deleted", slog.String("client_id", id))
		}
	}
	if changed > mostLogged {
		s.log.LogAttrs(ctx, slog.LevelError, "more clients cannot be read, or can be again",
			slog.Int("not_logged", changed-mostLogged), slog.Int("unreadable", len(next.unreadable)))
	}
}
