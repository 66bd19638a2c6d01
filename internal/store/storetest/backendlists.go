package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oauth-server/internal/store"
)

// oddNames are keys, prefixes and owners that a careless backend confuses. There are none from U+D7FF to U+FFFF,
// which the stand-in for MongoDB does not order as MongoDB does.
var oddNames = []string{
	"a", "a\x00", "a\x00b", "a\x00b\x00c", "a.b", "a.*", "a*", "ab", "abc", "a$b", "$a", "$set", "A", "^a", "[a", `a\`, `a"`, "a\n", "a\nb", "a/b", " ",
	"\x00", "\x01", "%", "1", "10", "2", "null", "true", "ä", "a\u0308", "ß", "z", "日本", "\u07ff", "\u0800", "\U00010000",
	"\U0010ffff", "a\U0010ffff", "a\U0010ffff\U0010ffff", "5f0000000000000000000000", strings.Repeat("k", store.MaxKey-1), strings.Repeat("k", store.MaxKey),
}

// listsSelect compares queries with a model, which has the owner of each key.
func listsSelect(s suite) {
	s = s.fresh()
	owners := []string{"", "alice", "alice2", "al", "a", "a\x00b", "a.b", "$a", "ä", "Alice"}
	model, states := map[string]string{}, map[string]store.Seen{}
	write := func(key, owner string) {
		model[key], states[key] = owner, s.put(store.Record{Key: key, Value: []byte("{}"), Owner: owner}, states[key])
	}
	for i, key := range oddNames {
		write(key, owners[i%len(owners)])
	}
	write("b\x00c", "a") // easily taken for the next one
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
	queries := []store.Query{{}, {Prefix: "none"}, {Prefix: "k"}, {Prefix: "al"}, {Owner: "none"}, {ChangedSince: Epoch.AddDate(-200, 0, 0)}}
	for _, prefix := range oddNames {
		queries = append(queries, store.Query{Prefix: prefix})
	}
	for _, owner := range owners {
		queries = append(queries, store.Query{Owner: owner})
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

// listsPage: a list has every record that stays, once and in order, while others come and go.
func listsPage(s suite) {
	s = s.fresh()
	other := s.another()
	var stay []string
	for i := range 120 {
		stay = append(stay, fmt.Sprintf("%03d stays", i))
		s.putAll(store.Record{Key: stay[i], Value: []byte("{}"), Owner: "owner", Version: 1})
	}
	var ended atomic.Bool
	changed := make(chan error)
	go func() {
		errs := make([]error, 4)
		together(len(errs), func(g int) {
			for i := 0; !ended.Load() && errs[g] == nil; i++ {
				key := fmt.Sprintf("%03d comes %d", i*7%120, g)
				_, put := other.Put(s.Context(), s.table, store.Record{Key: key, Value: []byte("{}"), Owner: "owner"}, store.Seen{})
				if errs[g] = put; i%2 == 1 || errors.Is(put, store.ErrConflict) {
					errs[g] = other.DeleteAll(s.Context(), s.table, key)
				}
			}
		})
		changed <- errors.Join(errs...)
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
		s.check(slices.IsSorted(keys) && len(slices.Compact(slices.Clone(keys))) == len(keys), "%+v: out of order, or twice: %q", q, keys)
		lacks := func(part string) func(string) bool {
			return func(key string) bool { return !strings.Contains(key, part) }
		}
		want := slices.DeleteFunc(slices.Clone(stay), func(key string) bool { return !strings.HasPrefix(key, q.Prefix) })
		equal(s.T, fmt.Sprintf("what stays, by %+v", q), want, slices.DeleteFunc(keys, lacks("stays")))
	}
	ended.Store(true)
	succeed(s.T, "change", <-changed)
}

func listsChanged(s suite) {
	s = s.fresh()
	start := s.now()
	first := s.put(numbered("b", 1), store.Seen{})
	s.put(numbered("a", 1), store.Seen{})
	s.putAll(numbered("c", 1), numbered("d", 1))
	s.delete("d")
	equal(s.T, "changed", []string{"a", "b", "c"}, s.keys(store.Query{ChangedSince: start}))
	equal(s.T, "changed later", []string(nil), s.keys(store.Query{ChangedSince: start.Add(time.Hour)}))
	again := s.now()
	s.put(numbered("b", 2), first)
	changed := s.list(store.Query{ChangedSince: again, After: "a", Limit: 1})
	s.check(len(changed) == 1 && number(&changed[0]) == 2, "the record that changed again is missing: %+v", changed)
}

// listsLate: a write dated a second ago may become visible now.
func listsLate(s suite) {
	s = s.fresh()
	s.putAll(numbered("late", 1), numbered("old", 1), numbered("now", 1))
	since := s.now().Add(-100 * time.Millisecond)
	s.Age(s.T, s.Backend, s.table, "late", time.Second)
	s.Age(s.T, s.Backend, s.table, "old", time.Hour)
	equal(s.T, "changed", []string{"late", "now"}, s.keys(store.Query{ChangedSince: since}))
}

// listsFollow reads what has changed since the previous time, again and again, while others write.
func listsFollow(s suite) {
	const writers, writes = 8, 40
	s = s.fresh()
	other := s.another()
	written := make(chan error, 1)
	go func() {
		errs := make([]error, writers)
		together(writers, func(g int) {
			for i := 0; i < writes && errs[g] == nil; i++ {
				_, errs[g] = other.Put(s.Context(), s.table, numbered(fmt.Sprintf("%d/%d", g, i), 1), store.Seen{})
			}
		})
		written <- errors.Join(errs...)
	}()
	found := map[string]bool{}
	for since, last := s.now(), false; !last; {
		select {
		case err := <-written:
			succeed(s.T, "write", err)
			last = true
		default:
		}
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
	s = s.fresh()
	for n := range int64(8) {
		s.put(numbered(fmt.Sprint("key ", n), n), store.Seen{})
	}
	big := fmt.Appendf(nil, `{"n":7,"s":"%s"}`, bytes.Repeat([]byte("x"), 4<<20))
	done := make(chan error, 1)
	go func() {
		done <- s.List(s.Context(), s.table, store.Query{Prefix: "key "}, func(r store.Record) error {
			_, err := s.Put(s.Context(), s.table, store.Record{Key: "big " + r.Key, Value: big}, store.Seen{})
			_, err2 := s.Put(s.Context(), s.table, numbered(r.Key, 100), r.Seen())
			return errors.Join(err, err2, s.Get(s.Context(), s.table, func(store.Record) error { return nil }, "big "+r.Key))
		})
	}()
	select {
	case err := <-done:
		succeed(s.T, "list", err)
	case <-time.After(time.Minute):
		s.Fatal("the list waits for a write that waits for the list")
	}
	s.haveNumbers("written", map[string]int64{"key 7": 100, "big key 0": 7, "big key 7": 7})
}
