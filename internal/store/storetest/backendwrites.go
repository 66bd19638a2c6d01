package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/store"
)

// onePutWins: of a hundred writes in one state, one succeeds, whether there is a record or not.
func onePutWins(s suite) {
	s = s.fresh()
	both := []suite{s, s.another()}
	var seen store.Seen
	for version := range int64(3) {
		states, errs := make([]store.Seen, 100), make([]error, 100)
		together(100, func(i int) {
			states[i], errs[i] = both[i%2].Put(s.Context(), s.table, numbered("key", int64(i)), seen)
		})
		winner := theOne(s.T, errs)
		r := both[1].get("key")
		s.check(number(r) == int64(winner) && r.Seen() == states[winner] && r.Version == version+1,
			"number %d has won with the state %+v, and the record is %+v", winner, states[winner], r)
		seen = states[winner]
	}
}

// theOne returns the index of the only success. All others must be conflicts.
func theOne(t *testing.T, errs []error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		if err != nil {
			failWith(t, "the others", store.ErrConflict, err)
			continue
		}
		if winner >= 0 {
			t.Fatalf("both %d and %d have won", winner, i)
		}
		winner = i
	}
	if winner < 0 {
		t.Fatalf("nobody has won: %v", errs[0])
	}
	return winner
}

// oneDeleteWins: of many deletes and puts in one state, one succeeds.
func oneDeleteWins(s suite) {
	s = s.fresh()
	both := []suite{s, s.another()}
	for range 5 {
		seen := s.put(numbered("key", 20), store.Seen{})
		errs := make([]error, 20)
		together(len(errs), func(i int) {
			if i%2 == 0 {
				errs[i] = both[i/2%2].Delete(s.Context(), s.table, &seen, "key")
			} else {
				_, errs[i] = both[i/2%2].Put(s.Context(), s.table, numbered("key", int64(i)), seen)
			}
		})
		want := int64(theOne(s.T, errs))
		if want%2 == 0 {
			want = -1
		}
		s.haveNumbers("the winner's record", map[string]int64{"key": want})
		s.delete("key")
	}
}

// statesDiffer: a write in any state but the present one changes nothing.
func statesDiffer(s suite) {
	s = s.fresh()
	refuse := func(about string, n int64, states ...store.Seen) {
		s.Helper()
		for _, seen := range states {
			_, err := s.Put(s.Context(), s.table, numbered("key", 100), seen)
			failWith(s.T, "put "+about, store.ErrConflict, err)
			if seen != (store.Seen{}) {
				failWith(s.T, "delete "+about, store.ErrConflict, s.Delete(s.Context(), s.table, &seen, "key"))
			}
		}
		s.haveNumbers(about, map[string]int64{"key": n})
	}
	refuse("nothing", -1, store.Seen{Version: 1, Nonce: 1})
	first := s.put(numbered("key", 1), store.Seen{})
	refuse("what exists", 1, store.Seen{}, store.Seen{Version: 1, Nonce: first.Nonce + 1}, store.Seen{Version: 2, Nonce: first.Nonce},
		store.Seen{Version: 1}, store.Seen{Nonce: first.Nonce})
	second := s.put(numbered("key", 2), first)
	refuse("what was written meanwhile", 2, store.Seen{}, first)
	succeed(s.T, "delete", s.Delete(s.Context(), s.table, &second, "key"))
	refuse("what was deleted", -1, first, second)
	again := s.put(numbered("key", 3), store.Seen{})
	refuse("what was created anew", 3, store.Seen{}, first, second)
	s.check(first.Version == 1 && second.Version == 2 && again.Version == 1 && first.Nonce != again.Nonce && first.Nonce != second.Nonce,
		"the states are %+v, %+v and %+v", first, second, again)
}

// manyKeys: Get and DeleteAll take any number of keys, whether there are records or not.
func manyKeys(s suite) {
	s = s.fresh()
	s.delete("none")
	s.put(numbered("a", 2), s.put(numbered("a", 1), store.Seen{}))
	s.delete("a")
	var records []store.Record
	keys := []string{"none"}
	for n := range int64(s.Many) {
		r := numbered(fmt.Sprintf("key %04d", n), n+1)
		r.Owner = "owner"
		records, keys = append(records, r), append(keys, r.Key)
	}
	s.putAll(records...)
	got := map[string]int64{}
	each := func(r store.Record) error { got[r.Key] = number(&r); return nil }
	succeed(s.T, "get nothing", errors.Join(s.Get(s.Context(), s.table, each), s.Get(s.Context(), s.table, each, "none", "a")))
	s.check(len(got) == 0, "got %v", got)
	succeed(s.T, "get", s.Get(s.Context(), s.table, each, keys...))
	s.check(len(got) == len(records) && got["key 0099"] == 100, "got %d of %d records: %d", len(got), len(records), got["key 0099"])
	stop, calls := errors.New("stop"), 0
	failing := func(store.Record) error { calls++; return stop }
	failWith(s.T, "get", stop, s.Get(s.Context(), s.table, failing, keys...))
	failWith(s.T, "list", stop, s.List(s.Context(), s.table, store.Query{}, failing))
	s.check(calls == 2, "%d calls instead of 2", calls)
	succeed(s.T, "delete none", s.DeleteAll(s.Context(), s.table))
	s.check(len(s.keys(store.Query{})) == len(records), "there are %d records", len(s.keys(store.Query{})))
	succeed(s.T, "delete", s.DeleteAll(s.Context(), s.table, append(keys[2:], keys[2:]...)...))
	s.haveKeys("key 0000")
	equal(s.T, "keys of the owner", []string{"key 0000"}, s.keys(store.Query{Owner: "owner"}))
}

// putAll: the greater version stays, whatever the order.
func putAll(s suite) {
	s = s.fresh()
	versioned := func(key string, version int64) store.Record {
		r := numbered(key, version)
		r.Owner, r.Expires = fmt.Sprint("owner ", version), Epoch.Add(time.Duration(version)*time.Hour)
		return r
	}
	s.putAll()
	s.putAll(versioned("a", 5), versioned("b", 5), versioned("c", 1), versioned("c", 9), versioned("c", 3))
	s.putAll(versioned("b", 4), versioned("d", 7), versioned("a", 6))
	s.putAll(versioned("d", 1), versioned("d", 7))
	for key, version := range map[string]int64{"a": 6, "b": 5, "c": 9, "d": 7} {
		s.same(versioned(key, version), s.get(key))
		equal(s.T, "of its owner", []string{key}, s.keys(store.Query{Owner: fmt.Sprint("owner ", version)}))
	}
	other := versioned("a", 6)
	other.Value = []byte(`{"n":100}`)
	s.putAll(other)
	s.haveNumbers("the same version again", map[string]int64{"a": 6})
	next := s.put(numbered("a", 100), s.get("a").Seen())
	s.check(next.Version == 7, "the version after 6 is %d", next.Version)
}

// putAllAtOnce: concurrent writers leave the greatest version, and refuse no record.
func putAllAtOnce(s suite) {
	const writers, keys = 24, 20
	s = s.fresh()
	both := []suite{s, s.another()}
	records, greatest := make([][]store.Record, writers), map[string]int64{}
	for i := range writers {
		for k := range keys {
			r := numbered(fmt.Sprintf("key %02d", (k+i)%keys), int64((i*7+k)%writers+1))
			records[i], greatest[r.Key] = append(records[i], r), max(greatest[r.Key], r.Version)
		}
	}
	errs := make([]error, writers)
	together(writers, func(i int) { errs[i] = both[i%2].PutAll(s.Context(), s.table, records[i]) })
	succeed(s.T, "put all", errors.Join(errs...))
	s.haveNumbers("the greatest versions", greatest)
	for key, version := range greatest {
		s.check(s.get(key).Version == version, "%q has another version than %d", key, version)
	}
}

func tablesApart(s suite) {
	s = s.fresh()
	for i, table := range []store.Table{plain, owned, volatile} {
		s.in(table).put(numbered("key", int64(i)), store.Seen{})
	}
	s.append(1, writing("key", 3))
	s.in(owned).delete("key")
	for i, want := range []int64{0, -1, 2, 3} {
		s.in(Tables[i]).haveNumbers(Tables[i].Name, map[string]int64{"key": want})
	}
}

// writesDated: records are dated by the clock of the store, to the millisecond.
func writesDated(s suite) {
	s = s.fresh()
	before := s.now()
	s.check(time.Since(before).Abs() < time.Hour, "the clock of the store is %v off", time.Since(before))
	seen := s.put(numbered("put", 1), store.Seen{})
	s.putAll(numbered("put all", 1))
	s.append(1, writing("append", 1))
	between := s.now()
	dated := func(r *store.Record, from, to time.Time) {
		s.Helper()
		s.check(!r.Changed.Before(from.Truncate(time.Millisecond)) && !r.Changed.After(to) && r.Changed.Equal(r.Changed.Truncate(time.Millisecond)),
			"between %v and %v was written %+v", from, to, r)
	}
	dated(s.get("put"), before, between)
	dated(s.get("put all"), before, between)
	dated(s.in(trailed).get("append"), before, between)
	s.put(numbered("put", 2), seen)
	dated(s.get("put"), between, s.now())
}
