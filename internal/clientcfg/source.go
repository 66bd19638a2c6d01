package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/overload"
	"oauth-server/internal/store"
)

// Source holds the newest [Directory]. Reads are a pointer load.
type Source struct {
	follower *store.Follower
	log      *slog.Logger
	current  atomic.Pointer[Directory]
}

// NewSource reads the first directory and follows the trail from then on. It fails if the store
// cannot be read. It logs when a client becomes unreadable, or readable again. A nil log discards.
func NewSource(ctx context.Context, f *store.Follower, log *slog.Logger) (*Source, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{follower: f, log: log}
	s.current.Store(&Directory{})
	return s, f.Subscribe(ctx, store.Subscriber{Table: ClientsTable, Reload: s.reload, Apply: s.apply})
}

// Client returns the client with that ID from the current snapshot, without I/O.
func (s *Source) Client(id string) (*Client, bool) { return s.current.Load().Client(id) }

// Directory returns the current snapshot.
func (s *Source) Directory() *Directory { return s.current.Load() }

// CheckedAt returns when the directory was last known to be current.
func (s *Source) CheckedAt() time.Time { return s.follower.CheckedAt() }

// Renew reads the changes, unless the directory was current at most atMost ago. 0 means before the
// call. So a process that was paused or cut off from the store catches up before it decides. Renew
// is for requests: it never reads all clients, and returns [store.ErrMarkLost] if that is needed.
// One caller reads at a time, so these reads bypass the store's queue. A caller that waits too long
// for another one gets an error that wraps *[overload.ShedError], like one shed from that queue.
func (s *Source) Renew(ctx context.Context, atMost time.Duration) error {
	err := s.follower.Renew(ctx, atMost)
	if errors.Is(err, store.ErrBusy) {
		// The longer nothing could be read, the later the retry.
		shed := &overload.ShedError{RetryAfter: overload.RetryAfter(time.Since(s.CheckedAt())), Short: overload.Store}
		err = fmt.Errorf("%w: %w", err, shed)
	}
	return err
}

func (s *Source) reload(ctx context.Context, from store.Mark) error {
	old := s.current.Load()
	next, err := readDirectory(ctx, NewRegistrations(s.follower), from.Number)
	if err != nil {
		return err
	}
	s.use(ctx, old, next)
	return nil
}

func (s *Source) apply(ctx context.Context, b store.Batch) {
	if len(b.Changed)+len(b.Deleted) == 0 {
		return
	}
	old := s.current.Load()
	e := old.edit()
	for i := range b.Changed {
		e.apply(readClient(&b.Changed[i]))
	}
	for _, id := range b.Deleted {
		e.remove(id)
	}
	s.use(ctx, old, e.directory(b.Entries[len(b.Entries)-1].Number))
}

// use installs the next directory.
func (s *Source) use(ctx context.Context, old, next *Directory) {
	s.current.Store(next)
	s.logUnreadable(ctx, old, next)
}

// mostLogged bounds the log lines of one refresh.
const mostLogged = 20

// logUnreadable logs which clients have become unreadable, and which are readable again. It logs
// each transition once.
func (s *Source) logUnreadable(ctx context.Context, old, next *Directory) {
	changed := 0
	few := func() bool { changed++; return changed <= mostLogged }
	for _, id := range slices.Sorted(maps.Keys(next.unreadable)) {
		if _, before := old.unreadable[id]; !before && few() {
			s.log.LogAttrs(ctx, slog.LevelError, "client cannot be read and is not served",
				slog.String("client_id", id), slog.Any("error", next.unreadable[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old.unreadable)) {
		if _, still := next.unreadable[id]; still || !few() {
			continue
		}
		if _, ok := next.Client(id); ok {
			s.log.LogAttrs(ctx, slog.LevelInfo, "client is readable again", slog.String("client_id", id))
		} else {
			s.log.LogAttrs(ctx, slog.LevelInfo, "unreadable client was deleted", slog.String("client_id", id))
		}
	}
	if changed > mostLogged {
		s.log.LogAttrs(ctx, slog.LevelError, "more clients became unreadable or readable",
			slog.Int("not_logged", changed-mostLogged), slog.Int("unreadable", len(next.unreadable)))
	}
}
