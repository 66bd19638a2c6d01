package storetest

import (
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/synctable"
)

// SyncBackend is the part of a [Backend] that shares counts. Its Sweep removes expired counters.
type SyncBackend interface {
	syncer.Store
	store.Sweeper
}

// SyncTarget is a backend under test, limited to the methods that the syncer uses.
type SyncTarget struct {
	// Fresh opens an empty backend that is closed when the test ends.
	Fresh func(t *testing.T) SyncBackend
	// Put stores a document unchanged, as if another program had written it.
	Put func(t *testing.T, b SyncBackend, r syncer.Record, expire time.Time)
}

// RunSync runs the groups of the suite for counters.
func RunSync(t *testing.T, target SyncTarget) {
	t.Helper()
	t.Run("Counters", func(t *testing.T) { testCounters(t, target) })
	t.Run("AllegrosTable", func(t *testing.T) { synctable.Run(t, target.Fresh(t)) })
	if _, ok := target.Fresh(t).(eraser); ok { // the store in memory is not an eraser
		t.Run("CountersOf", func(t *testing.T) { testCountersOf(t, target.Fresh(t).(eraser)) })
		t.Run("EraseCounters", func(t *testing.T) { testEraseCounters(t, target.Fresh(t).(eraser)) })
	}
}

// fixture is a fresh backend of a target.
type fixture struct {
	SyncBackend
	put func(t *testing.T, r syncer.Record)
}

func (target SyncTarget) fresh(t *testing.T) fixture {
	t.Helper()
	b := target.Fresh(t)
	put := func(t *testing.T, r syncer.Record) {
		t.Helper()
		target.Put(t, b, r, Epoch)
	}
	return fixture{b, put}
}

func testCounters(t *testing.T, target SyncTarget) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s fixture)
	}{
		{"conditions", counterConditions},
		{"effects", counterEffects},
		{"expire is raised, never lowered", counterExpires},
		{"pruned is raised, never lowered, and refuses", counterPruned},
		{"counts that make no sense", counterAbsurd},
		{"too many frames, and a rewrite", counterTooManyFrames},
		{"too many writers", counterTooManyWriters},
		{"the same sequence again", counterResent},
		{"late, after it was sent again", counterLate},
		{"based on a document that is gone", counterGone},
		{"gone and created anew by another", counterRecreated},
		{"read and written at once", counterReadAndWritten},
		{"read while others write", counterReadWhileWritten},
		{"only what is asked for", counterOnlyWhatIsAsked},
		{"results stand at their index", counterIndexes},
		{"refused alone", counterRefusedAlone},
		{"a batch out of order", counterDisorder},
		{"names of any bytes", counterNames},
		{"nothing to do", counterNothing},
		{"the clock", counterClock},
		{"many writers on hot keys", counterHot},
		{"many remove the same", counterRemovedOnce},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, target.fresh(t)) })
	}
}

func counterID(username string) ratelimit.CounterID {
	return ratelimit.CounterID{ClientID: "shop", Username: username}
}

// frame is the frame that most of these tests count in; old the one before.
const (
	minute = 60_000 // ms, the length of both
	frame  = 1622211840
	old    = 1622211780
)

// frames makes a list of name, count, name, count…
func frames(names ...int64) (list []ratelimit.FrameCount) {
	for i := 0; i < len(names); i += 2 {
		list = append(list, ratelimit.FrameCount{Name: names[i], Count: names[i+1]})
	}
	return list
}

// adding returns an unversioned write that counts n, the first of a writer.
func adding(writer string, n int64) *syncer.Write {
	return &syncer.Write{NewEtag: 11, Writer: writer, Seq: 1, Frame: minute, Delta: frames(frame, n), Expire: Epoch}
}

// onto bases a write on the document as r has it, nil for none, under the
// sequence after the version.
func onto(r *syncer.Record, w *syncer.Write) *syncer.Write {
	w.Versioned = true
	if r != nil {
		w.Version, w.Etag, w.NewEtag, w.Seq = r.Version, r.Etag, r.Etag+1, r.Version+1
	}
	return w
}

// unversioned returns the same write, to be sent again after an unknown outcome.
func unversioned(w *syncer.Write) *syncer.Write {
	again := *w
	again.Versioned, again.Version, again.Etag = false, 0, 0
	again.NewEtag += 1000
	return &again
}

// exchange makes a valid exchange, which must return a result for each item.
func exchange(t *testing.T, b syncer.Store, items ...syncer.Item) []syncer.Result {
	t.Helper()
	results, err := b.Exchange(t.Context(), items)
	succeed(t, "exchange", err)
	if len(results) != len(items) {
		t.Fatalf("%d results of %d items", len(results), len(items))
	}
	return results
}

// attempt sends a write, which must have the wanted outcome, and returns the document.
func attempt(t *testing.T, b syncer.Store, id ratelimit.CounterID, w *syncer.Write, want syncer.Status) *syncer.Record {
	t.Helper()
	if r := exchange(t, b, syncer.Item{ID: id, Write: w})[0]; r.Status != want {
		t.Fatalf("the write is %s (%v), want %s: %+v", r.Status, r.Err, want, w)
	}
	return load(t, b, id)
}

// apply sends a write that must be applied.
func apply(t *testing.T, b syncer.Store, id ratelimit.CounterID, w *syncer.Write) *syncer.Record {
	t.Helper()
	return attempt(t, b, id, w, syncer.Applied)
}

// load returns the document, which must be valid; nil if it does not exist.
func load(t *testing.T, b syncer.Store, id ratelimit.CounterID) *syncer.Record {
	t.Helper()
	r := look(t, b, id)
	if r != nil && (r.Problem != "" || r.Damaged) {
		t.Fatalf("asked for %+v, got %+v", id, r)
	}
	return r
}

// look returns the document, valid or not.
func look(t *testing.T, b syncer.Store, id ratelimit.CounterID) *syncer.Record {
	t.Helper()
	r := exchange(t, b, syncer.Item{ID: id, Read: true})[0]
	if !r.Read || r.Record != nil && r.Record.ID != id {
		t.Fatalf("asked for %+v, got %+v", id, r)
	}
	return r.Record
}

func total(r *syncer.Record) (sum int64) {
	if r != nil {
		for _, f := range r.Frames {
			sum += f.Count
		}
	}
	return sum
}

func counterNothing(t *testing.T, s fixture) {
	t.Helper()
	exchange(t, s)
	if r := exchange(t, s, syncer.Item{ID: counterID("u")})[0]; r.Read || r.Record != nil || r.Err != nil {
		t.Errorf("an item without a wish got %+v", r)
	}
	if r := load(t, s, counterID("u")); r != nil {
		t.Errorf("nothing is %+v", r)
	}
}

func counterClock(t *testing.T, s fixture) {
	t.Helper()
	before := time.Now()
	got, err := s.Now(t.Context())
	succeed(t, "now", err)
	if d := got.Sub(before); d < -time.Hour || d > time.Hour {
		t.Errorf("the store's clock is %s away from ours", d)
	}
}
