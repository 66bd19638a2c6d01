package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// records is a backend of one table, in the order of its keys.
type records struct {
	store.Backend
	list []store.Record
	put  []store.Record // written records, with the state they depend on in Version and Nonce
}

func (b *records) Get(_ context.Context, _ store.Table, each func(store.Record) error, keys ...string) error {
	for _, r := range b.list {
		if slices.Contains(keys, r.Key) {
			return each(r)
		}
	}
	return nil
}

func (b *records) List(_ context.Context, _ store.Table, _ store.Query, each func(store.Record) error) error {
	for _, r := range b.list {
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

func (b *records) Put(_ context.Context, _ store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	r.Version, r.Nonce = seen.Version, seen.Nonce
	b.put = append(b.put, r)
	return store.Seen{Version: seen.Version + 1, Nonce: 99}, nil
}

func (b *records) PutAll(_ context.Context, _ store.Table, list []store.Record) error {
	b.put = append(b.put, list...)
	return nil
}

type animal struct {
	Name string `json:"-"`
	Legs int    `json:"legs"`
}

var animals = store.Table{Name: "animals"}

var errNameless = errors.New("an animal without a name")

func collection(b store.Backend, skipped *[]string) *store.Collection[animal] {
	return &store.Collection[animal]{
		Backend: b, Table: animals,
		Encode: func(a *animal) (store.Record, error) {
			if a.Name == "" {
				return store.Record{}, errNameless
			}
			value, err := json.Marshal(a)
			return store.Record{Key: a.Name, Value: value, Owner: "zoo", Version: int64(a.Legs)}, err
		},
		Decode: func(r *store.Record) (animal, error) {
			a := animal{Name: r.Key}
			err := json.Unmarshal(r.Value, &a)
			return a, err
		},
		Skipped: func(table, key string, err error) {
			*skipped = append(*skipped, fmt.Sprint(table, " ", key, " ", errors.Is(err, store.ErrUnreadable)))
		},
	}
}

// zoo returns two readable records, one that the backend cannot read, and one that the domain
// package cannot read.
func zoo() *records {
	return &records{list: []store.Record{
		{Key: "ant", Value: []byte(`{"legs":6}`), Version: 3, Nonce: 33},
		{Key: "bee", Err: fmt.Errorf("%w: truncated", store.ErrUnreadable)},
		{Key: "cat", Value: []byte(`{"legs":"four"}`)},
		{Key: "dog", Value: []byte(`{"legs":4}`), Version: 1, Nonce: 11},
	}}
}

func TestCollectionGet(t *testing.T) {
	t.Parallel()
	c := collection(zoo(), nil)
	a, seen, err := c.Get(t.Context(), "ant")
	check.OK(t, err)
	check.Equal(t, "animal", a, animal{"ant", 6})
	check.Equal(t, "state", seen, store.Seen{Version: 3, Nonce: 33})
	for key, want := range map[string]error{"none": store.ErrNotFound, "bee": store.ErrUnreadable, "cat": store.ErrUnreadable} {
		if _, _, err := c.Get(t.Context(), key); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
}

func TestCollectionList(t *testing.T) {
	t.Parallel()
	var skipped []string
	c := collection(zoo(), &skipped)
	var list []animal
	var states []store.Seen
	check.OK(t, c.List(t.Context(), store.Query{}, func(a animal, seen store.Seen) error {
		list, states = append(list, a), append(states, seen)
		return nil
	}))
	check.Equal(t, "animals", list, []animal{{"ant", 6}, {"dog", 4}})
	check.Equal(t, "states", states, []store.Seen{{Version: 3, Nonce: 33}, {Version: 1, Nonce: 11}})
	check.Equal(t, "skipped", skipped, []string{"animals bee true", "animals cat true"})

	c.Skipped = nil
	stop, calls := errors.New("stop"), 0
	err := c.List(t.Context(), store.Query{}, func(animal, store.Seen) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, and the error %v", calls, err)
	}
}

// TestCollectionListsMany: List keeps the order although all processors decode.
func TestCollectionListsMany(t *testing.T) {
	t.Parallel()
	var skipped, want, got []string
	b := &records{}
	for i := range 5_000 {
		r := store.Record{Key: fmt.Sprintf("%04d", i), Value: fmt.Appendf(nil, `{"legs":%d}`, i)}
		if i%100 == 0 {
			r.Value = []byte("{}}")
		} else {
			want = append(want, fmt.Sprint(r.Key, i))
		}
		b.list = append(b.list, r)
	}
	c := collection(b, &skipped)
	check.OK(t, c.List(t.Context(), store.Query{}, func(a animal, _ store.Seen) error {
		got = append(got, fmt.Sprint(a.Name, a.Legs))
		return nil
	}))
	check.Equal(t, "animals", got, want)
	check.Equal(t, "skipped", len(skipped), 50)
	stop := errors.New("stop")
	if err := c.List(t.Context(), store.Query{}, func(animal, store.Seen) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestCollectionWrites(t *testing.T) {
	t.Parallel()
	b := &records{}
	c := collection(b, nil)
	ant, dog := animal{"ant", 6}, animal{"dog", 4}
	seen, err := c.Put(t.Context(), &ant, store.Seen{Version: 3, Nonce: 33})
	check.OK(t, err)
	check.Equal(t, "state", seen, store.Seen{Version: 4, Nonce: 99})
	check.OK(t, c.PutAll(t.Context(), []animal{ant, dog}))
	check.Equal(t, "written", b.put, []store.Record{
		{Key: "ant", Value: []byte(`{"legs":6}`), Owner: "zoo", Version: 3, Nonce: 33},
		{Key: "ant", Value: []byte(`{"legs":6}`), Owner: "zoo", Version: 6},
		{Key: "dog", Value: []byte(`{"legs":4}`), Owner: "zoo", Version: 4},
	})
	w, err := c.Write(&dog)
	check.OK(t, err)
	check.Equal(t, "write", w, store.Write{Table: animals, Record: b.put[2]})

	_, err = c.Put(t.Context(), &animal{}, store.Seen{})
	_, err2 := c.Write(&animal{})
	for _, err := range []error{err, err2, c.PutAll(t.Context(), []animal{ant, {}})} {
		if !errors.Is(err, errNameless) || len(b.put) != 3 {
			t.Errorf("a value that cannot be encoded: %v, %d records written", err, len(b.put))
		}
	}
}
