package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterResent: the reply was lost, so the writer sends the same sequence and delta again until
// its outcome is known. The write counts once.
func counterResent(t *testing.T, s fixture) {
	t.Helper()
	id := counterID("u")
	w := onto(nil, adding("me", 3))
	r := apply(t, s, id, w)
	for i := range int64(3) {
		again := unversioned(w)
		again.NewEtag += i
		equal(t, "document", r, attempt(t, s, id, again, syncer.Conflict))
	}
}

// counterLate: the first attempt was delayed and arrives after the second one was applied.
func counterLate(t *testing.T, s fixture) {
	t.Helper()
	id := counterID("u")
	base := apply(t, s, id, adding("other", 1))
	w := onto(base, adding("me", 2))
	r := apply(t, s, id, unversioned(w))
	equal(t, "based on a document", r, attempt(t, s, id, w, syncer.Conflict))
	fresh := counterID("fresh")
	w = onto(nil, adding("me", 2))
	r = apply(t, s, fresh, unversioned(w))
	equal(t, "based on none", r, attempt(t, s, fresh, w, syncer.Conflict))
}

// counterGone: the document expired between read and write. The write may be refused, or create a
// document with an unknown outcome. Sent again, it has counted once.
func counterGone(t *testing.T, s fixture) {
	t.Helper()
	id := counterID("u")
	for _, test := range []struct {
		name   string
		change func(w *syncer.Write)
	}{
		{"counting", func(*syncer.Write) {}},
		{"removing too", func(w *syncer.Write) {
			w.Remove = syncer.Removal{Frames: frames(old, 1), Writers: []syncer.WriterSeq{{Writer: "x", Seq: 1}}}
		}},
		{"rewriting", func(w *syncer.Write) { w.Rewrite = true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := onto(apply(t, s, id, adding("me", 1)), adding("me", 5))
			test.change(w)
			sweep(t, s, Epoch.Add(time.Second), 1)
			if got := exchange(t, s, syncer.Item{ID: id, Write: w})[0].Status; got != syncer.Conflict && got != syncer.Unknown {
				t.Errorf("the first attempt is %s", got)
			}
			again := unversioned(w)
			again.Rewrite = false
			exchange(t, s, syncer.Item{ID: id, Write: again})
			r := load(t, s, id)
			equal(t, "writers", map[string]int64{"me": w.Seq}, r.Writers)
			equal(t, "frames", frames(frame, 5), r.Frames)
			sweep(t, s, Epoch.Add(time.Second), 1)
		})
	}
}

func counterRecreated(t *testing.T, s fixture) {
	t.Helper()
	id := counterID("u")
	w := onto(apply(t, s, id, adding("me", 1)), adding("me", 5))
	sweep(t, s, Epoch.Add(time.Second), 1)
	again := adding("other", 2)
	again.NewEtag = 4711
	r := apply(t, s, id, again)
	equal(t, "the old write", r, attempt(t, s, id, w, syncer.Conflict))
	if r := apply(t, s, id, unversioned(w)); total(r) != 7 {
		t.Errorf("the document is %+v", r)
	}
}

// counterIndexes mixes existing and missing documents, and writes and reads, in one exchange.
func counterIndexes(t *testing.T, s fixture) {
	t.Helper()
	const n = 240
	var there, items []syncer.Item
	for i := range n {
		id := counterID(fmt.Sprintf("user %04d", i))
		if i%3 == 0 {
			there = append(there, syncer.Item{ID: id, Write: adding("other", int64(i+1))})
		}
		it := syncer.Item{ID: id, Read: i%2 == 0}
		if i%4 < 3 {
			it.Write = onto(nil, adding("me", 2))
		}
		items = append(items, it)
	}
	exchange(t, s, there...)
	for i, got := range exchange(t, s, items...) {
		exists, writes, reads := i%3 == 0, items[i].Write != nil, items[i].Read
		want := syncer.Applied
		if exists {
			want = syncer.Conflict
		}
		if writes && got.Status != want {
			t.Errorf("write %d is %s, want %s", i, got.Status, want)
		}
		if got.Read != reads || got.Record != nil && got.Record.ID != items[i].ID {
			t.Errorf("item %d was read: %v, %+v", i, got.Read, got.Record)
		}
		if reads && exists && total(got.Record) != int64(i+1) {
			t.Errorf("item %d is %+v, want %d", i, got.Record, i+1)
		}
		if reads && !exists && !writes && got.Record != nil {
			t.Errorf("item %d, that is not there, is %+v", i, got.Record)
		}
	}
	for i, it := range items {
		if r := load(t, s, it.ID); it.Write != nil && i%3 != 0 && total(r) != 2 {
			t.Errorf("write %d left %+v", i, r)
		}
	}
}

// counterRefusedAlone: a write that breaks the contract is rejected, and the others of its exchange
// are still applied.
func counterRefusedAlone(t *testing.T, s fixture) {
	t.Helper()
	bad := map[string]func(w *syncer.Write){
		"a writer like a path":        func(w *syncer.Write) { w.Writer = "a.b" },
		"a removed writer like one":   func(w *syncer.Write) { w.Remove.Writers = []syncer.WriterSeq{{Writer: "$x", Seq: 1}} },
		"etag 0":                      func(w *syncer.Write) { w.NewEtag = 0 },
		"no sequence":                 func(w *syncer.Write) { w.Seq = 0 },
		"no length of frames":         func(w *syncer.Write) { w.Frame = 0 },
		"a frame twice":               func(w *syncer.Write) { w.Delta = frames(frame, 1, frame, 1) },
		"a frame counted and removed": func(w *syncer.Write) { w.Remove.Frames = frames(frame, 1) },
		"an unversioned rewrite":      func(w *syncer.Write) { w.Rewrite = true },
		"a rewrite that removes": func(w *syncer.Write) {
			onto(nil, w).Rewrite, w.Remove.Frames = true, frames(old, 1)
		},
	}
	for name, spoil := range bad {
		t.Run(name, func(t *testing.T) {
			items := make([]syncer.Item, 3)
			for i, user := range []string{"1", "2", "3"} {
				items[i] = syncer.Item{ID: counterID(name + user), Write: adding("me", 1), Read: true}
			}
			spoil(items[1].Write)
			results := exchange(t, s, items...)
			for i, want := range []syncer.Status{syncer.Applied, syncer.Rejected, syncer.Applied} {
				if results[i].Status != want || !results[i].Read {
					t.Errorf("item %d is %+v, want %s", i, results[i], want)
				}
			}
			if results[1].Err == nil || results[1].Record != nil || load(t, s, items[1].ID) != nil {
				t.Errorf("the rejected write: %+v", results[1])
			}
			if total(load(t, s, items[2].ID)) != 1 {
				t.Error("the write behind it is missing")
			}
		})
	}
}

// counterDisorder: an exchange that breaks the contract has no effect at all.
func counterDisorder(t *testing.T, s fixture) {
	t.Helper()
	item := func(user string) syncer.Item {
		return syncer.Item{ID: counterID(user), Write: adding("me", 1), Read: true}
	}
	many := make([]syncer.Item, syncer.MaxBatch+1)
	for i := range many {
		many[i] = item(fmt.Sprintf("%06d", i))
	}
	for name, items := range map[string][]syncer.Item{
		"descending": {item("b"), item("a")}, "one twice": {item("a"), item("a")}, "too many": many,
	} {
		if results, err := s.Exchange(t.Context(), items); err == nil || results != nil {
			t.Errorf("%s: %d results, %v", name, len(results), err)
		}
		if r := load(t, s, items[0].ID); r != nil {
			t.Errorf("%s: has made %+v", name, r)
		}
	}
}

// strangeNames are close to each other, or have a meaning of their own in a database.
var strangeNames = []string{
	"", "a", "A", "ab", "a\x00", " a", ".", "a.b", "$where", "{\"$gt\":\"\"}", "\x7f", "名前", "\U0001F600", "\uFFFD",
	"a\xff", "a\xfe", "\xed\xa0\x80", strings.Repeat("x", 300), strings.Repeat("x", 40_000),
}

// counterNames: a counter is stored under its own name or refused, and never stored under another
// name.
func counterNames(t *testing.T, s fixture) {
	t.Helper()
	var ids []ratelimit.CounterID
	for _, a := range strangeNames {
		ids = append(ids, ratelimit.CounterID{ClientID: "c", Username: a},
			ratelimit.CounterID{ClientID: "c", Username: "a", Limit: "l" + a}, ratelimit.CounterID{ClientID: "c" + a, Username: "b"})
	}
	slices.SortFunc(ids, syncer.CompareIDs)
	ids = slices.Compact(ids)
	writes, reads := make([]syncer.Item, len(ids)), make([]syncer.Item, len(ids))
	for i, id := range ids {
		writes[i] = syncer.Item{ID: id, Write: adding("me", int64(i+1))}
		reads[i] = syncer.Item{ID: id, Read: true}
	}
	wrote := exchange(t, s, writes...)
	applied := 0
	for i, got := range exchange(t, s, reads...) {
		switch {
		case !got.Read:
			t.Errorf("%.40q was not read", ids[i])
		case wrote[i].Status == syncer.Rejected && got.Record == nil:
		case wrote[i].Status == syncer.Applied && got.Record != nil && got.Record.ID == ids[i] && total(got.Record) == int64(i+1):
			applied++
		default:
			t.Errorf("%.40q: the write is %s (%v), and was read as %.80v", ids[i], wrote[i].Status, wrote[i].Err, got.Record)
		}
	}
	if want := 3 * (len(strangeNames) - 4); applied < want {
		t.Errorf("%d of %d names were taken, want %d", applied, len(ids), want)
	}
}

// counterOnlyWhatIsAsked: only requested documents are read, and a read changes nothing.
func counterOnlyWhatIsAsked(t *testing.T, s fixture) {
	t.Helper()
	r := apply(t, s, counterID("b"), adding("me", 3))
	results := exchange(t, s,
		syncer.Item{ID: counterID("a"), Write: adding("me", 1)},
		syncer.Item{ID: counterID("b"), Read: true},
		syncer.Item{ID: counterID("c"), Read: true},
		syncer.Item{ID: counterID("d"), Write: adding("me", 1), Read: true})
	if got := results[0]; got.Status != syncer.Applied || got.Read || got.Record != nil {
		t.Errorf("a write got %+v", got)
	}
	equal(t, "a read", syncer.Result{Read: true, Record: r}, results[1])
	equal(t, "a read of nothing", syncer.Result{Read: true}, results[2])
	if got := results[3]; got.Status != syncer.Applied || !got.Read {
		t.Errorf("both got %+v", got)
	}
	equal(t, "after the read", r, load(t, s, counterID("b")))
}
