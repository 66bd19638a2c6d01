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

// PolicyOptions make a [PolicySource]. A zero value means the default named beside it.
type PolicyOptions struct {
	// Base is what the configuration file says: ratelimit.DefaultSettings().
	Base ratelimit.Settings
	// Adopted is called with every snapshot that replaces another, in their order, before
	// it is used. Nil: not called.
	Adopted func(old, next *PolicySnapshot)
	Now     func() time.Time // time.Now
}

// PolicyStatus is how fresh the policies are.
type PolicyStatus struct {
	Version   int64     // of the set in force
	CheckedAt time.Time // when it was last found to be the newest
	Err       error     // why it may not be the newest, nil if it is
}

// Refused reports whether the stored policies are invalid or cannot be decoded, so that the
// last good ones stay in use.
func (st PolicyStatus) Refused() bool {
	return errors.Is(st.Err, ErrUnreadable) || fielderr.Of(st.Err) != nil
}

// NewPolicySource reads the first set and fails if that cannot be used.
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

// Refresh reads the store if its version has changed. After an error the last good
// snapshot stays in use.
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

// Edit derives a changed set from the newest one, and the audit entry of the change. It is
// called again when another instance was faster, so it must have no other effect than its
// result. Its error ends the change.
type Edit func(current *PolicySnapshot) (PolicySet, AuditEntry, error)

// maxEdits bounds the attempts of one change. An attempt fails only because another change
// succeeded.
const maxEdits = 20

// Change applies an edit to the newest stored set. The result is validated as a whole,
// stored with its entry in one step, and in force here when Change returns. Errors: that of
// the edit; [fielderr.Errors], perhaps wrapped, for an invalid result; [ErrPolicyConflict]
// if others were faster too often.
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

// Try returns the snapshot that [PolicySource.Change] would make of the edit, and changes
// nothing.
func (s *PolicySource) Try(ctx context.Context, edit Edit) (*PolicySnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	next, _, err := s.prepare(s.current.Load(), edit)
	return next, err
}

// prepare runs the edit and gives its result the next version.
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

// Watch refreshes the policies as soon as the store reports a change, until ctx ends; it then
// returns nil, and an error if the watch broke off and can be tried again. It does not replace a
// repeated [PolicySource.Refresh]: a store may be unable to report changes, and a report can be lost.
func (s *PolicySource) Watch(ctx context.Context, log *slog.Logger) error {
	err := ErrNoWatch
	if w, ok := s.store.(PolicyWatcher); ok {
		err = w.WatchPolicies(ctx, func() {
			if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
				log.LogAttrs(ctx, slog.LevelDebug, "refresh of the policies after a change failed", slog.Any("error", err))
			}
		})
	}
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // cancelled
	case errors.Is(err, ErrNoWatch):
		log.LogAttrs(ctx, slog.LevelDebug, "no watch of the policies; changes are found by polling", slog.Any("reason", err))
		<-ctx.Done()
		return nil
	case err == nil:
		err = errors.New("clientcfg: the watch of the policies ended")
	}
	return err
}
