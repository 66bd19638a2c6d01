package store_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

var things = store.Table{Name: "things"}

// memory is a backend of one table and a trail. Function fields replace its behaviour.
type memory struct {
	store.Backend
	mu      sync.Mutex
	entries []store.Entry
	records map[string]store.Record
	reads   int   // of the trail
	down    error // of Get
	trail   func(ctx context.Context) error
}

func (m *memory) Get(_ context.Context, _ store.Table, each func(store.Record) error, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	for _, key := range keys {
		if r, ok := m.records[key]; ok {
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) newest() store.Mark {
	if len(m.entries) == 0 {
		return store.Mark{}
	}
	return m.entries[len(m.entries)-1].Mark()
}

func (m *memory) Trail(ctx context.Context, after store.Mark, limit int) ([]store.Entry, store.Mark, error) {
	if m.trail != nil {
		if err := m.trail(ctx); err != nil {
			return nil, store.Mark{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	at := slices.IndexFunc(m.entries, func(e store.Entry) bool { return e.Mark() == after })
	if at < 0 && after != (store.Mark{}) {
		return nil, m.newest(), store.ErrMarkLost
	}
	rest := m.entries[at+1:]
	return slices.Clone(rest[:min(limit, len(rest))]), m.newest(), nil
}

func (m *memory) Append(_ context.Context, e store.Entry, writes ...store.Write) (store.Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Number != m.newest().Number+1 {
		return store.Mark{}, store.ErrConflict
	}
	e.Nonce, e.Refs = 100+e.Number, nil
	for _, w := range writes {
		e.Refs = append(e.Refs, store.Ref{Table: w.Table.Name, Key: w.Record.Key})
		if w.Record.Version = e.Number; w.Delete {
			delete(m.records, w.Record.Key)
		} else if w.Table == things {
			m.records[w.Record.Key] = w.Record
		}
	}
	m.entries = append(m.entries, e)
	return e.Mark(), nil
}

// put makes a change as another process. Without a value it deletes.
func (m *memory) put(t *testing.T, key, value string) {
	t.Helper()
	_, err := m.Append(t.Context(), store.Entry{Number: m.newest().Number + 1}, writeOf(key, value))
	check.OK(t, err)
}

func writeOf(key, value string) store.Write {
	return store.Write{Table: things, Record: store.Record{Key: key, Value: []byte(value)}, Delete: value == ""}
}

// snapshot is a subscriber with the things by their keys.
type snapshot struct {
	from    *memory
	reloads int
	mark    store.Mark
	things  map[string]string
	seen    []int64 // numbers of entries
}

func (s *snapshot) reload(_ context.Context, from store.Mark) error {
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	if s.from.down != nil {
		return s.from.down
	}
	s.things, s.mark = map[string]string{}, from
	s.reloads++
	for key, r := range s.from.records {
		s.things[key] = string(r.Value)
	}
	return nil
}

func (s *snapshot) apply(_ context.Context, b store.Batch) {
	for _, e := range b.Entries {
		s.seen = append(s.seen, e.Number)
	}
	for _, r := range b.Changed {
		s.things[r.Key] = string(r.Value)
	}
	for _, key := range b.Deleted {
		delete(s.things, key)
	}
}

func (s *snapshot) is(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, key := range slices.Sorted(maps.Keys(s.things)) {
		got = append(got, key+"="+s.things[key])
	}
	check.Equal(t, "snapshot", strings.Join(got, " "), strings.Join(want, " "))
}

func follow(t *testing.T, m *memory) (*store.Follower, *snapshot) {
	t.Helper()
	f, err := store.NewFollower(t.Context(), m)
	check.OK(t, err)
	s := &snapshot{from: m}
	check.OK(t, f.Subscribe(t.Context(), store.Subscriber{Table: things, Reload: s.reload, Apply: s.apply}))
	return f, s
}

func newMemory(t *testing.T, keys ...string) *memory {
	t.Helper()
	m := &memory{records: map[string]store.Record{}}
	for _, key := range keys {
		m.put(t, key, "1")
	}
	return m
}

func TestFollowerDelivers(t *testing.T) {
	m := newMemory(t, "a", "b")
	f, s := follow(t, m)
	s.is(t, "a=1", "b=1")
	check.Equal(t, "mark", s.mark.Number, int64(2))
	m.put(t, "a", "2")
	m.put(t, "b", "")
	m.put(t, "a", "3")
	check.OK(t, f.Refresh(t.Context()))
	s.is(t, "a=3")
	check.Equal(t, "entries", slices.Equal(s.seen, []int64{3, 4, 5}), true)
	check.OK(t, f.Refresh(t.Context()))
	check.Equal(t, "entries in all", len(s.seen), 3)
	check.Equal(t, "reads of the table", s.reloads, 1)
}

func TestFollowerReadsManyEntries(t *testing.T) {
	m := newMemory(t)
	f, s := follow(t, m)
	for range 600 {
		m.put(t, "a", "1")
	}
	check.OK(t, f.Refresh(t.Context()))
	check.Equal(t, "entries", len(s.seen), 600)
}

// TestFollowerFails: changes that could not be delivered are delivered later.
func TestFollowerFails(t *testing.T) {
	m := newMemory(t, "a")
	f, s := follow(t, m)
	checked := f.CheckedAt()
	m.put(t, "a", "2")
	m.down = errors.New("down")
	check.ErrorIs(t, f.Refresh(t.Context()), m.down, "refresh while the store is down")
	s.is(t, "a=1")
	check.Equal(t, "checked", f.CheckedAt(), checked)
	m.down = nil
	check.OK(t, f.Refresh(t.Context()))
	s.is(t, "a=2")
}

func TestFollowerAppends(t *testing.T) {
	m := newMemory(t, "a")
	f, s := follow(t, m)
	m.put(t, "a", "2")
	var numbers []int64
	mark, err := f.Append(t.Context(), func(number int64) (store.Entry, []store.Write, error) {
		if numbers = append(numbers, number); number == 3 {
			m.put(t, "b", "1") // another writer is faster
		}
		return store.Entry{}, []store.Write{writeOf("c", "1"), writeOf("a", "")}, nil
	})
	check.OK(t, err)
	check.Equal(t, "numbers", slices.Equal(numbers, []int64{3, 4}), true)
	check.Equal(t, "mark", mark, m.newest())
	s.is(t, "b=1", "c=1")
	check.OK(t, f.Refresh(t.Context()))
	check.Equal(t, "entries", slices.Equal(s.seen, []int64{2, 3, 4}), true)

	refused := errors.New("refused")
	_, err = f.Append(t.Context(), func(int64) (store.Entry, []store.Write, error) { return store.Entry{}, nil, refused })
	check.Equal(t, "error of prepare", errors.Is(err, refused), true)
}

// TestFollowerReloads: the tables are read again if the trail was replaced, or an entry cannot be
// read. Requests never read the table.
func TestFollowerReloads(t *testing.T) {
	replace := map[string]func(m *memory){
		"another trail": func(m *memory) { m.entries[0].Nonce = 7 },
		"no trail":      func(m *memory) { m.entries = nil },
		"unreadable":    func(m *memory) { m.entries = append(m.entries, store.Entry{Number: 2, Err: store.ErrUnreadable}) },
	}
	for name, spoil := range replace {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t, "a")
			f, s := follow(t, m)
			m.records["a"] = store.Record{Key: "a", Value: []byte("2")}
			spoil(m)
			for range 2 {
				check.ErrorIs(t, f.Renew(t.Context(), 0), store.ErrMarkLost, "renew")
			}
			m.down = errors.New("down")
			check.ErrorIs(t, f.Refresh(t.Context()), m.down, "refresh while the store is down")
			s.is(t, "a=1")
			m.down = nil
			check.OK(t, f.Refresh(t.Context()))
			s.is(t, "a=2")
			check.OK(t, f.Renew(t.Context(), 0))
			check.Equal(t, "reads of the table", s.reloads, 2)
			m.put(t, "b", "1")
			check.OK(t, f.Refresh(t.Context()))
			s.is(t, "a=2", "b=1")
		})
	}
}

// TestFollowerRenews: callers share one read, and wait for a slow one for a second.
func TestFollowerRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, "a")
		f, _ := follow(t, m)
		<-time.After(time.Minute)
		before := m.reads
		var callers sync.WaitGroup
		m.trail = func(context.Context) error {
			<-time.After(time.Second / 2)
			return nil
		}
		for range 5 {
			callers.Go(func() { check.OK(t, f.Renew(t.Context(), time.Second)) })
		}
		callers.Wait()
		check.Equal(t, "reads for five", m.reads-before, 1)
		check.OK(t, f.Renew(t.Context(), 2*time.Second))
		check.Equal(t, "reads in all", m.reads-before, 1)

		m.trail = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		callers.Go(func() { _ = f.Refresh(ctx) })
		synctest.Wait()
		began := time.Now()
		check.ErrorIs(t, f.Renew(t.Context(), 0), store.ErrBusy, "renew behind a slow read")
		check.Equal(t, "waited", time.Since(began), time.Second)
		cancel()
		callers.Wait()
	})
}
