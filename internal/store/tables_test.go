package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// oneWins: of a hundred puts and deletes in one state, one succeeds, with or without an existing record.
func oneWins(s suite) {
	both := []suite{s, s.another()}
	var seen store.Seen
	for range 8 {
		states, errs := make([]store.Seen, 100), make([]error, 100)
		together(len(errs), func(i int) {
			if on := both[i%2]; i%3 == 2 && seen != (store.Seen{}) {
				errs[i] = on.Delete(s.Context(), s.table, &seen, "key")
			} else {
				states[i], errs[i] = on.Put(s.Context(), s.table, numbered("key", int64(i)), seen)
			}
		})
		winner := slices.Index(errs, nil)
		for i, err := range errs {
			s.check(i == winner || errors.Is(err, store.ErrConflict), "number %d has won, and %d got %v", winner, i, err)
		}
		want, r := int64(winner), both[1].get("key")
		if states[winner] == (store.Seen{}) {
			want = -1
		}
		s.check(number(r) == want && (r == nil || r.Seen() == states[winner] && r.Version == seen.Version+1),
			"number %d has won with the state %+v, and the record is %+v", winner, states[winner], r)
		seen = states[winner]
	}
}

// statesDiffer: a write in any state except the current one changes nothing.
func statesDiffer(s suite) {
	refuse := func(about string, n int64, states ...store.Seen) {
		s.Helper()
		for _, seen := range states {
			_, err := s.Put(s.Context(), s.table, numbered("key", 100), seen)
			check.ErrorIs(s.T, err, store.ErrConflict, "put "+about)
			if seen != (store.Seen{}) {
				check.ErrorIs(s.T, s.Delete(s.Context(), s.table, &seen, "key"), store.ErrConflict, "delete "+about)
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
	check.OK(s.T, s.Delete(s.Context(), s.table, &second, "key"), "delete")
	refuse("what was deleted", -1, first, second)
	again := s.put(numbered("key", 3), store.Seen{})
	refuse("what was created anew", 3, store.Seen{}, first, second)
	s.check(first.Version == 1 && second.Version == 2 && again.Version == 1 && first.Nonce != again.Nonce && first.Nonce != second.Nonce,
		"the states are %+v, %+v and %+v", first, second, again)
}

// manyKeys: Get and DeleteAll take any number of keys, with or without records.
func manyKeys(s suite) {
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
	check.OK(s.T, errors.Join(s.Get(s.Context(), s.table, each), s.Get(s.Context(), s.table, each, "none", "a")), "get nothing")
	s.check(len(got) == 0, "got %v", got)
	check.OK(s.T, s.Get(s.Context(), s.table, each, keys...), "get")
	s.check(len(got) == len(records) && got["key 0099"] == 100, "got %d of %d records: %d", len(got), len(records), got["key 0099"])
	calls := 0
	failing := func(store.Record) error { calls++; return os.ErrInvalid }
	check.ErrorIs(s.T, s.Get(s.Context(), s.table, failing, keys...), os.ErrInvalid, "get")
	check.ErrorIs(s.T, s.List(s.Context(), s.table, store.Query{}, failing), os.ErrInvalid, "list")
	check.OK(s.T, s.DeleteAll(s.Context(), s.table), "delete none")
	s.check(calls == 2 && len(s.keys(store.Query{})) == len(records), "%d calls, and %d records", calls, len(s.keys(store.Query{})))
	check.OK(s.T, s.DeleteAll(s.Context(), s.table, append(keys[2:], keys[2:]...)...), "delete")
	s.haveKeys("key 0000")
	equal(s.T, "keys of the owner", []string{"key 0000"}, s.keys(store.Query{Owner: "owner"}))
}

// putAll: the greater version stays, whatever the order.
func putAll(s suite) {
	versioned := func(key string, version int64) store.Record {
		r := numbered(key, version)
		r.Owner, r.Expires = fmt.Sprint("owner ", version), epoch.Add(time.Duration(version)*time.Hour)
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

// putAllAtOnce: concurrent writers leave the greatest version, and no record is refused.
func putAllAtOnce(s suite) {
	const writers, keys = 24, 20
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
	check.OK(s.T, errors.Join(errs...), "put all")
	s.haveNumbers("the greatest versions", greatest)
}

// writesDated: records are dated by the clock of the store, to the millisecond.
func writesDated(s suite) {
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

// oddNames are keys, prefixes and owners that a careless backend confuses. They do not include
// U+D7FF to U+FFFF, which the stand-in for MongoDB sorts differently from MongoDB.
var oddNames = []string{
	"a", "a\x00", "a\x00b", "a\x00b\x00c", "a.b", "a.*", "a*", "ab", "abc", "a$b", "$a", "$set", "A", "^a", "[a", `a\`, `a"`, "a\n", "a\nb", "a/b", " ",
	"\x00", "\x01", "%", "1", "10", "2", "null", "true", "ä", "a\u0308", "ß", "z", "日本", "\u07ff", "\u0800", "\U00010000",
	"\U0010ffff", "a\U0010ffff", "a\U0010ffff\U0010ffff", "5f0000000000000000000000", strings.Repeat("k", store.MaxKey-1), strings.Repeat("k", store.MaxKey),
}

// listsSelect compares queries with a model, which has the owner of each key.
func listsSelect(s suite) {
	owners := []string{"", "alice", "alice2", "al", "a", "a\x00b", "a.b", "$a", "ä", "Alice"}
	model, states := map[string]string{}, map[string]store.Seen{}
	write := func(key, owner string) {
		model[key], states[key] = owner, s.put(store.Record{Key: key, Value: []byte("{}"), Owner: owner}, states[key])
	}
	for i, key := range oddNames {
		write(key, owners[i%len(owners)])
	}
	write("b\x00c", "a") // easily confused with the next one
	write("c", "a\x00b")
	s.compareLists(owners, model)
	for i, key := range oddNames {
		switch i % 3 {
		case 0:
			write(key, owners[(i+1)%len(owners)])
		case 1:
			s.delete(key)
			delete(model, key)
		}
	}
	s.compareLists(owners, model)
}

func (s suite) compareLists(owners []string, model map[string]string) {
	queries := []store.Query{{Prefix: "none"}, {Prefix: "k"}, {ChangedSince: epoch.AddDate(-200, 0, 0)}}
	for _, name := range slices.Concat(oddNames, owners) {
		queries = append(queries, store.Query{Prefix: name}, store.Query{Owner: name})
	}
	for _, q := range slices.Clone(queries) {
		for _, after := range []string{"", "a", "a\x00b", "k", "\u0800", oddNames[rand.IntN(len(oddNames))]} {
			q.After, q.Limit = after, rand.IntN(4)
			queries = append(queries, q)
		}
	}
	for _, q := range queries {
		var want []string
		for key, owner := range model {
			if strings.HasPrefix(key, q.Prefix) && (q.Owner == "" || owner == q.Owner) && key > q.After {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		if q.Limit > 0 {
			want = want[:min(q.Limit, len(want))]
		}
		if got := s.keys(q); !slices.Equal(want, got) {
			s.Errorf("%+v selects %.20q, want %.20q", q, got, want)
		}
	}
}

// listsPage: a list has every record that stays, once and in order, while others are added and removed.
func listsPage(s suite) {
	other, stay := s.another(), []string{}
	for i := range 120 {
		stay = append(stay, fmt.Sprintf("%03d stays", i))
		s.putAll(store.Record{Key: stay[i], Value: []byte("{}"), Owner: "owner", Version: 1})
	}
	var ended atomic.Bool
	changed := make(chan error)
	go func() {
		var err error
		for i := 0; !ended.Load() && err == nil; i++ {
			if key := fmt.Sprintf("%03d comes", i*7%120); i/120%2 == 0 {
				err = other.PutAll(s.Context(), s.table, []store.Record{{Key: key, Value: []byte("{}"), Owner: "owner", Version: 1}})
			} else {
				err = other.Delete(s.Context(), s.table, nil, key)
			}
		}
		changed <- err
	}()
	for _, q := range []store.Query{{}, {Owner: "owner"}, {Limit: 7}, {Limit: 1, Prefix: "0"}, {Limit: 11, Owner: "owner"}} {
		var keys []string
		for first := q; ; first.After = keys[len(keys)-1] {
			page := s.keys(first)
			keys = append(keys, page...)
			s.check(q.Limit == 0 || len(page) <= q.Limit, "a page of %d, at most %d were wanted", len(page), q.Limit)
			if q.Limit == 0 || len(page) < q.Limit {
				break
			}
		}
		s.check(slices.IsSorted(keys), "%+v: out of order: %q", q, keys)
		keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "comes") })
		equal(s.T, fmt.Sprintf("what stays, by %+v", q), stay[:len(stay)-len(q.Prefix)*20], keys) // 100 begin with 0
	}
	ended.Store(true)
	check.OK(s.T, <-changed, "change")
}

// listsChanged: a query selects records written since, and also a write dated a second earlier,
// which may only now become visible.
func listsChanged(s suite) {
	first := s.put(numbered("b", 1), store.Seen{})
	s.put(numbered("a", 1), store.Seen{})
	s.putAll(numbered("c", 1), numbered("d", 1), numbered("deleted", 1))
	s.delete("deleted")
	since := s.now().Add(-100 * time.Millisecond)
	s.Age(s.T, s.backend, s.table, "c", time.Second)
	s.Age(s.T, s.backend, s.table, "d", time.Hour)
	equal(s.T, "changed", []string{"a", "b", "c"}, s.keys(store.Query{ChangedSince: since}))
	equal(s.T, "changed later", []string(nil), s.keys(store.Query{ChangedSince: since.Add(time.Hour)}))
	again := s.now()
	s.put(numbered("b", 2), first)
	changed := s.list(store.Query{ChangedSince: again, After: "a", Limit: 1})
	s.check(len(changed) == 1 && number(&changed[0]) == 2, "the record that changed again is missing: %+v", changed)
}

// listsOmit: a member that the caller does not need may be missing. Nothing else is.
func listsOmit(s suite) {
	r := store.Record{Key: "a", Value: []byte(`{"n":1,"long":{"n":2},"s":"x"}`), Owner: "owner", Expires: epoch}
	r.Version = s.put(r, store.Seen{}).Version
	without := store.Record{Key: "b", Value: []byte(`{"n":1,"s":"x"}`), Owner: "owner", Expires: epoch, Version: 1}
	s.putAll(without)
	list := s.list(store.Query{Omit: "long"})
	s.check(len(list) == 2, "the list has %d records, want 2", len(list))
	if string(list[0].Value) == string(without.Value) {
		r.Value = without.Value
	}
	s.same(r, &list[0])
	s.same(without, &list[1])
}

// listsFollow repeatedly reads the changes since the previous read, while others write.
func listsFollow(s suite) {
	const writers, writes = 8, 40
	other := s.another()
	var ended atomic.Int32
	go together(writers, func(g int) {
		for i := range writes {
			_, err := other.Put(s.Context(), s.table, numbered(fmt.Sprintf("%d/%d", g, i), 1), store.Seen{})
			s.check(err == nil, "put: %v", err)
		}
		ended.Add(1)
	})
	found := map[string]bool{}
	for since, last := s.now(), false; !last; {
		last = ended.Load() == writers
		next := s.now()
		for _, key := range s.keys(store.Query{ChangedSince: since}) {
			found[key] = true
		}
		since = next
	}
	s.check(len(found) == writers*writes, "the follower has found %d of %d writes", len(found), writers*writes)
}

// listsReenter writes from within a list, until the data has grown several times.
func listsReenter(s suite) {
	for n := range int64(8) {
		s.put(numbered(fmt.Sprint("key ", n), n), store.Seen{})
	}
	big := fmt.Appendf(nil, `{"n":7,"s":"%s"}`, bytes.Repeat([]byte("x"), 1<<20))
	check.OK(s.T, s.List(s.Context(), s.table, store.Query{Prefix: "key "}, func(r store.Record) error {
		s.put(store.Record{Key: "big " + r.Key, Value: big}, store.Seen{})
		s.put(numbered(r.Key, 100), r.Seen())
		return nil
	}), "list")
	s.haveNumbers("written", map[string]int64{"key 7": 100, "big key 0": 7, "big key 7": 7})
}

// values are JSON objects that a store of documents must not change.
var values = []string{
	`{}`, `{"a":{}}`, `{"a":[]}`, `{"a":[{},[],[[1]],null,"",{"b":[{"c":null}]}]}`,
	`{"z":1,"a":2,"m":{"z":1,"a":2},"_id":3,"id":4,"version":5,"nonce":6,"owner":7,"expires":8,"changed":9,"value":10,"err":11}`,
	fmt.Sprintf(`{"min":%d,"max":%d,"i32":%d,"over32":%d,"zero":0,"minus":-1,"exact":9007199254740993}`,
		math.MinInt64, int64(math.MaxInt64), math.MaxInt32, int64(math.MaxInt32)+1),
	`{"half":0.5,"tenth":0.1,"small":5e-324,"big":1.7976931348623157e308,"minus":-2.5,"third":0.3333333333333333,"exp":1e100}`,
	`{"true":true,"false":false,"null":null,"text":"true","number":"1"}`,
	`{"unicode":"Näme 日本 😀 \u0000 \u001f \ufffd \u2028 \u2029 <b>&\"\\/ \r\n\t","\u00e4":"escaped","😀":1," ":2}`,
	`{"a.b":1,"a.c.d":2,".":3,"$set":4,"$":5,"a$b":6,"$where":{"$ne":null},"x":{"y.z":{"$in":[1]}},"":7}`,
	`{"a":{"$numberLong":"5"},"b":{"$oid":"5f0000000000000000000000"},"c":{"$date":"2020-01-01T00:00:00Z"},"d":{"$binary":{"base64":"","subType":"00"}}}`,
	`{"at":"2026-03-04T05:06:07.890Z","id":"5f0000000000000000000000","uuid":"8b5c4fbc-8f7a-4d3e-9c39-3a3d2c4e8a11"}`,
	`{"deep":` + strings.Repeat(`{"d":[`, 30) + `1` + strings.Repeat(`]}`, 30) + `}`,
	`{"long":"` + strings.Repeat("ä", 100_000) + `","many":[` + strings.Repeat("1,", 20_000) + `2]}`,
}

// valuesReturn: records and entries return as they were stored.
func valuesReturn(s suite) {
	times := []time.Time{
		{},
		epoch, epoch.Add(time.Millisecond), epoch.Add(1234567 * time.Nanosecond).In(time.FixedZone("", 3600)),
		time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC),
	}
	want := map[string]store.Record{}
	var bulk []store.Record
	for i, value := range values {
		r := store.Record{Key: oddNames[i], Value: []byte(value), Owner: oddNames[i+1], Expires: times[i%len(times)], Version: 77, Nonce: 77, Changed: epoch}
		e := store.Entry{Number: int64(i + 1), Nonce: 77, At: times[4-i%4], Value: r.Value, Refs: []store.Ref{{Table: "x", Key: "x"}}}
		m, err := s.Append(s.Context(), e, store.Write{Table: trailed, Record: r}, writing("second", 1))
		check.OK(s.T, err, "append")
		got := s.history(0)[0]
		s.sameValue(e.Value, got.Value)
		e.Nonce, e.At, e.Value, got.Value = m.Nonce, e.At.Truncate(time.Millisecond), nil, nil // and 77 was not taken
		e.Refs = []store.Ref{{Table: trailed.Name, Key: r.Key}, {Table: trailed.Name, Key: "second"}}
		equal(s.T, "entry", e, got)
		seen := s.put(r, store.Seen{})
		s.check(m.Number == e.Number && m.Nonce != 77 && seen.Nonce != 77, "the nonces are %d and %d", m.Nonce, seen.Nonce)
		r.Version = e.Number
		s.in(trailed).same(r, s.in(trailed).get(r.Key))
		r.Version = 1
		if i%2 == 1 { // over another record
			r.Value, r.Owner, r.Expires, r.Version = []byte(values[i/2]), oddNames[i/2], times[i/2%len(times)], 2
			s.put(r, seen)
		}
		want[r.Key] = r
		r.Key, r.Version = "all "+r.Key, 1<<(4*i)
		want[r.Key], bulk = r, append(bulk, r)
	}
	s.putAll(bulk...)
	list := s.list(store.Query{})
	s.check(len(list) == len(want), "the list has %d records, want %d", len(list), len(want))
	for i := range list {
		s.same(want[list[i].Key], &list[i])
		s.same(want[list[i].Key], s.get(list[i].Key))
	}
}

// valuesBounded: a record at a bound is stored. A record beyond it is refused, and changes nothing.
func valuesBounded(s suite) {
	sized := func(key string, n int) store.Record {
		return store.Record{Key: key, Value: fmt.Appendf(nil, `{"s":"%s"}`, strings.Repeat("x", n-len(`{"s":""}`))), Version: 1}
	}
	largest := sized(strings.Repeat("ä", store.MaxKey/2), store.MaxValue)
	s.put(largest, store.Seen{})
	s.same(largest, s.get(largest.Key))
	s.haveKeys(largest.Key)
	s.delete(largest.Key)
	s.putAll(largest)
	s.same(largest, s.get(largest.Key))
	check.OK(s.T, s.DeleteAll(s.Context(), s.table, largest.Key), "delete")
	largest.Value = sized("", store.MaxValue-len(entry(1).Value)).Value
	s.append(1, store.Write{Table: trailed, Record: largest})
	s.in(trailed).same(largest, s.in(trailed).get(largest.Key))
	refused := func(about string, err error) {
		s.check(err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound), "%s: got the error %v", about, err)
	}
	for about, r := range map[string]store.Record{
		"an empty key": sized("", 20), "a long key": sized(strings.Repeat("k", store.MaxKey+1), 20), "a large value": sized("key", store.MaxValue+1),
		"a key that is not UTF-8": sized("\xff", 20), "half a rune": sized("a\xc3", 20), "a long owner": {Key: "key", Value: []byte("{}"), Owner: strings.Repeat("o", store.MaxKey+1)},
		"an owner that is not UTF-8": {Key: "key", Value: []byte("{}"), Owner: "\xff"}, "no object": {Key: "key", Value: []byte("[]")},
	} {
		_, err := s.Put(s.Context(), s.table, r, store.Seen{})
		refused(about, err)
		refused(about+" in bulk", s.PutAll(s.Context(), s.table, []store.Record{r}))
		_, err = s.Append(s.Context(), entry(2), writing("fine", 2), store.Write{Table: trailed, Record: r})
		refused(about+" in an entry", err)
	}
	_, err := s.Append(s.Context(), entry(2), store.Write{Table: trailed, Record: sized("a", store.MaxValue)}, writing("b", 2))
	refused("an entry of large records", err)
	s.haveKeys()
	s.in(trailed).haveKeys(largest.Key)
	s.haveHistory(1, 1)
	s.put(store.Record{Key: "\ufffd", Value: []byte("{}"), Owner: "\ufffd"}, store.Seen{}) // other programs convert invalid UTF-8 to this
	for _, key := range []string{"", "\xff", "a\xc3", strings.Repeat("k", 40_000)} {
		check.OK(s.T, errors.Join(s.Delete(s.Context(), s.table, nil, key), s.DeleteAll(s.Context(), s.table, key)), "delete")
		s.check(s.get(key) == nil && (key == "" || s.keys(store.Query{Owner: key}) == nil && s.keys(store.Query{Prefix: key}) == nil), "%.40q is found", key)
	}
	s.haveKeys("\ufffd")
}

func expiring(key string, at time.Time) store.Record {
	return store.Record{Key: key, Value: []byte("{}"), Owner: "owner", Expires: at, Version: 1}
}

// expiryRemoves: a sweep removes exactly the records that have expired according to their last write.
func expiryRemoves(s suite) {
	early, late := epoch.Add(-time.Hour), epoch.Add(time.Hour)
	for key, times := range map[string][2]time.Time{
		"raised": {early, late}, "lowered": {late, early}, "lifted": {early, {}}, "set": {{}, early}, "same": {late, late},
		"at": {early, epoch.Add(time.Millisecond)}, "before": {late, epoch.Add(-time.Millisecond)},
	} {
		s.put(expiring(key, times[1]), s.put(expiring(key, times[0]), store.Seen{}))
		second := expiring("bulk "+key, times[1])
		second.Version = 2
		s.putAll(expiring("bulk "+key, times[0]))
		s.putAll(second)
	}
	s.put(expiring("recreated", early), store.Seen{})
	s.delete("recreated")
	s.put(expiring("recreated", late), store.Seen{})
	var many []store.Record
	for i := range s.Many {
		many = append(many, expiring(fmt.Sprintf("many %04d", i), early.Add(time.Duration(i)*time.Millisecond)))
	}
	s.putAll(many...)
	expired := expiring("expired", early)
	kept := expired
	kept.Key, kept.Expires = "kept", time.Time{}
	s.append(1, store.Write{Table: trailed, Record: expired}, store.Write{Table: trailed, Record: expiring("kept", early)})
	s.append(2, store.Write{Table: trailed, Record: kept})
	s.sweep(early.Add(-time.Millisecond))
	s.check(len(s.keys(store.Query{})) == s.Many+15, "there are %d records before any expires", len(s.keys(store.Query{})))
	s.sweep(epoch)
	want := []string{"at", "bulk at", "bulk lifted", "bulk raised", "bulk same", "lifted", "raised", "recreated", "same"}
	s.haveKeys(want...)
	equal(s.T, "keys of the owner", want, s.keys(store.Query{Owner: "owner"}))
	s.in(trailed).haveKeys("kept")
	s.haveHistory(1, 2)
	s.put(expiring("lowered", late), store.Seen{})
	s.sweep(epoch)
	s.check(s.get("lowered") != nil, "a record is gone that was created anew")
}

// expiryRaces: a record that Put has renewed is not removed by a sweep that began before.
func expiryRaces(s suite) {
	const n = 50
	states, errs := make([]store.Seen, n), make([]error, n)
	for i := range n {
		states[i] = s.put(expiring(fmt.Sprint(i), epoch.Add(-time.Hour)), store.Seen{})
	}
	together(n+1, func(i int) {
		if i == n {
			s.sweep(epoch)
			return
		}
		_, errs[i] = s.Put(s.Context(), s.table, expiring(fmt.Sprint(i), epoch.Add(time.Hour)), states[i])
	})
	s.sweep(epoch)
	for i, err := range errs {
		s.check((err == nil) == (s.get(fmt.Sprint(i)) != nil), "put returned %v, and the record is %+v", err, s.get(fmt.Sprint(i)))
	}
}
