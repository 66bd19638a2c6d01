package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"oauth-server/internal/store"
)

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

func valuesReturn(s suite) {
	s = s.fresh()
	times := []time.Time{
		{},
		Epoch, Epoch.Add(time.Millisecond), Epoch.Add(1234567 * time.Nanosecond).In(time.FixedZone("", 3600)),
		time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC),
	}
	want := map[string]store.Record{}
	var bulk []store.Record
	for i, value := range values {
		r := store.Record{Key: fmt.Sprintf("put %02d", i), Value: []byte(value), Owner: oddNames[i], Expires: times[i%len(times)], Version: 1}
		seen := s.put(r, store.Seen{})
		if i%2 == 1 { // and over another record
			r.Value, r.Owner, r.Expires, r.Version = []byte(values[i/2]), oddNames[i/2], times[i/2%len(times)], 2
			s.put(r, seen)
		}
		want[r.Key] = r
		r.Key, r.Version = fmt.Sprintf("put all %02d", i), 1<<(4*i)
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

func entriesReturn(s suite) {
	s = s.fresh().in(trailed)
	var after store.Mark
	for i, value := range values {
		n := int64(i + 1)
		e, w := entry(n), store.Write{Table: trailed, Record: store.Record{
			Key: oddNames[i], Value: []byte(value), Owner: oddNames[len(values)-i], Expires: Epoch.Add(time.Duration(i) * time.Hour),
			Version: 77, Nonce: 77, Changed: Epoch, // these are set by the store
		}}
		e.Value, e.Nonce, e.Refs = []byte(value), 77, []store.Ref{{Table: "x", Key: "x"}} // the latter two as well
		mark, err := s.Append(s.Context(), e, w, writing("second", n))
		succeed(s.T, "append", err)
		entries, newest := s.trail(after, 10)
		s.haveEntries(n, n, entries)
		s.check(newest == mark && entries[0].Mark() == mark && mark.Nonce != 77, "the newest is %+v, want %+v", newest, mark)
		e.Nonce, e.Refs = mark.Nonce, []store.Ref{{Table: trailed.Name, Key: oddNames[i]}, {Table: trailed.Name, Key: "second"}}
		for _, got := range []store.Entry{entries[0], s.history(0)[0]} {
			s.sameValue(e.Value, got.Value)
			got.Value = e.Value
			equal(s.T, "entry", e, got)
		}
		w.Record.Version = n
		s.same(w.Record, s.get(oddNames[i]))
		after = mark
	}
}

// valuesBounded: what is at a bound is stored. What is beyond is refused, and changes nothing.
func valuesBounded(s suite) {
	s = s.fresh()
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
	succeed(s.T, "delete", s.DeleteAll(s.Context(), s.table, largest.Key))
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
}

func expiring(key string, at time.Time) store.Record {
	return store.Record{Key: key, Value: []byte("{}"), Owner: "owner", Expires: at, Version: 1}
}

// expiryRemoves: a sweep removes what has expired by the last write of a record, and nothing else.
func expiryRemoves(s suite) {
	s = s.fresh()
	early, late := Epoch.Add(-time.Hour), Epoch.Add(time.Hour)
	for key, times := range map[string][2]time.Time{
		"raised": {early, late}, "lowered": {late, early}, "lifted": {early, {}}, "set": {{}, early}, "same": {late, late},
		"at": {early, Epoch.Add(time.Millisecond)}, "before": {late, Epoch.Add(-time.Millisecond)},
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

	s.sweep(Epoch)
	want := []string{"at", "bulk at", "bulk lifted", "bulk raised", "bulk same", "lifted", "raised", "recreated", "same"}
	s.haveKeys(want...)
	equal(s.T, "keys of the owner", want, s.keys(store.Query{Owner: "owner"}))
	s.in(trailed).haveKeys("kept")
	s.haveHistory(1, 2)
	s.put(expiring("lowered", late), store.Seen{})
	s.sweep(Epoch)
	s.check(s.get("lowered") != nil, "a record is gone that was created anew")
}

// expiryRaces: a record that Put has renewed is not removed by a sweep that began before.
func expiryRaces(s suite) {
	const n = 50
	s = s.fresh()
	states, errs := make([]store.Seen, n), make([]error, n)
	for i := range n {
		states[i] = s.put(expiring(fmt.Sprint(i), Epoch.Add(-time.Hour)), store.Seen{})
	}
	together(n+1, func(i int) {
		if i == n {
			s.sweep(Epoch)
			return
		}
		_, errs[i] = s.Put(s.Context(), s.table, expiring(fmt.Sprint(i), Epoch.Add(time.Hour)), states[i])
	})
	s.sweep(Epoch)
	for i, err := range errs {
		s.check((err == nil) == (s.get(fmt.Sprint(i)) != nil), "put returned %v, and the record is %+v", err, s.get(fmt.Sprint(i)))
	}
}
