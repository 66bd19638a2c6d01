package memstore_test

import (
	"context"
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

// roster is an implementation of heartbeats.
type roster interface {
	syncer.Instances
	Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error)
}

// fixture is a roster without heartbeats. putAhead stores a heartbeat that is ahead of the clock of
// the store.
type fixture struct {
	roster
	putAhead func(id string, ahead time.Duration)
}

// inMemory returns the implementation in memory.
func inMemory(*testing.T) fixture {
	s := &memstore.Store{}
	return fixture{s, func(id string, ahead time.Duration) {
		s.PutInstance(syncer.Instance{ID: id, Beaten: time.Now().Add(ahead)})
	}}
}

// aheadOf is a store that dates some of its records wrongly.
type aheadOf struct {
	store.Backend
	ahead map[string]time.Duration
}

func (b *aheadOf) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	return b.Backend.List(ctx, t, q, func(r store.Record) error {
		r.Changed = r.Changed.Add(b.ahead[r.Key])
		return each(r)
	})
}

// inTables returns the implementation in tables. Each call comes from a process of its own.
func inTables(t *testing.T) fixture {
	t.Helper()
	b := &aheadOf{testworld.OpenStore(t, filepath.Join(t.TempDir(), "data.db")), map[string]time.Duration{}}
	return fixture{processes{syncer.NewHeartbeats(b), b}, func(id string, ahead time.Duration) {
		b.ahead[id] = ahead
		_, _, err := syncer.NewHeartbeats(b).Beat(t.Context(), syncer.Instance{ID: id}, 1e6*time.Hour)
		check.OK(t, err)
	}}
}

// processes stores every heartbeat from another process.
type processes struct {
	*syncer.Heartbeats
	data store.Backend
}

func (p processes) Beat(ctx context.Context, self syncer.Instance, ttl time.Duration) ([]syncer.Instance, string, error) {
	return syncer.NewHeartbeats(p.data).Beat(ctx, self, ttl)
}

// TestInstances: the implementations in memory and in tables behave alike.
func TestInstances(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testInstances(t, inMemory) })
	t.Run("tables", func(t *testing.T) { testInstances(t, inTables) })
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

func testInstances(t *testing.T, fresh func(*testing.T) fixture) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b fixture)
	}{
		{"a heartbeat, every field", instanceBeats},
		{"the nonce of the record before", instanceNonces},
		{"all that are alive, in order", instancesInOrder},
		{"silent for too long", instancesSilent},
		{"last seen alive", instancesLastSeen},
		{"beaten in the future", instancesAhead},
		{"reports", instanceReports},
		{"many at once", instancesTogether},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

func beat(t *testing.T, b syncer.Instances, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string) {
	t.Helper()
	alive, previous, err := b.Beat(t.Context(), self, ttl)
	check.OK(t, err)
	return alive, previous
}

// epoch is later than any test runs, so that nothing expires.
var epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func reports(t *testing.T, b roster, ttl time.Duration) []syncer.Instance {
	t.Helper()
	list, err := b.Reports(t.Context(), ttl)
	check.OK(t, err)
	return list
}

func ids(list []syncer.Instance) (s string) {
	for _, i := range list {
		s += i.ID + " "
	}
	return s
}

func instanceBeats(t *testing.T, b fixture) {
	t.Helper()
	self := syncer.Instance{ID: "a", Beaten: epoch.Add(time.Hour), Time: epoch, Nonce: "n1", Report: []byte(`{"report":1}`)}
	alive, _ := beat(t, b, self, time.Hour)
	if len(alive) != 1 || time.Since(alive[0].Beaten).Abs() > time.Hour {
		t.Fatalf("alive are %+v", alive)
	}
	want := syncer.Instance{ID: "a", Beaten: alive[0].Beaten, Time: epoch, Nonce: "n1"}
	check.Equal(t, "the only instance, without its report", alive, []syncer.Instance{want})
	again := syncer.Instance{ID: "a", Time: epoch.Add(time.Second), Nonce: "n2"}
	alive, _ = beat(t, b, again, time.Hour)
	if len(alive) != 1 || alive[0].Beaten.Before(want.Beaten) || alive[0].Nonce != "n2" || !alive[0].Time.Equal(again.Time) {
		t.Errorf("the next heartbeat is %+v", alive)
	}
}

// instanceNonces: of two processes with one ID, each gets the nonce of the other.
func instanceNonces(t *testing.T, b fixture) {
	t.Helper()
	for _, step := range []struct{ id, nonce, previous string }{
		{"a", "a1", ""}, {"b", "b1", ""}, {"a", "a2", "a1"}, {"a", "a2", "a2"}, {"b", "b2", "b1"}, {"a", "a3", "a2"},
	} {
		if _, previous := beat(t, b, syncer.Instance{ID: step.id, Nonce: step.nonce}, time.Hour); previous != step.previous {
			t.Errorf("before %s it was %q, want %q", step.nonce, previous, step.previous)
		}
	}
	check.OK(t, b.Leave(t.Context(), "a"))
	if _, previous := beat(t, b, syncer.Instance{ID: "a", Nonce: "a4"}, time.Hour); previous != "" {
		t.Errorf("after it left the nonce is %q", previous)
	}
}

func instancesInOrder(t *testing.T, b fixture) {
	t.Helper()
	for _, id := range []string{"c", "a", "b0", "b", "10"} {
		beat(t, b, syncer.Instance{ID: id}, time.Hour)
	}
	alive, _ := beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
	check.Equal(t, "alive", ids(alive), "10 a b b0 c ")
	check.OK(t, b.Leave(t.Context(), "b0"))
	check.OK(t, b.Leave(t.Context(), "b0"))
	check.OK(t, b.Leave(t.Context(), "x"))
	alive, _ = beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
	check.Equal(t, "alive after one left", ids(alive), "10 a b c ")
	check.Equal(t, "reports after one left", ids(reports(t, b, time.Hour)), "10 a b c ")
}

// instancesSilent: an instance without a heartbeat for ttl is left out, and is alive again after
// its next heartbeat.
func instancesSilent(t *testing.T, b fixture) {
	t.Helper()
	const short = 5 * time.Millisecond
	beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	becomes(t, "alive", "b ", func() string { // until a has been silent for that long
		alive, _ := beat(t, b, syncer.Instance{ID: "b"}, short)
		return ids(alive)
	})
	becomes(t, "reports", "", func() string { return ids(reports(t, b, short)) }) // the same for b
	beat(t, b, syncer.Instance{ID: "b"}, short)
	alive, _ := beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	check.Equal(t, "alive again", ids(alive), "a b ")
}

// instancesLastSeen: Alive returns the instances that were alive when the newest heartbeat was
// stored, however long ago.
func instancesLastSeen(t *testing.T, b fixture) {
	t.Helper()
	const short = 5 * time.Millisecond
	last := func(ttl time.Duration) []syncer.Instance {
		list, err := b.Alive(t.Context(), ttl)
		check.OK(t, err)
		return list
	}
	check.Equal(t, "of no instance", ids(last(time.Hour)), "")
	beat(t, b, syncer.Instance{ID: "a", Report: []byte(`{}`)}, time.Hour)
	alive, _ := beat(t, b, syncer.Instance{ID: "b", Time: epoch, Nonce: "n"}, time.Hour)
	check.Equal(t, "the records of the heartbeats", last(time.Hour), alive)
	becomes(t, "after a has been silent", "b ", func() string {
		beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
		return ids(last(short))
	})
	becomes(t, "reports", "", func() string { return ids(reports(t, b, short)) }) // b is silent too
	check.Equal(t, "the newest is always among them", ids(last(short)), "b ")
}

// instancesAhead: a heartbeat further ahead than ttl comes from a clock that was wrong, and its
// instance does not count as alive.
func instancesAhead(t *testing.T, b fixture) {
	t.Helper()
	for _, ahead := range []time.Duration{2 * time.Hour, 1000 * time.Hour} {
		b.putAhead("ahead "+ahead.String(), ahead)
	}
	last := func() string {
		list, err := b.Alive(t.Context(), time.Hour)
		check.OK(t, err)
		return ids(list)
	}
	check.Equal(t, "last seen", last(), "")
	beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
	alive, _ := beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	check.Equal(t, "alive", ids(alive), "a b ")
	check.Equal(t, "last seen", last(), "a b ")
	check.Equal(t, "reports", ids(reports(t, b, time.Hour)), "a b ")
	b.putAhead("c", time.Minute)
	alive, _ = beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	check.Equal(t, "alive, with one a little ahead", ids(alive), "a b c ")
}

// becomes calls ask until it returns what is wanted, for at most ten seconds.
func becomes(t *testing.T, what, want string, ask func() string) {
	t.Helper()
	got := ask()
	for began := time.Now(); got != want && time.Since(began) < 10*time.Second; {
		got = ask()
	}
	check.Equal(t, what, got, want)
}

func instanceReports(t *testing.T, b fixture) {
	t.Helper()
	check.Equal(t, "of no instance", len(reports(t, b, time.Hour)), 0)
	odd := []byte(`{"a.b":1,"$x":[]}`)
	beat(t, b, syncer.Instance{ID: "b", Nonce: "n", Time: epoch, Report: odd}, time.Hour)
	beat(t, b, syncer.Instance{ID: "a", Report: []byte(`{"n":1}`)}, time.Hour)
	beat(t, b, syncer.Instance{ID: "a", Time: epoch, Report: []byte(`{"n":2}`)}, time.Hour)
	alive, _ := beat(t, b, syncer.Instance{ID: "c"}, time.Hour)
	got := reports(t, b, time.Hour)
	if len(got) != 3 || len(alive) != 3 {
		t.Fatalf("reports are %+v", got)
	}
	for i, want := range [][]byte{[]byte(`{"n":2}`), odd, nil} {
		check.Equal(t, "report", got[i].Report, want)
		got[i].Report = nil
	}
	check.Equal(t, "the same records as at the heartbeat", got, alive)
}

func instancesTogether(t *testing.T, b fixture) {
	t.Helper()
	const n = 12
	errs, lists := make([]error, n), make([][]syncer.Instance, n)
	names := []string{"a", "b", "c", "d"} // three heartbeats of each at once
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			lists[i], _, errs[i] = b.Beat(t.Context(), syncer.Instance{ID: names[i%len(names)], Nonce: "n"}, time.Hour)
		})
	}
	group.Wait()
	for i := range n {
		check.OK(t, errs[i])
		if !slices.ContainsFunc(lists[i], func(a syncer.Instance) bool { return a.ID == names[i%len(names)] }) {
			t.Errorf("%s does not see itself: %s", names[i%len(names)], ids(lists[i]))
		}
	}
	alive, previous := beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	if ids(alive) != "a b c d " || previous != "n" {
		t.Errorf("alive are %s, and the nonce before was %q", ids(alive), previous)
	}
}
