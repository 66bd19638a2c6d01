package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrBusy is returned if another caller takes too long to read changes.
var ErrBusy = errors.New("store: another read of changes takes too long")

// Subscriber keeps a snapshot of a table written by [Backend.Append]. A [Follower] calls its
// functions one at a time.
type Subscriber struct {
	Table Table
	// Reload reads the whole table. Apply follows with the entries after the mark. The table may
	// already contain their changes.
	Reload func(ctx context.Context, from Mark) error
	// Apply adds the changes of entries to the snapshot.
	Apply func(ctx context.Context, b Batch)
}

// Batch has the changes of some entries of the trail to a table.
type Batch struct {
	Entries []Entry  // all, including entries for other tables; the oldest first
	Changed []Record // in their current state, each once; their Nonce may be unknown
	Deleted []string // keys
}

// Follower keeps the snapshots of its subscribers up to date with the trail, and appends to the
// trail. It is safe for concurrent use. Create it with [NewFollower].
type Follower struct {
	backend     Backend
	subscribers []Subscriber
	busy        chan struct{} // held while the fields below are used
	mark        Mark
	lost        bool // the snapshots must be read again
	checked     atomic.Pointer[time.Time]
}

// NewFollower returns a follower that starts at the newest entry.
func NewFollower(ctx context.Context, b Backend) (*Follower, error) {
	f := &Follower{backend: b, busy: make(chan struct{}, 1), lost: true}
	if err := f.Refresh(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// Backend returns the store that is followed.
func (f *Follower) Backend() Backend { return f.backend }

// Subscribe makes the subscriber read its table, and keeps it up to date from then on.
func (f *Follower) Subscribe(ctx context.Context, s Subscriber) error {
	return f.Do(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		if err := s.Reload(ctx, f.mark); err != nil {
			return err
		}
		f.subscribers = append(f.subscribers, s)
		return nil
	})
}

// CheckedAt returns when the snapshots were last known to be up to date.
func (f *Follower) CheckedAt() time.Time { return *f.checked.Load() }

// Refresh applies all changes made so far. It reads the tables again if the trail does not continue
// from the last entry read.
func (f *Follower) Refresh(ctx context.Context) error {
	return f.Do(ctx, func() error { return f.refresh(ctx) })
}

// mostWait is how long [Follower.Renew] waits for another caller.
const mostWait = time.Second

// Renew is [Follower.Refresh] for requests. It does nothing if the snapshots were up to date within
// the last atMost. Callers that wait for each other share one read. Errors: [ErrBusy];
// [ErrMarkLost] while tables must be read again, which only Refresh does.
func (f *Follower) Renew(ctx context.Context, atMost time.Duration) error {
	since := time.Now().Round(0).Add(-atMost)
	if f.renewed(since) {
		return nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, mostWait, ErrBusy)
	defer cancel()
	return f.Do(waiting, func() error {
		if f.renewed(since) {
			return nil
		}
		return f.follow(ctx)
	})
}

// renewed reports whether a read that began after since has found the snapshots up to date.
func (f *Follower) renewed(since time.Time) bool {
	// Compare wall clock times: the monotonic clock stops while the machine is suspended. The wall
	// clock may be set back.
	at := f.CheckedAt()
	return at.After(since) && !at.After(time.Now().Round(0))
}

// Prepare returns the entry with the given number and the records that it changes. If another
// writer was faster, it is called again with a greater number. When it is called, the snapshots and
// everything it reads from the store are up to date. It MUST NOT use the follower.
type Prepare func(number int64) (Entry, []Write, error)

// Append appends the entry that prepare returns. The snapshots contain the change when it returns.
// Errors: errors of prepare, and failures of the store.
func (f *Follower) Append(ctx context.Context, prepare Prepare) (mark Mark, err error) {
	err = f.Do(ctx, func() error {
		for {
			if err := f.refresh(ctx); err != nil {
				return err
			}
			e, writes, err := prepare(f.mark.Number + 1)
			if err != nil {
				return err
			}
			e.Number = f.mark.Number + 1
			mark, err = f.backend.Append(ctx, e, writes...)
			if err == nil {
				f.appended(ctx, e, mark, writes)
			}
			if !errors.Is(err, ErrConflict) {
				return err
			}
		}
	})
	return mark, err
}

// appended delivers an entry of this process.
func (f *Follower) appended(ctx context.Context, e Entry, mark Mark, writes []Write) {
	e.Nonce = mark.Nonce
	for i := range writes {
		e.Refs = append(e.Refs, Ref{writes[i].Table.Name, writes[i].Record.Key})
	}
	for _, s := range f.subscribers {
		b := Batch{Entries: []Entry{e}}
		for _, w := range writes {
			switch {
			case w.Table.Name != s.Table.Name:
			case w.Delete:
				b.Deleted = append(b.Deleted, w.Record.Key)
			default:
				w.Record.Version, w.Record.Nonce, w.Record.Changed = mark.Number, mark.Nonce, e.At
				b.Changed = append(b.Changed, w.Record)
			}
		}
		s.Apply(ctx, b)
	}
	f.mark = mark
}

// View calls what while the snapshots are up to date, with the number of the next entry. what MUST
// NOT use the follower.
func (f *Follower) View(ctx context.Context, what func(number int64) error) error {
	return f.Do(ctx, func() error {
		if err := f.refresh(ctx); err != nil {
			return err
		}
		return what(f.mark.Number + 1)
	})
}

// Do calls what and lets no other read or append of this follower run in the meantime. Do itself
// does not use the store. what MUST NOT use the follower.
func (f *Follower) Do(ctx context.Context, what func() error) error {
	select {
	case f.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("store: wait for another read of changes: %w", context.Cause(ctx))
	}
	defer func() { <-f.busy }()
	return what()
}

func (f *Follower) refresh(ctx context.Context) error {
	err := f.follow(ctx)
	if !errors.Is(err, ErrMarkLost) {
		return err
	}
	began := time.Now()
	_, newest, err := f.backend.Trail(ctx, f.mark, 1)
	if err != nil && !errors.Is(err, ErrMarkLost) {
		return fmt.Errorf("store: read the trail: %w", err)
	}
	f.lost = true
	for _, s := range f.subscribers {
		if err := s.Reload(ctx, newest); err != nil {
			return err
		}
	}
	f.mark, f.lost = newest, false
	f.checked.Store(&began)
	return nil
}

// batchEntries bounds how many entries are read at once.
const batchEntries = 256

// follow delivers all entries after the mark. Errors: [ErrMarkLost].
func (f *Follower) follow(ctx context.Context) error {
	if f.lost {
		return ErrMarkLost
	}
	for {
		began := time.Now()
		entries, newest, err := f.backend.Trail(ctx, f.mark, batchEntries)
		if err == nil && len(entries) > 0 {
			err = f.deliver(ctx, entries)
		}
		if err != nil {
			return fmt.Errorf("store: follow the trail: %w", err)
		}
		if len(entries) == 0 || f.mark.Number >= newest.Number {
			f.checked.Store(&began)
			return nil
		}
	}
}

// deliver passes entries to the subscribers. If an entry cannot be read, its changes are unknown,
// and deliver returns [ErrMarkLost].
func (f *Follower) deliver(ctx context.Context, entries []Entry) error {
	keys := map[Ref]bool{}
	for i := range entries {
		if entries[i].Err != nil {
			f.lost = true
			return ErrMarkLost
		}
		for _, ref := range entries[i].Refs {
			keys[ref] = true
		}
	}
	batches := make([]Batch, len(f.subscribers))
	for i, s := range f.subscribers {
		var err error
		if batches[i], err = f.batch(ctx, s.Table, keys); err != nil {
			return err
		}
		batches[i].Entries = entries
	}
	for i, s := range f.subscribers {
		s.Apply(ctx, batches[i])
	}
	f.mark = entries[len(entries)-1].Mark()
	return nil
}

// batch reads the records of one table among refs.
func (f *Follower) batch(ctx context.Context, t Table, refs map[Ref]bool) (b Batch, err error) {
	var keys []string
	gone := map[string]bool{}
	for ref := range refs {
		if ref.Table == t.Name {
			keys = append(keys, ref.Key)
			gone[ref.Key] = true
		}
	}
	if len(keys) == 0 {
		return b, nil
	}
	err = f.backend.Get(ctx, t, func(r Record) error {
		r.Value = append([]byte(nil), r.Value...)
		b.Changed = append(b.Changed, r)
		delete(gone, r.Key)
		return nil
	}, keys...)
	for key := range gone {
		b.Deleted = append(b.Deleted, key)
	}
	return b, err
}
