package storetest

import (
	"slices"
	"testing"
	"time"

	"oauth-server/internal/syncer"
)

func testInstances(t *testing.T, target SyncTarget) {
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
		t.Run(test.name, func(t *testing.T) { test.run(t, target.fresh(t)) })
	}
}

func beat(t *testing.T, b syncer.Instances, self syncer.Instance, ttl time.Duration) (alive []syncer.Instance, previous string) {
	t.Helper()
	alive, previous, err := b.Beat(t.Context(), self, ttl)
	succeed(t, "beat", err)
	return alive, previous
}

func reports(t *testing.T, b SyncBackend, ttl time.Duration) []syncer.Instance {
	t.Helper()
	list, err := b.Reports(t.Context(), ttl)
	succeed(t, "reports", err)
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
	self := syncer.Instance{ID: "a", Beaten: Epoch.Add(time.Hour), Time: Epoch, Nonce: "n1", Report: []byte("report")}
	alive, _ := beat(t, b, self, time.Hour)
	if len(alive) != 1 || time.Since(alive[0].Beaten).Abs() > time.Hour {
		t.Fatalf("alive are %+v", alive)
	}
	want := syncer.Instance{ID: "a", Beaten: alive[0].Beaten, Time: Epoch, Nonce: "n1"}
	equal(t, "the only instance, without its report", []syncer.Instance{want}, alive)
	again := syncer.Instance{ID: "a", Time: Epoch.Add(time.Second), Nonce: "n2"}
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
	succeed(t, "leave", b.Leave(t.Context(), "a"))
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
	equal(t, "alive", "10 a b b0 c ", ids(alive))
	succeed(t, "leave", b.Leave(t.Context(), "b0"))
	succeed(t, "leave twice", b.Leave(t.Context(), "b0"))
	succeed(t, "leave without having been", b.Leave(t.Context(), "x"))
	alive, _ = beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
	equal(t, "alive after one left", "10 a b c ", ids(alive))
	equal(t, "reports after one left", "10 a b c ", ids(reports(t, b, time.Hour)))
}

// instancesSilent: one that does not beat for ttl is left out, and alive again
// when it beats.
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
	equal(t, "alive again", "a b ", ids(alive))
}

// instancesLastSeen: those alive when the newest heartbeat was stored, however long
// ago that was.
func instancesLastSeen(t *testing.T, b fixture) {
	t.Helper()
	const short = 5 * time.Millisecond
	last := func(ttl time.Duration) []syncer.Instance {
		list, err := b.Alive(t.Context(), ttl)
		succeed(t, "alive", err)
		return list
	}
	equal(t, "of no instance", "", ids(last(time.Hour)))
	beat(t, b, syncer.Instance{ID: "a", Report: []byte("a")}, time.Hour)
	alive, _ := beat(t, b, syncer.Instance{ID: "b", Time: Epoch, Nonce: "n"}, time.Hour)
	equal(t, "the records of the heartbeats", alive, last(time.Hour))
	becomes(t, "after a has been silent", "b ", func() string {
		beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
		return ids(last(short))
	})
	becomes(t, "reports", "", func() string { return ids(reports(t, b, short)) }) // b is silent too
	equal(t, "the newest is always among them", "b ", ids(last(short)))
}

// instancesAhead: a heartbeat that is further ahead than ttl, of a clock that was
// wrong, is of no live instance.
func instancesAhead(t *testing.T, b fixture) {
	t.Helper()
	for _, ahead := range []time.Duration{2 * time.Hour, 1000 * time.Hour} {
		b.putInstance(t, syncer.Instance{ID: "ahead " + ahead.String(), Beaten: time.Now().Add(ahead)})
	}
	last := func() string {
		list, err := b.Alive(t.Context(), time.Hour)
		succeed(t, "alive", err)
		return ids(list)
	}
	equal(t, "last seen", "", last())
	beat(t, b, syncer.Instance{ID: "b"}, time.Hour)
	alive, _ := beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	equal(t, "alive", "a b ", ids(alive))
	equal(t, "last seen", "a b ", last())
	equal(t, "reports", "a b ", ids(reports(t, b, time.Hour)))
	b.putInstance(t, syncer.Instance{ID: "c", Beaten: time.Now().Add(time.Minute)})
	alive, _ = beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	equal(t, "alive, with one a little ahead", "a b c ", ids(alive))
}

// becomes calls ask until it returns what is wanted, for at most ten seconds.
func becomes(t *testing.T, what, want string, ask func() string) {
	t.Helper()
	got := ask()
	for began := time.Now(); got != want && time.Since(began) < 10*time.Second; {
		got = ask()
	}
	equal(t, what, want, got)
}

func instanceReports(t *testing.T, b fixture) {
	t.Helper()
	equal(t, "of no instance", []syncer.Instance{}, reports(t, b, time.Hour))
	odd := []byte("{\"a.b\":1,\"$x\":[]}\x00\xff")
	beat(t, b, syncer.Instance{ID: "b", Nonce: "n", Time: Epoch, Report: odd}, time.Hour)
	beat(t, b, syncer.Instance{ID: "a", Report: []byte("first")}, time.Hour)
	beat(t, b, syncer.Instance{ID: "a", Report: []byte("second")}, time.Hour)
	alive, _ := beat(t, b, syncer.Instance{ID: "c"}, time.Hour)
	got := reports(t, b, time.Hour)
	if len(got) != 3 || len(alive) != 3 {
		t.Fatalf("reports are %+v", got)
	}
	for i, want := range [][]byte{[]byte("second"), odd, nil} {
		equal(t, "report", want, got[i].Report)
		got[i].Report = nil
	}
	equal(t, "the same records as at the heartbeat", alive, got)
}

func instancesTogether(t *testing.T, b fixture) {
	t.Helper()
	const n = 12
	errs, lists := make([]error, n), make([][]syncer.Instance, n)
	names := []string{"a", "b", "c", "d"} // of each, three at once
	together(n, func(i int) {
		lists[i], _, errs[i] = b.Beat(t.Context(), syncer.Instance{ID: names[i%len(names)], Nonce: "n"}, time.Hour)
	})
	for i := range n {
		succeed(t, "beat", errs[i])
		if !slices.ContainsFunc(lists[i], func(a syncer.Instance) bool { return a.ID == names[i%len(names)] }) {
			t.Errorf("%s does not see itself: %s", names[i%len(names)], ids(lists[i]))
		}
	}
	alive, previous := beat(t, b, syncer.Instance{ID: "a"}, time.Hour)
	if ids(alive) != "a b c d " || previous != "n" {
		t.Errorf("alive are %s, and the nonce before was %q", ids(alive), previous)
	}
}
