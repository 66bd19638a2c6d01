package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/store"
)

var (
	things = store.Table{Name: "things"}
	owned  = store.Table{Name: "owned", ByOwner: true}
	beats  = store.Table{Name: "beats", Volatile: true}
)

func thing(key, owner string) store.Record {
	return store.Record{Key: key, Owner: owner, Value: []byte(`{"of":"` + owner + `"}`)}
}

func listed(t *testing.T, s *Store, tb store.Table, q store.Query) (keys []string) {
	t.Helper()
	err := s.List(t.Context(), tb, q, func(r store.Record) error {
		if r.Err == nil && string(r.Value) != `{"of":"`+r.Owner+`"}` {
			t.Errorf("%s has the value %s", r.Key, r.Value)
		}
		keys = append(keys, r.Key)
		return s.Delete(t.Context(), things, nil, "nothing") // it may use the store
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestTables(t *testing.T) {
	for _, tb := range []store.Table{things, owned, beats} {
		t.Run(tb.Name, func(t *testing.T) {
			s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "t.db")), t.Context()
			r := thing("b", "alice")
			r.Expires = time.Now().Add(time.Hour).Truncate(time.Millisecond)
			first, err := s.Put(ctx, tb, r, store.Seen{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.Put(ctx, tb, r, store.Seen{}); !errors.Is(err, store.ErrConflict) {
				t.Error("it was made twice:", err)
			}
			r.Owner, r.Value = "bob", []byte(`{"of":"bob"}`)
			second, err := s.Put(ctx, tb, r, first)
			if err != nil || second.Version != 2 {
				t.Fatal(second, err)
			}
			if _, err = s.Put(ctx, tb, r, first); !errors.Is(err, store.ErrConflict) {
				t.Error("the first state was used twice:", err)
			}
			err = s.Get(ctx, tb, func(got store.Record) error {
				if got.Seen() != second || got.Owner != "bob" || !got.Expires.Equal(r.Expires) || time.Since(got.Changed) > time.Minute {
					t.Errorf("read %+v", got)
				}
				return nil
			}, "a", "b")
			if err != nil {
				t.Error(err)
			}
			if err := s.PutAll(ctx, tb, []store.Record{thing("a", "alice"), thing("b", "alice"), thing("c", "bob"), thing("cc", "bobby")}); err != nil {
				t.Fatal(err)
			}
			for want, q := range map[string]store.Query{
				"a b c cc": {}, "b c": {Owner: "bob"}, "c": {Owner: "bob", After: "b"}, "c cc": {Prefix: "c"}, "cc": {Prefix: "c", After: "c"},
				"a b": {Limit: 2}, "b c cc": {After: "a"}, "a": {Owner: "alice"}, "": {ChangedSince: time.Now().Add(time.Hour)},
			} {
				if got := strings.Join(listed(t, s, tb, q), " "); got != want {
					t.Errorf("%+v: %q, want %q", q, got, want)
				}
			}
			if err := s.Delete(ctx, tb, &first, "b"); !errors.Is(err, store.ErrConflict) {
				t.Error("it was removed in another state:", err)
			}
			if err := errors.Join(s.Delete(ctx, tb, &second, "b"), s.DeleteAll(ctx, tb, "a", "x", "c")); err != nil {
				t.Error(err)
			}
			if got := listed(t, s, tb, store.Query{}); !slices.Equal(got, []string{"cc"}) {
				t.Error("left:", got)
			}
		})
	}
}

func TestSweepOfTables(t *testing.T) {
	s, ctx, now := mustOpen(t, filepath.Join(t.TempDir(), "t.db")), t.Context(), time.Now()
	for _, tb := range []store.Table{things, owned, beats} {
		var records []store.Record
		for i := range 1000 {
			r := thing(fmt.Sprintf("%04d", i), "alice")
			r.Expires = now.Add(time.Duration(i-900) * time.Second)
			records = append(records, r)
		}
		if err := s.PutAll(ctx, tb, append(records, thing("stays", "alice"))); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Sweep(ctx, now); n != 3*900 || err != nil {
		t.Fatal(n, err)
	}
	for _, tb := range []store.Table{things, owned, beats} {
		if got := listed(t, s, tb, store.Query{Owner: "alice"}); len(got) != 101 || got[0] != "0900" {
			t.Error(tb.Name, len(got), got[0])
		}
	}
}

func TestTrail(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "t.db"), t.Context()
	s := mustOpen(t, path)
	var marks []store.Mark
	for i := range int64(5) {
		e := store.Entry{Number: i + 1, At: time.Now(), Value: []byte(`{}`)}
		writes := []store.Write{{Table: things, Record: thing("a", "alice")}, {Table: owned, Record: store.Record{Key: "b"}, Delete: true}}
		m, err := s.Append(ctx, e, writes...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Append(ctx, e, writes...); !errors.Is(err, store.ErrConflict) {
			t.Error("a number was used twice:", err)
		}
		marks = append(marks, m)
	}
	if err := s.Get(ctx, things, func(r store.Record) error {
		if r.Version != 5 {
			t.Errorf("version %d", r.Version)
		}
		return nil
	}, "a"); err != nil {
		t.Error(err)
	}
	entries, newest, err := s.Trail(ctx, store.Mark{}, 3)
	if err != nil || len(entries) != 3 || entries[2].Mark() != marks[2] || newest != marks[4] || len(entries[0].Refs) != 2 {
		t.Error(entries, newest, err)
	}
	if err := s.Trim(ctx, 3); err != nil {
		t.Fatal(err)
	}
	for mark, want := range map[store.Mark]error{
		{}: store.ErrMarkLost, marks[2]: store.ErrMarkLost, marks[3]: nil, marks[4]: nil, {Number: 4, Nonce: 7}: store.ErrMarkLost, {Number: 9}: store.ErrMarkLost,
	} {
		if _, newest, err = s.Trail(ctx, mark, 10); !errors.Is(err, want) || newest != marks[4] {
			t.Errorf("after %v: %v, %v", mark, newest, err)
		}
	}
	var numbers []int64
	err = s.History(ctx, 0, func(e store.Entry) error { numbers = append(numbers, e.Number); return nil })
	if err != nil || !slices.Equal(numbers, []int64{5, 4}) {
		t.Error(numbers, err)
	}
	if err := s.Trim(ctx, 100); err != nil {
		t.Fatal(err)
	}
	if _, newest, err = s.Trail(ctx, marks[4], 10); newest != marks[4] || err != nil {
		t.Error("after the trim:", newest, err)
	}
}

func TestUnreadableRecord(t *testing.T) {
	s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "t.db")), t.Context()
	if err := s.PutAll(ctx, owned, []store.Record{thing("a", "alice"), thing("b", "alice")}); err != nil {
		t.Fatal(err)
	}
	err := s.writes.do(ctx, func(w *writeTx) error {
		w.touched, w.dirty = true, true
		return w.tx.Bucket([]byte(owned.Name)).Put([]byte("a"), []byte("by hand"))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Get(ctx, owned, func(r store.Record) error { return r.Err }, "a")
	if !errors.Is(err, store.ErrUnreadable) {
		t.Error(err)
	}
	if got := listed(t, s, owned, store.Query{}); len(got) != 2 {
		t.Error(got)
	}
	if err := s.Delete(ctx, owned, nil, "a"); err != nil {
		t.Error(err)
	}
	if got := listed(t, s, owned, store.Query{Owner: "alice"}); len(got) != 1 {
		t.Error(got)
	}
}
