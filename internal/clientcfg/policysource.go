package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

// PolicySource holds the newest valid [PolicySnapshot]. Reads are a pointer load.
// It is safe for concurrent use.
type PolicySource struct {
	store   PolicyStore
	base    ratelimit.Settings
	adopted func(old, next *PolicySnapshot)
	now     func() time.Time
	current atomic.Pointer[PolicySnapshot]

	mu     sync.Mutex // one refresh or change at a time
	status atomic.Pointer[PolicyStatus]
}

// PolicyOptions make a [PolicySource]. Every zero value means the default that
// is named beside it.
type PolicyOptions struct {
	// Base is what the configuration file says: ratelimit.DefaultSettings().
	Base ratelimit.Settings
	// Adopted is called with every snapshot that replaces another, in their
	// order, before it is used. Nobody is told.
	Adopted func(old, next *PolicySnapshot)
	Now     func() time.Time // time.Now
}

// PolicyStatus says how fresh the policies are.
type PolicyStatus struct {
	Version   int64     // of the set in force
	CheckedAt time.Time // when the store last said that it is the newest
	Err       error     // why it may not be the newest, nil if it is
}

// Refused reports whether the store answers, with policies that cannot be or
// cannot be read: the last good ones stay until somebody mends it.
func (st PolicyStatus) Refused() bool {
	return errors.Is(st.Err, ErrUnreadable) || fielderr.Of(st.Err) != nil
}

// NewPolicySource reads the first set; it fails rather than start without one.
func NewPolicySource(ctx context.Context, store PolicyStore, o PolicyOptions) (*PolicySource, error) {
	s := &PolicySource{store: store, base: o.Base, adopted: o.Adopted, now: o.Now}
	if s.base.Default.User == nil && s.base.Default.Client == nil {
		s.base = ratelimit.DefaultSettings()
	}
	if s.adopted == nil {
		s.adopted = func(_, _ *PolicySnapshot) {}
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Snapshot returns the current snapshot, without I/O.
func (s *PolicySource) Snapshot() *PolicySnapshot { return s.current.Load() }

// Status returns how the last refresh went.
func (s *PolicySource) Status() PolicyStatus { return *s.status.Load() }

// Refresh reads the store if its version has moved. On any error the last good
// snapshot stays.
func (s *PolicySource) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh(ctx)
}

func (s *PolicySource) refresh(ctx context.Context) error {
	old := s.current.Load()
	next, err := s.newer(ctx, old)
	if next != nil {
		s.adopt(next)
		old = next
	}
	s.note(old, err)
	return err
}

// newer returns the stored policies if they are not those of old.
func (s *PolicySource) newer(ctx context.Context, old *PolicySnapshot) (*PolicySnapshot, error) {
	if old != nil {
		version, err := s.store.PolicyVersion(ctx)
		if err != nil {
			return nil, fmt.Errorf("clientcfg: read the version of the policies: %w", err)
		}
		if version == old.Version() {
			return nil, nil //nolint:nilnil // nothing newer, and no error
		}
	}
	set, err := s.store.PolicySet(ctx)
	if err != nil {
		return nil, fmt.Errorf("clientcfg: read the policies: %w", err)
	}
	next, err := NewPolicySnapshot(s.base, set)
	if err != nil {
		return nil, fmt.Errorf("clientcfg: refused version %d of the policies: %w", set.Version, err)
	}
	return next, nil
}

func (s *PolicySource) adopt(next *PolicySnapshot) {
	if old := s.current.Load(); old != nil {
		s.adopted(old, next)
	}
	s.current.Store(next)
}

func (s *PolicySource) note(p *PolicySnapshot, err error) {
	st := PolicyStatus{Err: err}
	if last := s.status.Load(); last != nil {
		st.CheckedAt = last.CheckedAt
	}
	if p != nil {
		st.Version = p.Version()
	}
	if err == nil {
		st.CheckedAt = s.now()
	}
	s.status.Store(&st)
}

// Edit derives a changed set from the newest one, and the entry that tells of
// it. It may be called several times, because others make changes too, and
// must have no effect beside its result. Its error ends the attempt.
type Edit func(current *PolicySnapshot) (PolicySet, AuditEntry, error)

// maxEdits bounds the attempts of one change; each was lost to somebody
// else's success.
const maxEdits = 20

// Change applies an edit to the newest stored set: validated as a whole,
// stored with its entry in one step, and in force here when Change returns.
// Errors: that of the edit; [fielderr.Errors], wrapped, for what cannot
// be; [ErrPolicyConflict] where others were faster too often.
func (s *PolicySource) Change(ctx context.Context, edit Edit) (*PolicySnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range maxEdits {
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
		next, entry, err := s.prepare(s.current.Load(), edit)
		if err != nil {
			return nil, err
		}
		switch err := s.store.ReplacePolicySet(ctx, next.set, entry); {
		case err == nil:
			s.adopt(next)
			s.note(next, nil)
			return next, nil
		case !errors.Is(err, ErrPolicyConflict):
			return nil, fmt.Errorf("clientcfg: store the policies: %w", err)
		}
	}
	return nil, ErrPolicyConflict
}

// Try is [PolicySource.Change] without its effect: it says what would come of
// the edit.
func (s *PolicySource) Try(ctx context.Context, edit Edit) (*PolicySnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	next, _, err := s.prepare(s.current.Load(), edit)
	return next, err
}

// prepare runs the edit and numbers what it makes.
func (s *PolicySource) prepare(current *PolicySnapshot, edit Edit) (*PolicySnapshot, AuditEntry, error) {
	set, entry, err := edit(current)
	if err != nil {
		return nil, entry, err
	}
	set.Version = current.Version() + 1
	entry.Version = set.Version
	next, err := NewPolicySnapshot(s.base, set)
	return next, entry, err
}

// Run refreshes the policies about every interval until ctx ends, as
// [Source.Run] does with the clients.
func (s *PolicySource) Run(ctx context.Context, interval time.Duration, log *slog.Logger) {
	follow(ctx, interval, log, "policies", s.Refresh)
}

// Watch refreshes the policies as soon as the store tells of a change, until
// ctx ends. It is beside [PolicySource.Run], not instead of it: a store that
// cannot tell is left to that one, and so is what is lost on the way. An error
// says that the watch broke off and can be tried again.
func (s *PolicySource) Watch(ctx context.Context, log *slog.Logger) error {
	err := ErrNoWatch
	if w, ok := s.store.(PolicyWatcher); ok {
		err = w.WatchPolicies(ctx, func() {
			if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
				log.LogAttrs(ctx, slog.LevelDebug, "policies not refreshed after a change", slog.Any("error", err))
			}
		})
	}
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it ended as it was asked to
	case errors.Is(err, ErrNoWatch):
		log.LogAttrs(ctx, slog.LevelDebug, "changes of the policies are found by polling", slog.Any("reason", err))
		<-ctx.Done()
		return nil
	case err == nil:
		err = errors.New("clientcfg: the watch of the policies ended")
	}
	return err
}
