package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer/memstore"
)

// TestCountersInMemory runs the part of the suite that the syncer relies on, for the store of its tests.
func TestCountersInMemory(t *testing.T) {
	runCounters(t, func(*testing.T) fixture {
		s := &memstore.Store{}
		return fixture{s, func(now time.Time) { s.Expire(now) }}
	})
}

// fixture is an empty store of counters.
type fixture struct {
	exchange.Store
	sweep func(now time.Time) // removes the documents that expired before now
}

func runCounters(t *testing.T, fresh func(t *testing.T) fixture) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s fixture)
	}{
		{"as the model", counterModel},
		{"counts that make no sense", counterAbsurd},
		{"refused alone", counterRefusedAlone},
		{"a batch out of order", counterDisorder},
		{"names of any bytes", counterNames},
		{"many writers on hot keys", counterHot},
		{"many remove the same", counterRemovedOnce},
		{"of a client", countersOfClient},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

func counterID(username string) exchange.CounterID {
	return exchange.CounterID{ClientID: "shop", Username: username}
}

// frame is the frame that most of these tests count in; old the one before.
const (
	minute = 60_000 // ms, the length of both
	frame  = 1622211840
	old    = 1622211780
)

// frames makes a list of name, count, name, count…
func frames(names ...int64) (list []exchange.FrameCount) {
	for i := 0; i < len(names); i += 2 {
		list = append(list, exchange.FrameCount{Name: names[i], Count: names[i+1]})
	}
	return list
}

// adding returns an unversioned write that counts n, the first of a writer.
func adding(writer string, n int64) *exchange.Write {
	return &exchange.Write{NewEtag: 1 + rand.Int64N(1<<62), Writer: writer, Seq: 1, Frame: minute, Delta: frames(frame, n), Expire: epoch}
}

// onto bases a write on a document, or on none if r is nil.
func onto(r *exchange.Record, w *exchange.Write) *exchange.Write {
	if w.Versioned = true; r != nil {
		w.Version, w.Etag = r.Version, r.Etag
	}
	return w
}

// exchanged makes a valid exchange, which must return a result for each item.
func exchanged(t *testing.T, s exchange.Store, items ...exchange.Item) []exchange.Result {
	t.Helper()
	results, err := s.Exchange(t.Context(), items)
	check.OK(t, err, "exchange")
	if len(results) != len(items) {
		t.Fatalf("%d results of %d items", len(results), len(items))
	}
	return results
}

// apply sends a write that must be applied, and returns the document.
func apply(t *testing.T, s exchange.Store, id exchange.CounterID, w *exchange.Write) *exchange.Record {
	t.Helper()
	if r := exchanged(t, s, exchange.Item{ID: id, Write: w})[0]; r.Status != exchange.Applied {
		t.Fatalf("the write is %s (%v): %+v", r.Status, r.Err, w)
	}
	return load(t, s, id)
}

// load returns the document, which must be valid; nil if it does not exist.
func load(t *testing.T, s exchange.Store, id exchange.CounterID) *exchange.Record {
	t.Helper()
	r := look(t, s, id)
	if r != nil && (r.Problem != "" || r.Damaged) {
		t.Fatalf("asked for %+v, got %+v", id, r)
	}
	return r
}

// look returns the document, valid or not.
func look(t *testing.T, s exchange.Store, id exchange.CounterID) *exchange.Record {
	t.Helper()
	r := exchanged(t, s, exchange.Item{ID: id, Read: true})[0]
	if !r.Read || r.Record != nil && r.Record.ID != id {
		t.Fatalf("asked for %+v, got %+v", id, r)
	}
	return r.Record
}

func total(r *exchange.Record) (sum int64) {
	if r != nil {
		for _, f := range r.Frames {
			sum += f.Count
		}
	}
	return sum
}

// counterAbsurd: numbers of any size are stored and read, and a rewrite removes the counts.
func counterAbsurd(t *testing.T, s fixture) {
	t.Helper()
	w := adding("a", 1)
	w.NewEtag, w.Seq, w.Delta = -5, 1<<62, frames(7, 1, old, -1<<62, frame, 1<<62, 1<<62, 5)
	r := apply(t, s, counterID("u"), w)
	want := exchange.Record{ID: counterID("u"), Version: 1, Etag: w.NewEtag, Frame: minute, Writers: map[string]int64{"a": w.Seq}, Frames: w.Delta}
	equal(t, "read as stored", &want, r)
	w = onto(r, adding("me", 3))
	w.Rewrite, w.Delta = true, frames(old, 2, frame, 3)
	equal(t, "mended", frames(old, 2, frame, 3), apply(t, s, r.ID, w).Frames)
}

// counterRefusedAlone: a write that breaks the contract is rejected, and the others of its exchange
// are still applied.
func counterRefusedAlone(t *testing.T, s fixture) {
	t.Helper()
	for name, spoil := range map[string]func(w *exchange.Write){
		"a writer like a path":        func(w *exchange.Write) { w.Writer = "a.b" },
		"a removed writer like one":   func(w *exchange.Write) { w.Remove.Writers = []exchange.WriterSeq{{Writer: "$x", Seq: 1}} },
		"etag 0":                      func(w *exchange.Write) { w.NewEtag = 0 },
		"no sequence":                 func(w *exchange.Write) { w.Seq = 0 },
		"no length of frames":         func(w *exchange.Write) { w.Frame = 0 },
		"a frame twice":               func(w *exchange.Write) { w.Delta = frames(frame, 1, frame, 1) },
		"a frame counted and removed": func(w *exchange.Write) { w.Remove.Frames = frames(frame, 1) },
		"an unversioned rewrite":      func(w *exchange.Write) { w.Rewrite = true },
		"a rewrite that removes":      func(w *exchange.Write) { onto(nil, w).Rewrite, w.Remove.Frames = true, frames(old, 1) },
	} {
		items := make([]exchange.Item, 3)
		for i, user := range []string{"1", "2", "3"} {
			items[i] = exchange.Item{ID: counterID(name + user), Write: adding("me", 1), Read: true}
		}
		spoil(items[1].Write)
		results := exchanged(t, s, items...)
		for i, want := range []exchange.Status{exchange.Applied, exchange.Rejected, exchange.Applied} {
			if r := load(t, s, items[i].ID); results[i].Status != want || !results[i].Read || (r != nil) != (want == exchange.Applied) {
				t.Errorf("%s: item %d is %+v, want %s, and left %+v", name, i, results[i], want, r)
			}
		}
		if results[1].Err == nil || results[1].Record != nil {
			t.Errorf("%s: the rejected write: %+v", name, results[1])
		}
	}
}

// counterDisorder: an exchange that breaks the contract has no effect at all, and neither has one
// of nothing.
func counterDisorder(t *testing.T, s fixture) {
	t.Helper()
	item := func(user string) exchange.Item {
		return exchange.Item{ID: counterID(user), Write: adding("me", 1), Read: true}
	}
	many := make([]exchange.Item, exchange.MaxBatch+1)
	for i := range many {
		many[i] = item(fmt.Sprintf("%06d", i))
	}
	for name, items := range map[string][]exchange.Item{
		"descending": {item("b"), item("a")}, "one twice": {item("a"), item("a")}, "too many": many,
	} {
		if results, err := s.Exchange(t.Context(), items); err == nil || results != nil {
			t.Errorf("%s: %d results, %v", name, len(results), err)
		}
		if r := load(t, s, items[0].ID); r != nil {
			t.Errorf("%s: has made %+v", name, r)
		}
	}
	exchanged(t, s)
	equal(t, "an item without a wish", []exchange.Result{{}}, exchanged(t, s, exchange.Item{ID: counterID("u")}))
	equal(t, "nothing", (*exchange.Record)(nil), load(t, s, counterID("u")))
}

// strangeNames are close to each other, or have a meaning of their own in a database.
var strangeNames = []string{
	"", "a", "A", "ab", "a\x00", " a", ".", "a.b", "$where", "{\"$gt\":\"\"}", "\x7f", "名前", "\U0001F600", "\uFFFD",
	"a\xff", "a\xfe", "\xed\xa0\x80", strings.Repeat("x", 300), strings.Repeat("x", 40_000),
}

// strangeIDs have those names as the client, the username or the limit.
func strangeIDs() (ids []exchange.CounterID) {
	for _, a := range strangeNames {
		ids = append(ids, exchange.CounterID{ClientID: "c", Username: a},
			exchange.CounterID{ClientID: "c", Username: "a", Limit: "l" + a}, exchange.CounterID{ClientID: "c" + a, Username: "b"})
	}
	slices.SortFunc(ids, exchange.CompareIDs)
	return slices.Compact(ids)
}

// writeAll writes the number of each counter, from 1, and returns the results.
func writeAll(t *testing.T, s exchange.Store, ids []exchange.CounterID) []exchange.Result {
	t.Helper()
	items := make([]exchange.Item, len(ids))
	for i, id := range ids {
		items[i] = exchange.Item{ID: id, Write: adding("me", int64(i+1))}
	}
	return exchanged(t, s, items...)
}

// counterNames: a counter is stored under its own name or refused, and never stored under another
// name.
func counterNames(t *testing.T, s fixture) {
	t.Helper()
	ids := strangeIDs()
	reads := make([]exchange.Item, len(ids))
	for i, id := range ids {
		reads[i] = exchange.Item{ID: id, Read: true}
	}
	wrote, applied := writeAll(t, s, ids), 0
	for i, got := range exchanged(t, s, reads...) {
		switch {
		case !got.Read:
			t.Errorf("%.40q was not read", ids[i])
		case wrote[i].Status == exchange.Rejected && got.Record == nil:
		case wrote[i].Status == exchange.Applied && got.Record != nil && got.Record.ID == ids[i] && total(got.Record) == int64(i+1):
			applied++
		default:
			t.Errorf("%.40q: the write is %s (%v), and was read as %.80v", ids[i], wrote[i].Status, wrote[i].Err, got.Record)
		}
	}
	if want := 3 * (len(strangeNames) - 4); applied < want {
		t.Errorf("%d of %d names were taken, want %d", applied, len(ids), want)
	}
}

// byClient is an [exchange.Store] that lets operators read and erase counters. The store in memory does not.
type byClient interface {
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]exchange.Record, error)
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

// countersOfClient: exactly the counters of a client, or of one of its users, are listed and erased.
func countersOfClient(t *testing.T, s fixture) {
	t.Helper()
	b, ok := s.Store.(byClient)
	if !ok {
		return
	}
	ids := strangeIDs()
	for user := range 300 { // more than one step of a deletion
		ids = append(ids, exchange.CounterID{ClientID: "many", Username: fmt.Sprintf("%03d", user)})
	}
	of := func(clientID string, username *string, limit int) (found []exchange.CounterID) {
		t.Helper()
		records, err := b.CountersOf(t.Context(), clientID, username, limit)
		check.OK(t, err, "counters")
		for _, r := range records {
			if total(&r) != int64(slices.Index(ids, r.ID)+1) || r.Version != 1 || r.Frame != minute || r.Problem != "" {
				t.Errorf("a wrong counter: %+v", r)
			}
			found = append(found, r.ID)
		}
		slices.SortFunc(found, exchange.CompareIDs)
		return found
	}
	results, n := writeAll(t, s, ids), -1
	kept := slices.DeleteFunc(slices.Clone(ids), func(exchange.CounterID) bool { n++; return results[n].Status != exchange.Applied })
	equal(t, "at most two", 2, len(of("c", nil, 2)))
	equal(t, "at most one of a user", 1, len(of("c", new("a"), 1)))
	compare := func(clientID string, username *string) {
		want := slices.DeleteFunc(slices.Clone(kept), func(id exchange.CounterID) bool {
			return id.ClientID != clientID || username != nil && id.Username != *username
		})
		equal(t, fmt.Sprintf("counters of %.20q", clientID), want, of(clientID, username, 1000))
		if len(want) == 1 || len(want) > 290 {
			check.OK(t, b.EraseCounters(t.Context(), clientID, username), "erase")
			kept = slices.DeleteFunc(kept, func(id exchange.CounterID) bool { return slices.Contains(want, id) })
		}
	}
	for _, name := range strangeNames {
		compare("c", &name)
	}
	for _, name := range append(strangeNames, "many") {
		compare("c"+name, nil)
		compare(name, nil)
	}
	check.OK(t, b.EraseCounters(t.Context(), "c", nil), "erase the rest")
	for _, id := range ids {
		if exists := look(t, s, id) != nil; exists != (slices.Contains(kept, id) && id.ClientID != "c") {
			t.Errorf("%.40q exists: %v", id, exists)
		}
	}
}

// counterHot: many instances count in the same few documents, each as the syncer does: first based
// on the document it has read and, after three conflicts, unversioned.
func counterHot(t *testing.T, s fixture) {
	t.Helper()
	const instances, keys, rounds = 24, 4, 10
	errs := make([]error, instances)
	together(instances, func(i int) {
		w := hotWriter{store: s, me: fmt.Sprintf("instance%d", i), known: map[exchange.CounterID]*exchange.Record{}}
		for range rounds {
			for k := range keys {
				errs[i] = errors.Join(errs[i], w.count(t.Context(), counterID(fmt.Sprintf("hot %d", k))))
			}
		}
	})
	check.OK(t, errors.Join(errs...), "count")
	for k := range keys {
		r := load(t, s, counterID(fmt.Sprintf("hot %d", k)))
		if total(r) != instances*rounds || r.Version != instances*rounds || len(r.Writers) != instances {
			t.Errorf("the count is %d at version %d with %d writers, want %d", total(r), r.Version, len(r.Writers), instances*rounds)
		}
	}
}

// hotWriter is one instance.
type hotWriter struct {
	store exchange.Store
	me    string
	seq   int64
	known map[exchange.CounterID]*exchange.Record // nil: no document
}

// count counts one request exactly once, with one exchange per attempt. Each write of this test adds
// one and raises the version by one, so each document that is read has as many counts.
func (h *hotWriter) count(ctx context.Context, id exchange.CounterID) error {
	h.seq++
	for tries := range 1000 {
		w := adding(h.me, 1)
		if w.Seq = h.seq; tries < 3 {
			onto(h.known[id], w)
		}
		results, err := h.store.Exchange(ctx, []exchange.Item{{ID: id, Write: w, Read: true}})
		if err != nil {
			return err
		}
		r := results[0]
		if r.Status == exchange.Rejected || r.Record != nil && (total(r.Record) != r.Record.Version || r.Record.Writers[h.me] > h.seq) {
			return fmt.Errorf("%+v is %s: %w, and the document is %+v", w, r.Status, r.Err, r.Record)
		}
		h.known[id] = r.Record
		if r.Status == exchange.Applied || r.Record != nil && r.Record.Writers[h.me] >= h.seq {
			return nil
		}
	}
	return fmt.Errorf("%s is never applied", h.me)
}

// counterRemovedOnce: of many writes that remove the same frame and writer at the same time, one
// succeeds. For the others the frame and writer no longer exist.
func counterRemovedOnce(t *testing.T, s fixture) {
	t.Helper()
	const instances = 16
	id := counterID("u")
	apply(t, s, id, adding("a", 5))
	statuses := make([]exchange.Status, instances)
	together(instances, func(i int) {
		w := adding(fmt.Sprintf("me%d", i), 1)
		w.Delta, w.Remove = frames(frame+60, 1), exchange.Removal{Frames: frames(frame, 5), Writers: []exchange.WriterSeq{{Writer: "a", Seq: 1}}}
		if results, err := s.Exchange(t.Context(), []exchange.Item{{ID: id, Write: w}}); err == nil {
			statuses[i] = results[0].Status
		}
	})
	slices.Sort(statuses)
	equal(t, "statuses", append([]exchange.Status{exchange.Applied}, slices.Repeat([]exchange.Status{exchange.Conflict}, instances-1)...), statuses)
	if r := load(t, s, id); total(r) != 1 || r.Version != 2 || len(r.Writers) != 1 {
		t.Errorf("the document is %+v", r)
	}
}
