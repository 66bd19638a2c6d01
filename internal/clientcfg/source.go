package clientcfg

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// Source holds the newest [Directory]. Reads are a pointer load.
type Source struct {
	store   Store
	log     *slog.Logger
	current atomic.Pointer[Directory]
	checked atomic.Pointer[time.Time]
}

// NewSource reads the first directory and fails if the store cannot be read. When a client cannot be
// read, or can be again, it is logged; nil discards.
func NewSource(ctx context.Context, store Store, log *slog.Logger) (*Source, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{store: store, log: log}
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

// Refresh reads the store if its revision has changed. After an error the last good
// directory stays in use.
func (s *Source) Refresh(ctx context.Context) error {
	asked := time.Now()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	s.checked.Store(&asked)
	return nil
}

func (s *Source) refresh(ctx context.Context) error {
	old := s.current.Load()
	if old != nil {
		rev, err := s.store.Revision(ctx)
		if err != nil {
			return fmt.Errorf("clientcfg: read revision: %w", err)
		}
		if rev == old.revision {
			return nil
		}
	}
	next, err := ReadDirectory(ctx, s.store)
	if err != nil {
		return err
	}
	s.current.Store(next)
	if old == nil {
		old = &Directory{}
	}
	s.logUnreadable(ctx, old, next)
	return nil
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
				slog.String("client_id", id), slog.Any("error", next.unreadable[id]))
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
