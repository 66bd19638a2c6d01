package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// trailNext: only an entry with the next number is accepted. Any other is refused, and changes nothing.
func trailNext(s suite) {
	s = s.in(trailed)
	for newest := range int64(3) {
		for _, n := range []int64{-1, 0, newest - 1, newest, newest + 2, newest + 100} {
			_, err := s.Append(s.Context(), entry(n), writing("refused", n), deleting("kept"))
			check.ErrorIs(s.T, err, store.ErrConflict, fmt.Sprintf("append %d after %d", n, newest))
		}
		s.haveHistory(1, newest)
		s.append(newest+1, writing("kept", newest+1))
		s.haveKeys("kept")
	}
}

// trailEffects: the writes of an entry take effect together. Its number becomes the version of their records.
func trailEffects(s suite) {
	s = s.in(trailed)
	for n, step := range []struct {
		writes []store.Write
		want   map[string]int64
	}{
		{[]store.Write{writing("a", 1), writing("b", 1), writing("c", 1)}, map[string]int64{"a": 1, "b": 1, "c": 1}},
		{[]store.Write{deleting("a"), writing("b", 2), deleting("never there"), writing("d", 2)}, map[string]int64{"b": 2, "c": 1, "d": 2}},
		{[]store.Write{writing("a", 3), deleting("b")}, map[string]int64{"a": 3, "c": 1, "d": 2}},
		{[]store.Write{deleting("a"), deleting("c"), deleting("d")}, map[string]int64{}},
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
}

// trailWriters: twenty writers add to one record, each in the state that it has read.
func trailWriters(s suite) {
	const writers, each = 20, 3
	s = s.in(trailed)
	both := []suite{s, s.another()}
	errs := make([]error, writers)
	together(writers, func(i int) {
		for k := range each {
			errs[i] = errors.Join(errs[i], addToSum(s.Context(), both[i%2], fmt.Sprintf("own %d %d", i, k)))
		}
	})
	check.OK(s.T, errors.Join(errs...), "append")
	entries, newest := s.trail(store.Mark{}, writers*each+1)
	s.haveEntries(1, writers*each, entries)
	want := map[string]int64{"sum": writers * each}
	for _, e := range entries {
		want[e.Refs[1].Key] = e.Number
	}
	s.haveNumbers("records", want)
	s.check(len(want) == len(s.keys(store.Query{})) && s.get("sum").Version == newest.Number, "the records are %q", s.keys(store.Query{}))
}

// addToSum adds one in an entry that also writes a record of its own.
func addToSum(ctx context.Context, b store.Backend, own string) error {
	for {
		var sum, version int64
		_, newest, err := b.Trail(ctx, store.Mark{}, 0)
		if err == nil {
			err = b.Get(ctx, trailed, func(r store.Record) error { sum, version = number(&r), r.Version; return r.Err }, "sum")
		}
		if err != nil || version < newest.Number {
			return errors.Join(err, fmt.Errorf("entry %d was not in effect: the record is of %d", newest.Number, version))
		}
		_, err = b.Append(ctx, entry(newest.Number+1), writing("sum", sum+1), writing(own, newest.Number+1))
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// trailMarks: entries are read in pages. A mark is lost once its entry is gone, or is another one.
func trailMarks(s suite) {
	restored := s.fresh() // another state of the same data
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
			check.ErrorIs(s.T, err, store.ErrMarkLost, fmt.Sprintf("trail after %+v", m))
			s.check(len(entries) == 0 && got == newest, "got %d entries, and %+v for the newest %+v", len(entries), got, newest)
			entries, got = s.trail(got, 10)
			s.check(len(entries) == 0 && got == newest, "after the newest mark are %d entries up to %+v", len(entries), got)
		}
	}
	lost(s, marks[7], others...)
	lost(s, marks[7], store.Mark{Number: 8, Nonce: 1}, store.Mark{Number: 7}, store.Mark{Number: 7, Nonce: marks[7].Nonce + 1})
	lost(restored, others[2], marks[1:]...)
	lost(s.fresh(), store.Mark{}, marks[1:]...)
	check.OK(s.T, s.Trim(s.Context(), 3), "trim")
	lost(s, marks[7], marks[:4]...)
	entries, _ = s.trail(marks[4], 2)
	s.haveEntries(5, 6, entries)
}

// trailTrim: Trim removes old entries but not their changes. History returns the remaining entries.
func trailTrim(s suite) {
	const n = 250
	s = s.in(trailed)
	check.OK(s.T, s.Trim(s.Context(), 10), "trim an empty trail")
	s.haveHistory(1, 0)
	for i := range int64(n) {
		s.append(i+1, writing(fmt.Sprint("key ", i%5), i+1))
	}
	for _, before := range []int64{1, 2, 100, n, n + 1, n + 100} {
		entries := s.history(before)
		slices.Reverse(entries)
		s.haveEntries(1, min(before-1, n), entries)
	}
	check.ErrorIs(s.T, s.History(s.Context(), 0, func(store.Entry) error { return os.ErrInvalid }), os.ErrInvalid, "history")
	for _, step := range []struct{ through, first int64 }{{0, 1}, {20, 21}, {20, 21}, {10, 21}, {n - 1, n}, {n, n}, {n + 100, n}} {
		check.OK(s.T, s.Trim(s.Context(), step.through), "trim")
		s.haveHistory(step.first, n)
	}
	s.haveNumbers("records", map[string]int64{"key 0": n - 4, "key 4": n})
	mark := s.newest()
	s.append(n+1, deleting("key 1"))
	entries, _ := s.trail(mark, 10)
	s.haveEntries(n+1, n+1, entries)
	s.haveKeys("key 0", "key 2", "key 3", "key 4")
}

// damagedRecords: only the unreadable record itself is reported, and it can be deleted.
func damagedRecords(s suite) {
	for name, spoil := range s.Spoil {
		s.Log(name)
		s := s.fresh()
		have := func(about string, q store.Query, want ...string) { // * marks unreadable records
			s.Helper()
			var got []string
			for _, r := range s.list(q) {
				if errors.Is(r.Err, store.ErrUnreadable) {
					r.Key += "*"
				}
				got = append(got, r.Key)
			}
			if q.Owner != "" || !q.ChangedSince.IsZero() { // the store may not know the record's owner or time
				got = slices.DeleteFunc(got, func(key string) bool { return key == "b*" })
			}
			equal(s.T, about, want, got)
		}
		fill := func() store.Seen {
			s.putAll(expiring("a", epoch), expiring("c", epoch))
			defer spoil(s.T, s.backend, s.table, "b")
			return s.put(expiring("b", epoch), store.Seen{})
		}
		seen := fill()
		have("all", store.Query{}, "a", "b*", "c")
		have("one", store.Query{Prefix: "b", Limit: 1}, "b*")
		have("others of the owner", store.Query{Owner: "owner"}, "a", "c")
		have("others that changed", store.Query{ChangedSince: epoch.AddDate(-200, 0, 0)}, "a", "c")
		check.ErrorIs(s.T, s.get("b").Err, store.ErrUnreadable, "get")
		_, err := s.Put(s.Context(), s.table, numbered("b", 1), store.Seen{})
		check.ErrorIs(s.T, err, store.ErrConflict, "put where an unreadable record is")
		if err = s.PutAll(s.Context(), s.table, []store.Record{expiring("a", epoch), expiring("d", epoch)}); err != nil {
			check.ErrorIs(s.T, err, store.ErrUnreadable, "put all")
		}
		have("after writes", store.Query{}, "a", "b*", "c", "d")
		s.delete("b")
		check.ErrorIs(s.T, s.Delete(s.Context(), s.table, &seen, "b"), store.ErrConflict, "delete the former")
		s.put(expiring("b", epoch), store.Seen{})
		have("of the owner", store.Query{Owner: "owner"}, "a", "b", "c", "d")
		check.OK(s.T, s.DeleteAll(s.Context(), s.table, "a", "b", "c", "d"), "delete")
		fill()
		s.sweep(epoch.AddDate(0, 0, 1))
		check.OK(s.T, s.DeleteAll(s.Context(), s.table, "b"), "delete")
		s.haveKeys()
		s = s.in(trailed)
		s.append(1, writing("a", 1), writing("b", 1), writing("c", 1))
		spoil(s.T, s.backend, s.table, "a")
		spoil(s.T, s.backend, s.table, "c")
		have("records of the entry", store.Query{}, "a*", "b", "c*")
		s.append(2, writing("a", 2), deleting("c"))
		have("records of the next one", store.Query{}, "a", "b")
	}
}

// damagedEntries: only the unreadable entry itself is reported, and the trail continues.
func damagedEntries(s suite) {
	for name, spoil := range s.SpoilEntry {
		s.Log(name)
		s := s.fresh().in(trailed)
		first := s.append(1, writing("a", 1))
		s.append(2, writing("b", 2))
		s.append(3, writing("c", 3))
		spoil(s.T, s.backend, 2)
		for _, e := range s.history(0) {
			s.check((e.Number == 2) == errors.Is(e.Err, store.ErrUnreadable) && (e.Number == 2) == (e.Err != nil), "entry %d: %v", e.Number, e.Err)
		}
		s.haveHistory(1, 3)
		entries, _ := s.trail(first, 10)
		s.haveEntries(2, 3, entries)
		check.ErrorIs(s.T, entries[0].Err, store.ErrUnreadable, "the spoiled entry")
		entries, _ = s.trail(entries[0].Mark(), 10)
		s.haveEntries(3, 3, entries)
		s.haveKeys("a", "b", "c")
		spoil(s.T, s.backend, 3)
		newest := s.newest()
		entries, _ = s.trail(newest, 10)
		s.haveEntries(4, 3, entries)
		s.append(4, writing("d", 4))
		entries, _ = s.trail(newest, 10)
		s.haveEntries(4, 4, entries)
		check.OK(s.T, s.Trim(s.Context(), 3), "trim")
		s.haveHistory(4, 4)
	}
}
