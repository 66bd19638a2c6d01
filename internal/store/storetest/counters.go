package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

func testCounters(t *testing.T, target Target) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b Backend)
	}{
		{"created and read, every field", counterCreated},
		{"names as strangers send them", counterNames},
		{"one write does all that it says", counterChanged},
		{"expire is raised, never lowered", counterExpires},
		{"a version or etag that has moved on", counterConflict},
		{"blind", counterBlind},
		{"the same sequence again", counterResent},
		{"late, after it was sent again", counterLate},
		{"based on a document that is gone", counterGone},
		{"gone and created anew by another", counterRecreated},
		{"outcomes stand at their index", counterIndexes},
		{"nothing to do", counterNothing},
		{"the clock", counterClock},
		{"many writers on hot keys", counterHot},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, target.fresh(t)) })
	}
}

func counterID(username string) ratelimit.CounterID {
	return ratelimit.CounterID{ClientID: "shop", Username: username}
}

// frame is the frame that most of these tests count in; old the one before.
const (
	frame = 1622211840
	old   = 1622211780
)

func frames(names ...int64) (list []ratelimit.FrameCount) {
	for i := 0; i < len(names); i += 2 {
		list = append(list, ratelimit.FrameCount{Name: names[i], Count: names[i+1]})
	}
	return list
}

// creating is the first write of a counter: it counts n.
func creating(id ratelimit.CounterID, n int64) syncer.Write {
	return syncer.Write{ID: id, NewEtag: 11, Seq: 1, Delta: frames(frame, n), Expire: Epoch}
}

// onto is the next write, based on the document as r has it.
func onto(r *syncer.Record, n int64) syncer.Write {
	return syncer.Write{
		ID: r.ID, Version: r.Version, Etag: r.Etag, NewEtag: r.Etag + 1, Seq: r.Version + 1,
		Delta: frames(frame, n), Expire: Epoch,
	}
}

func blind(w syncer.Write) syncer.Write {
	w.Blind, w.Version, w.Etag = true, 0, 0
	w.NewEtag += 1000
	return w
}

// applyAll applies the writes and returns their statuses.
func applyAll(t *testing.T, b Backend, instance string, writes ...syncer.Write) []syncer.Status {
	t.Helper()
	outcomes, err := b.Apply(t.Context(), instance, writes)
	succeed(t, "apply", err)
	if len(outcomes) != len(writes) {
		t.Fatalf("%d outcomes of %d writes", len(outcomes), len(writes))
	}
	statuses := make([]syncer.Status, len(outcomes))
	for i, o := range outcomes {
		statuses[i] = o.Status
	}
	return statuses
}

// apply applies one write, which must succeed, and returns the document.
func apply(t *testing.T, b Backend, instance string, w syncer.Write) *syncer.Record {
	t.Helper()
	applyTo(t, b, instance, w, syncer.Applied)
	return load(t, b, w.ID)
}

func applyTo(t *testing.T, b Backend, instance string, w syncer.Write, want syncer.Status) {
	t.Helper()
	if got := applyAll(t, b, instance, w)[0]; got != want {
		t.Fatalf("the write is %s, want %s: %+v", got, want, w)
	}
}

// load returns the document, nil if there is none.
func load(t *testing.T, b Backend, id ratelimit.CounterID) *syncer.Record {
	t.Helper()
	records, err := b.Load(t.Context(), []ratelimit.CounterID{id})
	succeed(t, "load", err)
	if len(records) == 0 {
		return nil
	}
	if len(records) > 1 || records[0].ID != id || records[0].Problem != "" {
		t.Fatalf("asked for %+v, got %+v", id, records)
	}
	return &records[0]
}

func total(r *syncer.Record) (sum int64) {
	if r != nil {
		for _, f := range r.Frames {
			sum += f.Count
		}
	}
	return sum
}

// sameRecord compares, whatever the order of the frames.
func sameRecord(t *testing.T, what string, want, got *syncer.Record) {
	t.Helper()
	if got != nil {
		slices.SortFunc(got.Frames, func(a, b ratelimit.FrameCount) int { return int(a.Name - b.Name) })
	}
	equal(t, what, want, got)
}

func counterCreated(t *testing.T, b Backend) {
	t.Helper()
	if r := load(t, b, counterID("u")); r != nil {
		t.Fatalf("an empty store has %+v", r)
	}
	w := syncer.Write{ID: counterID("u"), NewEtag: 1<<62 + 1, Seq: 1<<60 + 1, Delta: frames(old, 3, frame, 4), Expire: Epoch}
	got := apply(t, b, "me", w)
	sameRecord(t, "record", &syncer.Record{
		ID: w.ID, Version: 1, Etag: w.NewEtag, Writers: map[string]int64{"me": w.Seq}, Frames: frames(old, 3, frame, 4),
	}, got)
}

func counterNames(t *testing.T, b Backend) {
	t.Helper()
	ids := []ratelimit.CounterID{
		{ClientID: "a", Username: ""},
		{ClientID: "a", Username: "b"},
		{ClientID: "ab", Username: ""},
		{ClientID: "a", Username: "b", Limit: "per-second"},
		{ClientID: "a", Limit: "b"},
		{ClientID: "a.b", Username: "$where"},
		{ClientID: "$a", Username: "名前"},
		{ClientID: "a", Username: "b\x00"},
		{ClientID: "a", Username: "B"},
		{ClientID: "a", Username: " b"},
	}
	for i, id := range ids {
		applyTo(t, b, "me", creating(id, int64(i+1)), syncer.Applied)
	}
	records, err := b.Load(t.Context(), append(ids, counterID("not there")))
	succeed(t, "load", err)
	if len(records) != len(ids) {
		t.Errorf("%d of %d documents", len(records), len(ids))
	}
	for i := range records {
		at := slices.Index(ids, records[i].ID)
		if at < 0 || total(&records[i]) != int64(at+1) {
			t.Errorf("%+v was not written like that", records[i])
		}
	}
}

func counterChanged(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	first := creating(id, 5)
	first.Delta = frames(old-120, 1, old-60, 2, old, 3)
	apply(t, b, "a", first)
	r := apply(t, b, "b", onto(load(t, b, id), 4))
	w := syncer.Write{
		ID: id, Version: r.Version, Etag: r.Etag, NewEtag: 99, Seq: 50, Expire: Epoch,
		Delta: frames(old, 10, frame, 20), Dead: []int64{old - 120, old - 60, 7}, Silent: []string{"a", "nobody"},
	}
	sameRecord(t, "record", &syncer.Record{
		ID: id, Version: 3, Etag: 99, Writers: map[string]int64{"b": 2, "c": 50}, Frames: frames(old, 13, frame, 24),
	}, apply(t, b, "c", w))
}

func counterExpires(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	w := creating(id, 1)
	w.Expire = Epoch.Add(time.Hour)
	r := apply(t, b, "me", w)
	w = onto(r, 1)
	w.Expire = Epoch
	apply(t, b, "me", w)
	apply(t, b, "me", creating(counterID("other"), 1))
	sweep(t, b, Epoch.Add(time.Minute), 1)
	if load(t, b, id) == nil || load(t, b, counterID("other")) != nil {
		t.Error("the wrong one was swept, or expire was lowered")
	}
	w = onto(load(t, b, id), 1)
	w.Expire = Epoch.Add(2 * time.Hour)
	apply(t, b, "me", w)
	sweep(t, b, Epoch.Add(90*time.Minute), 0)
	sweep(t, b, Epoch.Add(3*time.Hour), 1)
	if r := load(t, b, id); r != nil {
		t.Errorf("it outlived its time: %+v", r)
	}
}

func counterConflict(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	first := apply(t, b, "a", creating(id, 1))
	second := apply(t, b, "b", onto(first, 2))
	wrongEtag, wrongVersion := onto(second, 8), onto(second, 8)
	wrongEtag.Etag++
	wrongVersion.Version--
	for name, w := range map[string]syncer.Write{
		"as if there were none": creating(id, 8), "from the first state": onto(first, 8),
		"right version, wrong etag": wrongEtag, "right etag, wrong version": wrongVersion,
	} {
		w.Seq, w.Silent, w.Dead = 100, []string{"b"}, []int64{frame + 1}
		if got := applyAll(t, b, "a", w)[0]; got != syncer.Conflict {
			t.Errorf("%s: %s", name, got)
		}
	}
	sameRecord(t, "a refused write changes nothing", second, load(t, b, id))
}

func counterBlind(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	w := blind(creating(id, 1))
	r := apply(t, b, "a", w)
	sameRecord(t, "created blindly", &syncer.Record{
		ID: id, Version: 1, Etag: w.NewEtag, Writers: map[string]int64{"a": 1}, Frames: frames(frame, 1),
	}, r)
	apply(t, b, "b", onto(r, 2))
	w.Seq, w.NewEtag, w.Delta = 5, 77, frames(frame, 4)
	r = apply(t, b, "a", w)
	sameRecord(t, "whatever version and etag are", &syncer.Record{
		ID: id, Version: 3, Etag: 77, Writers: map[string]int64{"a": 5, "b": 2}, Frames: frames(frame, 7),
	}, r)
	for _, seq := range []int64{5, 4} {
		w.Seq = seq
		applyTo(t, b, "a", w, syncer.Conflict)
	}
	sameRecord(t, "a sequence that is not ahead changes nothing", r, load(t, b, id))
	applyTo(t, b, "c", w, syncer.Applied)
}

// counterResent: the reply was lost, so the writer sends the same sequence and
// delta again until it is told; it counts once.
func counterResent(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	w := creating(id, 3)
	apply(t, b, "me", w)
	for i := range int64(3) {
		again := blind(w)
		again.NewEtag += i
		applyTo(t, b, "me", again, syncer.Conflict)
	}
	r := load(t, b, id)
	if total(r) != 3 || r.Writers["me"] < w.Seq {
		t.Errorf("the document is %+v", r)
	}
}

// counterLate: the first attempt was held up and arrives when the second has
// been applied, or the other way round.
func counterLate(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	base := apply(t, b, "other", creating(id, 1))
	w := onto(base, 2)
	apply(t, b, "me", blind(w))
	applyTo(t, b, "me", w, syncer.Conflict)
	if r := load(t, b, id); total(r) != 3 {
		t.Errorf("the document is %+v", r)
	}
	fresh := counterID("fresh")
	apply(t, b, "me", blind(creating(fresh, 2)))
	applyTo(t, b, "me", creating(fresh, 2), syncer.Conflict)
	if r := load(t, b, fresh); total(r) != 2 {
		t.Errorf("the document is %+v", r)
	}
}

// counterGone: the document expired between read and write. The write may be
// refused, or start a document whose outcome is unknown; sent again, it has
// counted once.
func counterGone(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	w := onto(apply(t, b, "me", creating(id, 1)), 5)
	sweep(t, b, Epoch.Add(time.Second), 1)
	if got := applyAll(t, b, "me", w)[0]; got != syncer.Conflict && got != syncer.Unknown {
		t.Errorf("the first attempt is %s", got)
	}
	applyAll(t, b, "me", blind(w))
	if r := load(t, b, id); total(r) != 5 || r.Writers["me"] != w.Seq {
		t.Errorf("the document is %+v", r)
	}
}

func counterRecreated(t *testing.T, b Backend) {
	t.Helper()
	id := counterID("u")
	w := onto(apply(t, b, "me", creating(id, 1)), 5)
	sweep(t, b, Epoch.Add(time.Second), 1)
	again := creating(id, 2)
	again.NewEtag = 4711
	apply(t, b, "other", again)
	applyTo(t, b, "me", w, syncer.Conflict)
	apply(t, b, "me", blind(w))
	if r := load(t, b, id); total(r) != 7 {
		t.Errorf("the document is %+v", r)
	}
}

func counterIndexes(t *testing.T, b Backend) {
	t.Helper()
	const n = 300
	id := func(i int) ratelimit.CounterID { return counterID(fmt.Sprintf("user %04d", i)) }
	var there []syncer.Write
	for i := 0; i < n; i += 3 {
		there = append(there, creating(id(i), 1))
	}
	applyAll(t, b, "other", there...)
	writes, ids := make([]syncer.Write, n), make([]ratelimit.CounterID, n)
	for i := range n {
		ids[i], writes[i] = id(i), creating(id(i), 2)
	}
	for i, got := range applyAll(t, b, "me", writes...) {
		want := syncer.Applied
		if i%3 == 0 {
			want = syncer.Conflict
		}
		if got != want {
			t.Errorf("write %d is %s, want %s", i, got, want)
		}
	}
	records, err := b.Load(t.Context(), ids)
	succeed(t, "load", err)
	var sum int64
	for i := range records {
		sum += total(&records[i])
	}
	if want := int64(n/3 + (n-n/3)*2); len(records) != n || sum != want {
		t.Errorf("%d documents count %d, want %d and %d", len(records), sum, n, want)
	}
}

func counterNothing(t *testing.T, b Backend) {
	t.Helper()
	applyAll(t, b, "me")
	records, err := b.Load(t.Context(), nil)
	succeed(t, "load nothing", err)
	if len(records) != 0 {
		t.Errorf("nothing is %+v", records)
	}
}

func counterClock(t *testing.T, b Backend) {
	t.Helper()
	before := time.Now()
	got, err := b.Now(t.Context())
	succeed(t, "now", err)
	if d := got.Sub(before); d < -time.Hour || d > time.Hour {
		t.Errorf("the store's clock is %s away from ours", d)
	}
}
