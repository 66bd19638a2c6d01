package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oauth-server/internal/store"
)

// trailNext: an entry of any but the next number is refused, and changes nothing.
func trailNext(s suite) {
	s = s.fresh().in(trailed)
	for newest := range int64(3) {
		for _, n := range []int64{-1, 0, newest - 1, newest, newest + 2, newest + 100} {
			_, err := s.Append(s.Context(), entry(n), writing("refused", n), deleting("kept"))
			failWith(s.T, fmt.Sprintf("append %d after %d", n, newest), store.ErrConflict, err)
		}
		s.haveHistory(1, newest)
		s.append(newest+1, writing("kept", newest+1))
		s.haveKeys("kept")
	}
}

// trailEffects: the writes of an entry take effect together, and date their records by its number.
func trailEffects(s suite) {
	s = s.fresh().in(trailed)
	many, all := []store.Write{}, map[string]int64{}
	for i := range 500 {
		many, all[fmt.Sprint("many ", i)] = append(many, writing(fmt.Sprint("many ", i), 5)), 5
	}
	for n, step := range []struct {
		writes []store.Write
		want   map[string]int64
	}{
		{[]store.Write{writing("a", 1), writing("b", 1), writing("c", 1)}, map[string]int64{"a": 1, "b": 1, "c": 1}},
		{[]store.Write{deleting("a"), writing("b", 2), deleting("never there"), writing("d", 2)}, map[string]int64{"b": 2, "c": 1, "d": 2}},
		{[]store.Write{writing("a", 3), deleting("b")}, map[string]int64{"a": 3, "c": 1, "d": 2}},
		{[]store.Write{deleting("a"), deleting("c"), deleting("d")}, map[string]int64{}},
		{many, all},
	} {
		mark := s.append(int64(n+1), step.writes...)
		got, refs := map[string]int64{}, []store.Ref{}
		for _, r := range s.list(store.Query{}) {
			got[r.Key] = number(&r)
			s.check(r.Version == got[r.Key], "%q has version %d, want that of its entry, %d", r.Key, r.Version, got[r.Key])
		}
		equal(s.T, "records", step.want, got)
		for _, w := range step.writes {
			refs = append(refs, store.Ref{Table: trailed.Name, Key: w.Record.Key})
		}
		entries, newest := s.trail(store.Mark{}, 10)
		equal(s.T, "refs", refs, entries[n].Refs)
		s.check(newest == mark, "the newest is %+v, want %+v", newest, mark)
	}
	s.in(plain).haveKeys()
}

// trailWriters has twenty writers add to one record, each in the state that it has read.
func trailWriters(s suite) {
	const writers, each = 20, 3
	s = s.fresh().in(trailed)
	both := []suite{s, s.another()}
	errs := make([]error, writers)
	together(writers, func(i int) {
		for k := range each {
			errs[i] = errors.Join(errs[i], addToSum(s.Context(), both[i%2], fmt.Sprintf("own %d %d", i, k)))
		}
	})
	succeed(s.T, "append", errors.Join(errs...))
	entries, newest := s.trail(store.Mark{}, writers*each+1)
	s.haveEntries(1, writers*each, entries)
	want := map[string]int64{"sum": writers * each}
	for _, e := range entries {
		want[e.Refs[1].Key] = e.Number
	}
	s.haveNumbers("records", want)
	s.check(len(want) == len(s.keys(store.Query{})) && s.get("sum").Version == newest.Number, "the records are %q", s.keys(store.Query{}))
}

// addToSum adds one in an entry that also writes an own record.
func addToSum(ctx context.Context, b store.Backend, own string) error {
	for {
		sum := int64(0)
		_, newest, err := b.Trail(ctx, store.Mark{}, 0)
		if err == nil {
			err = b.Get(ctx, trailed, func(r store.Record) error { sum = number(&r); return r.Err }, "sum")
		}
		if err != nil {
			return err
		}
		_, err = b.Append(ctx, entry(newest.Number+1), writing("sum", sum+1), writing(own, newest.Number+1))
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// trailFollower reads while another writes. What Trail has returned is in effect.
func trailFollower(s suite) {
	const entries = 60
	s = s.fresh().in(trailed)
	other := s.another()
	written := make(chan error, 1)
	go func() {
		var err error
		for n := int64(1); n <= entries && err == nil; n++ {
			_, err = other.Append(s.Context(), entry(n), writing("a", n), writing("b", n))
		}
		written <- err
	}()
	for mark := (store.Mark{}); mark.Number < entries && !s.Failed(); {
		select {
		case err := <-written:
			succeed(s.T, "append", err)
		default:
		}
		list, newest := s.trail(mark, 5)
		a, b := number(s.get("a")), number(s.get("b"))
		s.check(newest.Number == 0 || min(a, b) >= newest.Number, "after entry %d the records are of %d and %d", newest.Number, a, b)
		s.haveEntries(mark.Number+1, mark.Number+int64(len(list)), list)
		if len(list) > 0 {
			mark = list[len(list)-1].Mark()
		}
	}
}

// trailMarks: entries are read in pages. A mark is lost once its entry is not there, or is another.
func trailMarks(s suite) {
	s = s.fresh()
	restored := s.fresh() // stands for another state of the same data
	entries, newest := s.trail(store.Mark{}, 10)
	s.check(len(entries) == 0 && newest == store.Mark{}, "an empty trail has %d entries up to %+v", len(entries), newest)
	marks, others := []store.Mark{{}}, []store.Mark{}
	for n := range int64(7) {
		marks = append(marks, s.append(n+1))
		if n < 3 {
			others = append(others, restored.append(n+1))
		}
	}
	for after := range int64(8) {
		for _, limit := range []int64{0, 1, 3, 100} {
			entries, newest := s.trail(marks[after], int(limit))
			s.haveEntries(after+1, min(after+limit, 7), entries)
			s.check(newest == marks[7], "the newest is %+v, want %+v", newest, marks[7])
		}
	}
	lost := func(s suite, newest store.Mark, marks ...store.Mark) {
		s.Helper()
		for _, m := range marks {
			entries, got, err := s.Trail(s.Context(), m, 10)
			failWith(s.T, fmt.Sprintf("trail after %+v", m), store.ErrMarkLost, err)
			s.check(len(entries) == 0 && got == newest, "got %d entries, and %+v for the newest %+v", len(entries), got, newest)
			entries, got = s.trail(got, 10)
			s.check(len(entries) == 0 && got == newest, "after the newest mark are %d entries up to %+v", len(entries), got)
		}
	}
	lost(s, marks[7], others...)
	lost(s, marks[7], store.Mark{Number: 8, Nonce: 1}, store.Mark{Number: 7}, store.Mark{Number: 7, Nonce: marks[7].Nonce + 1})
	lost(restored, others[2], marks[1:]...)
	lost(s.fresh(), store.Mark{}, marks[1:]...)
	succeed(s.T, "trim", s.Trim(s.Context(), 3))
	lost(s, marks[7], marks[:4]...)
	entries, _ = s.trail(marks[4], 2)
	s.haveEntries(5, 6, entries)
}

// trailTrim: Trim removes old entries, and nothing that they changed. History has what is left.
func trailTrim(s suite) {
	const n = 250
	s = s.fresh().in(trailed)
	succeed(s.T, "trim an empty trail", s.Trim(s.Context(), 10))
	s.haveHistory(1, 0)
	for i := range int64(n) {
		s.append(i+1, writing(fmt.Sprint("key ", i%5), i+1))
	}
	for _, before := range []int64{1, 2, 100, n, n + 1, n + 100} {
		entries := s.history(before)
		slices.Reverse(entries)
		s.haveEntries(1, min(before-1, n), entries)
	}
	stop, calls := errors.New("stop"), 0
	failWith(s.T, "history", stop, s.History(s.Context(), 0, func(store.Entry) error { calls++; return stop }))
	s.check(calls == 1, "%d calls instead of one", calls)
	for _, step := range []struct{ through, first int64 }{{0, 1}, {20, 21}, {20, 21}, {10, 21}, {n - 1, n}, {n, n}, {n + 100, n}} {
		succeed(s.T, "trim", s.Trim(s.Context(), step.through))
		s.haveHistory(step.first, n)
	}
	s.haveNumbers("records", map[string]int64{"key 0": n - 4, "key 4": n})
	mark := s.newest()
	s.append(n+1, deleting("key 1"))
	entries, _ := s.trail(mark, 10)
	s.haveEntries(n+1, n+1, entries)
	s.haveKeys("key 0", "key 2", "key 3", "key 4")
}

// damagedRecords: a record that cannot be read is reported alone, and can be deleted.
func damagedRecords(s suite) {
	for name, spoil := range s.Spoil {
		s.Log(name)
		s := s.fresh()
		fill := func() store.Seen {
			s.put(expiring("a", Epoch), store.Seen{})
			s.put(expiring("c", Epoch), store.Seen{})
			defer spoil(s.T, s.Backend, s.table, "b")
			return s.put(expiring("b", Epoch), store.Seen{})
		}
		others := func(about string, q store.Query, want ...string) {
			equal(s.T, about, want, slices.DeleteFunc(s.keys(q), func(key string) bool { return key == "b" }))
		}
		seen := fill()
		s.haveKeys("a", "b", "c")
		s.unreadable("b", s.list(store.Query{})...)
		s.unreadable("b", s.list(store.Query{Prefix: "b", Limit: 1})...)
		s.unreadable("b", *s.get("b"))
		others("others of the owner", store.Query{Owner: "owner"}, "a", "c")
		others("others that changed", store.Query{ChangedSince: Epoch.AddDate(-200, 0, 0)}, "a", "c")
		_, err := s.Put(s.Context(), s.table, numbered("b", 1), store.Seen{})
		failWith(s.T, "put where an unreadable record is", store.ErrConflict, err)
		s.unreadable("b", *s.get("b"))
		if err = s.PutAll(s.Context(), s.table, []store.Record{numbered("b", 1), numbered("d", 2)}); err != nil {
			failWith(s.T, "put all", store.ErrUnreadable, err)
		}
		s.check(number(s.get("d")) == 2, "put all has left out a sound record")

		s.delete("b")
		s.haveKeys("a", "c", "d")
		failWith(s.T, "delete the former", store.ErrConflict, s.Delete(s.Context(), s.table, &seen, "b"))
		s.put(expiring("b", Epoch), store.Seen{})
		equal(s.T, "of the owner", []string{"a", "b", "c"}, s.keys(store.Query{Owner: "owner"}))
		succeed(s.T, "delete", s.DeleteAll(s.Context(), s.table, "a", "b", "c", "d"))
		fill()
		s.sweep(Epoch.AddDate(0, 0, 1))
		others("others after a sweep", store.Query{})
		succeed(s.T, "delete", s.DeleteAll(s.Context(), s.table, "a", "b"))
		s.haveKeys()

		s = s.in(trailed)
		s.append(1, writing("a", 1), writing("b", 1), writing("c", 1))
		spoil(s.T, s.Backend, s.table, "a")
		spoil(s.T, s.Backend, s.table, "c")
		s.unreadable("c", s.list(store.Query{After: "a"})...)
		s.append(2, writing("a", 2), deleting("c"))
		s.haveNumbers("after the next entry", map[string]int64{"a": 2, "b": 1, "c": -1})
		s.haveKeys("a", "b")
	}
}

// unreadable checks that of these records one cannot be read.
func (s suite) unreadable(key string, records ...store.Record) {
	s.Helper()
	found := false
	for _, r := range records {
		found = found || r.Key == key
		s.check((r.Key == key) == errors.Is(r.Err, store.ErrUnreadable) && (r.Key == key) == (r.Err != nil), "record %q: %v", r.Key, r.Err)
	}
	s.check(found, "the unreadable record %q is missing", key)
}

// damagedEntries: an entry that cannot be read is reported alone, and the trail goes on.
func damagedEntries(s suite) {
	for name, spoil := range s.SpoilEntry {
		s.Log(name)
		s := s.fresh().in(trailed)
		first := s.append(1, writing("a", 1))
		s.append(2, writing("b", 2))
		s.append(3, writing("c", 3))
		spoil(s.T, s.Backend, 2)
		for _, e := range s.history(0) {
			s.check((e.Number == 2) == errors.Is(e.Err, store.ErrUnreadable) && (e.Number == 2) == (e.Err != nil), "entry %d: %v", e.Number, e.Err)
		}
		s.haveHistory(1, 3)
		entries, _ := s.trail(first, 10)
		s.haveEntries(2, 3, entries)
		failWith(s.T, "the spoiled entry", store.ErrUnreadable, entries[0].Err)
		entries, _ = s.trail(entries[0].Mark(), 10)
		s.haveEntries(3, 3, entries)
		s.haveKeys("a", "b", "c")

		spoil(s.T, s.Backend, 3)
		newest := s.newest()
		entries, _ = s.trail(newest, 10)
		s.haveEntries(4, 3, entries)
		s.append(4, writing("d", 4))
		entries, _ = s.trail(newest, 10)
		s.haveEntries(4, 4, entries)
		succeed(s.T, "trim", s.Trim(s.Context(), 3))
		s.haveHistory(4, 4)
	}
}
