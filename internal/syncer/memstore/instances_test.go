package memstore_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/memstore"
)

// both runs a test with the heartbeats in tables, and with those of the store in memory.
func both(t *testing.T, test func(t *testing.T, s syncer.Instances, now *time.Time)) {
	t.Helper()
	for name, open := range map[string]func(clock func() time.Time) syncer.Instances{
		"memory": func(clock func() time.Time) syncer.Instances { return &memstore.Store{Clock: clock} },
		"tables": func(clock func() time.Time) syncer.Instances {
			return syncer.NewHeartbeats(&tables{clock: clock, records: map[string]map[string]store.Record{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
			test(t, open(func() time.Time { return now }), &now)
		})
	}
}

// TestOneProcess: a process remembers the state of its own heartbeat, and detects another process
// with its ID.
func TestOneProcess(t *testing.T) {
	data := testworld.OpenStore(t, filepath.Join(t.TempDir(), "data.db"))
	one, other := syncer.NewHeartbeats(data), syncer.NewHeartbeats(data)
	for _, step := range []struct {
		h                   *syncer.Heartbeats
		id, nonce, previous string
	}{
		{one, "a", "1", ""}, {one, "a", "2", "1"}, {other, "a", "3", "2"}, {one, "a", "4", "3"}, {one, "b", "5", ""}, {one, "a", "6", "4"},
	} {
		_, previous, err := step.h.Beat(t.Context(), syncer.Instance{ID: step.id, Nonce: step.nonce}, time.Hour)
		check.OK(t, err)
		check.Equal(t, "before "+step.nonce, previous, step.previous)
	}
	check.OK(t, other.Leave(t.Context(), "a"))
	_, previous, err := one.Beat(t.Context(), syncer.Instance{ID: "a", Nonce: "7"}, time.Hour)
	check.OK(t, err)
	check.Equal(t, "after it has left", previous, "")
}

func ids(list []syncer.Instance) (s string) {
	for _, i := range list {
		s += i.ID + " "
	}
	return s
}

// TestInstances: who is alive after each heartbeat, by the clock of the store, which may jump; and who
// has a report in a table.
func TestInstances(t *testing.T) { both(t, testInstances) }

func testInstances(t *testing.T, s syncer.Instances, now *time.Time) {
	t.Helper()
	tables, hasReports := s.(*syncer.Heartbeats)
	for _, step := range []struct {
		jump           time.Duration
		beats, leaves  string
		alive, reports string
	}{
		{0, "b", "", "b ", "b "},
		{time.Second, "a", "", "a b ", "a b "},
		{58 * time.Second, "b0", "", "a b b0 ", "a b b0 "},
		{time.Second, "c", "b0", "a b0 c ", "a c "}, // b is silent for a minute
		{time.Minute, "", "", "", ""},
		{0, "b", "x", "b ", "b "},
		{-time.Hour, "a", "", "a ", "a "}, // a clock that was wrong has dated the others
		{time.Hour - time.Second, "c", "", "b c ", "b c "},
	} {
		*now = now.Add(step.jump)
		if step.beats != "" {
			alive, _, err := s.Beat(t.Context(), syncer.Instance{ID: step.beats}, time.Minute)
			check.OK(t, err)
			check.Equal(t, "alive at the heartbeat of "+step.beats, ids(alive), step.alive)
		}
		if step.leaves != "" {
			check.OK(t, s.Leave(t.Context(), step.leaves))
		}
		if hasReports {
			list, err := tables.Reports(t.Context(), time.Minute)
			check.OK(t, err)
			check.Equal(t, "reports after "+step.beats, ids(list), step.reports)
		}
	}
}

// TestHeartbeat: every field is kept, and only Reports returns reports.
func TestHeartbeat(t *testing.T) { both(t, testHeartbeat) }

func testHeartbeat(t *testing.T, s syncer.Instances, clock *time.Time) {
	t.Helper()
	now := *clock
	want := []syncer.Instance{
		{ID: "a", Beaten: now, Time: now.Add(time.Second), Nonce: "n2"}, {ID: "b", Beaten: now, Nonce: "n"}, {ID: "c", Beaten: now},
	}
	odd := []byte(`{"a.b":1,"$x":[]}`)
	var alive []syncer.Instance
	for _, self := range []syncer.Instance{
		{ID: "a", Time: now, Nonce: "n1", Report: []byte(`{"n":1}`)},
		{ID: "a", Time: now.Add(time.Second), Nonce: "n2", Report: []byte(`{"n":2}`)},
		{ID: "b", Nonce: "n", Report: odd},
		{ID: "c", Beaten: now.Add(time.Hour)},
	} {
		var err error
		alive, _, err = s.Beat(t.Context(), self, time.Hour)
		check.OK(t, err)
	}
	check.Equal(t, "alive", alive, want)
	if tables, ok := s.(*syncer.Heartbeats); ok {
		want[0].Report, want[1].Report = []byte(`{"n":2}`), odd
		list, err := tables.Reports(t.Context(), time.Hour)
		check.OK(t, err)
		check.Equal(t, "reports", list, want)
	}
}

// TestHeartbeatsTogether: concurrent heartbeats under few IDs all succeed, and see themselves.
func TestHeartbeatsTogether(t *testing.T) { both(t, testTogether) }

func testTogether(t *testing.T, s syncer.Instances, _ *time.Time) {
	t.Helper()
	names := []string{"a", "b", "c", "d"}
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			self := syncer.Instance{ID: names[i%len(names)], Nonce: "n"}
			alive, _, err := s.Beat(t.Context(), self, time.Hour)
			if err != nil || !slices.ContainsFunc(alive, func(a syncer.Instance) bool { return a.ID == self.ID }) {
				t.Errorf("%s does not see itself: %s, %v", self.ID, ids(alive), err)
			}
		})
	}
	group.Wait()
	alive, previous, err := s.Beat(t.Context(), syncer.Instance{ID: "a"}, time.Hour)
	check.OK(t, err)
	check.Equal(t, "alive, and the nonce before", ids(alive)+previous, "a b c d n")
}

// tables has the methods of [store.Backend] that heartbeats need.
type tables struct {
	store.Backend
	mu      sync.Mutex
	clock   func() time.Time
	records map[string]map[string]store.Record
}

// in calls do with the records of a table, unless ctx has ended.
func (b *tables) in(ctx context.Context, t store.Table, do func(records map[string]store.Record)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.records[t.Name] == nil {
		b.records[t.Name] = map[string]store.Record{}
	}
	if ctx.Err() == nil {
		do(b.records[t.Name])
	}
	return ctx.Err()
}

// Get implements [store.Backend].
func (b *tables) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	var found []store.Record
	err := b.in(ctx, t, func(records map[string]store.Record) {
		for _, key := range keys {
			if r, ok := records[key]; ok {
				found = append(found, r)
			}
		}
	})
	for i := 0; i < len(found) && err == nil; i++ {
		err = each(found[i])
	}
	return err
}

// List implements [store.Backend], without a query.
func (b *tables) List(ctx context.Context, t store.Table, _ store.Query, each func(store.Record) error) error {
	var keys []string
	err := b.in(ctx, t, func(records map[string]store.Record) { keys = slices.Sorted(maps.Keys(records)) })
	if err != nil {
		return err
	}
	return b.Get(ctx, t, each, keys...)
}

// Put implements [store.Backend].
func (b *tables) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	conflict := false
	r.Version, r.Nonce, r.Changed = seen.Version+1, store.NewNonce(), b.clock()
	err := b.in(ctx, t, func(records map[string]store.Record) {
		was := records[r.Key] // zero if it does not exist
		if conflict = was.Seen() != seen; !conflict {
			records[r.Key] = r
		}
	})
	if conflict {
		return store.Seen{}, store.ErrConflict
	}
	return r.Seen(), err
}

// Delete implements [store.Backend], in any state.
func (b *tables) Delete(ctx context.Context, t store.Table, _ *store.Seen, key string) error {
	return b.in(ctx, t, func(records map[string]store.Record) { delete(records, key) })
}

// Now implements [store.Backend].
func (b *tables) Now(ctx context.Context) (time.Time, error) { return b.clock(), ctx.Err() }
