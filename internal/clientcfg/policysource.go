package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

	turn   turn         // held while a refresh or a change runs; guards the base and the verdict
	begun  atomic.Int64 // refreshes, see Renew
	judged verdict
	status atomic.Pointer[PolicyStatus]
}

// verdict is what came of reading the whole state because of a version, and until when that is not done
// again. If the policies of that version are not used, err is why; it is nil if the state was adopted,
// and is of another version: that of its newest entry, which is missing in the trail.
type verdict struct {
	version PolicyVersion
	err     error
	until   time.Time
	entry   bool // it was read because an entry cannot be, which is looked at meanwhile: that is cheap
}

// judgedFor is how long there is not another look at a version: reading the whole state is expensive.
const judgedFor = 30 * time.Second

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
	Version int64 // of the set in force
	// LeftOut is how many targets are not as in that version, because that cannot be used: they have an
	// older value or that of the configuration file. Only an instance that started with them has any.
	LeftOut   int
	CheckedAt time.Time // when it was last found to be the newest; if it never was, of the start
	Err       error     // why it may not be the newest, nil if it is
}

// Refused reports whether the stored policies are invalid or cannot be decoded, so that the
// last good ones stay in use.
func (st PolicyStatus) Refused() bool {
	return refuses(st.Err)
}

// NewPolicySource reads the policies. What of them cannot be used keeps no server from starting: the rest
// is in force, as far as it can be with older values in its place, and the Status says so.
func NewPolicySource(ctx context.Context, store PolicyStore, o PolicyOptions) (*PolicySource, error) {
	s := &PolicySource{store: store, base: o.Base, adopted: o.Adopted, now: o.Now, turn: newTurn()}
	if s.base.Default.User == nil && s.base.Default.Client == nil {
		s.base = ratelimit.DefaultSettings()
	}
	if s.adopted == nil {
		s.adopted = func(_, _ *PolicySnapshot) {}
	}
	if s.now == nil {
		s.now = time.Now
	}
	refused, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	s.note(s.current.Load(), refused)
	return s, nil
}

// Snapshot returns the current snapshot, without I/O.
func (s *PolicySource) Snapshot() *PolicySnapshot { return s.current.Load() }

// Status returns how the last refresh went.
func (s *PolicySource) Status() PolicyStatus { return *s.status.Load() }

// Refresh reads what is newer than the current snapshot. After an error the last good
// snapshot stays in use: that before the first entry which cannot be used.
func (s *PolicySource) Refresh(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	return s.refresh(ctx)
}

func (s *PolicySource) refresh(ctx context.Context) error {
	s.begun.Add(1)
	err := s.follow(ctx)
	s.note(s.current.Load(), err)
	return err
}

// follow applies the entries that are newer than the current snapshot, one by one. If they do not
// continue it, because the store was restored from a backup or has forgotten them, or if one of them
// cannot be read, or what it makes is not valid, it reads the whole state: a later entry may have mended
// that, or it is folded. It does that once for each version, and again after a while, because the entry
// itself may have been mended.
func (s *PolicySource) follow(ctx context.Context) error {
	newest, err := s.store.PolicyVersion(ctx)
	if err != nil {
		return fmt.Errorf("clientcfg: read the version of the policies: %w", err)
	}
	if s.isJudged(newest) && !s.judged.entry {
		return s.judged.err
	}
	for current := s.current.Load(); current.last() != newest; {
		entries, err := s.store.PolicyEntries(ctx, current.Version())
		if err != nil {
			return fmt.Errorf("clientcfg: read the trail of the policies: %w", err)
		}
		newer, ok := current.continued(entries)
		if !ok || len(newer) == 0 {
			return s.reload(ctx, newest, false)
		}
		for i := range newer {
			if err := s.apply(&newer[i]); refuses(err) {
				return s.reload(ctx, newest, newer[i].Err != nil)
			} else if err != nil {
				return err
			}
		}
		if current = s.current.Load(); current.Version() > newest.Number { // there were more meanwhile
			return nil
		}
	}
	return nil
}

// refuses reports whether an error is of what is stored: it cannot be read, or is not valid.
func refuses(err error) bool { return errors.Is(err, ErrUnreadable) || fielderr.Of(err) != nil }

// reload reads the whole state because of a version, perhaps because an entry cannot be read. If that is
// refused, or is not what the version says, it is not read again for a while.
func (s *PolicySource) reload(ctx context.Context, version PolicyVersion, entry bool) error {
	if s.isJudged(version) {
		return s.judged.err
	}
	err := s.load(ctx)
	if refuses(err) || err == nil && s.current.Load().last() != version {
		s.judge(version, err, entry)
	}
	return err
}

func (s *PolicySource) judge(version PolicyVersion, err error, entry bool) {
	s.judged = verdict{version, err, s.now().Add(judgedFor), entry}
}

func (s *PolicySource) isJudged(version PolicyVersion) bool {
	return s.judged.version == version && s.now().Before(s.judged.until)
}

// continued returns those of the entries that are newer than the snapshot, which it was read from, and
// whether they continue it: the first must be its own last one, if there is one. That one need not be
// readable any more.
func (p *PolicySnapshot) continued(entries []PolicyEntry) (newer []PolicyEntry, ok bool) {
	switch {
	case len(entries) == 0:
		return nil, false
	case p.id == "":
		return entries, entries[0].Version == p.Version()+1
	}
	return entries[1:], entries[0].Version == p.Version() && entries[0].ID == p.id
}

// apply adopts the policies after an entry that was read.
func (s *PolicySource) apply(e *PolicyEntry) error {
	if e.Err != nil {
		return e.Err
	}
	next, err := s.current.Load().Apply(e)
	if err != nil {
		return fmt.Errorf("clientcfg: refused version %d of the policies: %w", e.Version, err)
	}
	if s.now().Sub(e.At) > resetsFor {
		next.resets = nil
	}
	s.adopt(next)
	return nil
}

// resetsFor is how late a reset is still carried out. After that the counts that it was meant for are
// gone, or are those of a window that ends soon.
const resetsFor = time.Hour

// load reads the whole state, and adopts it if all of it can be used.
func (s *PolicySource) load(ctx context.Context) error {
	state, err := s.store.PolicyState(ctx)
	if err != nil {
		return fmt.Errorf("clientcfg: read the policies: %w", err)
	}
	next, err := snapshotOf(s.base, &state)
	if err != nil {
		return fmt.Errorf("clientcfg: refused version %d of the policies: %w", state.Version, err)
	}
	if state.Stopped != nil {
		return notBeyond(&state)
	}
	s.adopt(next)
	return nil
}

func (s *PolicySource) adopt(next *PolicySnapshot) {
	if old := s.current.Load(); old != nil {
		s.adopted(old, next)
	}
	s.current.Store(next)
	s.judged = verdict{}
}

func (s *PolicySource) note(p *PolicySnapshot, err error) {
	st := PolicyStatus{Err: err}
	if last := s.status.Load(); last != nil {
		st.CheckedAt = last.CheckedAt
	} else {
		st.CheckedAt = s.now()
	}
	if p != nil {
		st.Version, st.LeftOut = p.Version(), p.leftOut
	}
	if err == nil {
		st.CheckedAt = s.now()
	}
	s.status.Store(&st)
}

// Edit derives an entry from the newest policies: its Changes, and what the audit trail shows of them.
// It is called again when another instance was faster, so it must have no other effect than its
// result. Its error ends the change.
type Edit func(current *PolicySnapshot) (PolicyEntry, error)

// maxEdits bounds the attempts of one change. An attempt fails only because another change
// succeeded.
const maxEdits = 20

// Change appends the entry that an edit makes of the newest policies. What it comes to is validated,
// durable and in force here when Change returns. Errors: that of the edit; [fielderr.Errors], perhaps
// wrapped, for an invalid result; *[RefusedError]; [ErrPolicyConflict] if others were faster too often.
func (s *PolicySource) Change(ctx context.Context, edit Edit) (*PolicySnapshot, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	for range maxEdits {
		if err := s.newest(ctx); err != nil {
			return nil, err
		}
		next, entry, err := prepare(s.current.Load(), edit)
		if err != nil {
			return nil, err
		}
		switch err := s.store.AppendPolicyEntry(ctx, entry); {
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
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if err := s.newest(ctx); err != nil {
		return nil, err
	}
	next, _, err := prepare(s.current.Load(), edit)
	return next, err
}

// newest makes the snapshot that of the newest version, which a change has to continue.
func (s *PolicySource) newest(ctx context.Context) error {
	err := s.refresh(ctx)
	if refuses(err) {
		return &RefusedError{err}
	}
	return err
}

// RefusedError is returned for a change while the newest policies cannot be used here. What is wrong with
// their fields is no error of the change, so it is not unwrapped.
type RefusedError struct{ cause error }

// Error implements error.
func (e *RefusedError) Error() string { return e.cause.Error() }

// Is reports whether the policies cannot be used because of that error, such as [ErrUnreadable].
func (e *RefusedError) Is(target error) bool { return errors.Is(e.cause, target) }

// prepare runs the edit, and completes its entry with the values before.
func prepare(current *PolicySnapshot, edit Edit) (*PolicySnapshot, PolicyEntry, error) {
	e, err := edit(current)
	if err != nil {
		return nil, e, err
	}
	if err := current.Complete(&e); err != nil {
		return nil, e, err
	}
	for i := range e.Changes {
		if e.Changes[i].Before, err = current.value(e.Changes[i].Target); err != nil {
			return nil, e, err
		}
	}
	next, err := current.Apply(&e)
	if err != nil {
		return nil, e, err
	}
	most := MaxEntrySize
	if !e.Until.IsZero() {
		most -= endRoom
	}
	if b, err := EncodePolicyEntry(&e); err != nil {
		return nil, e, err
	} else if len(b) > most {
		var es fielderr.Errors
		es.Add("", "the change takes %d bytes in the audit trail, more than %d; divide it into several", len(b), most)
		return nil, e, es.Err()
	}
	return next, e, nil
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
