package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// backend is a backend with counters.
type backend interface {
	store.Backend
	exchange.Store
	byClient
}

// target is a kind of backend under test.
type target struct {
	Name string
	// Location creates an empty place for data and returns the string that Open needs to find it,
	// even in another process. The place is removed when the test ends.
	Location func(t *testing.T) string
	// Open opens the data at a location. Once a backend is closed, or its process has ended, the same
	// location can be opened again.
	Open func(ctx context.Context, location string) (backend, error)
	// Shared: several backends can have one location open at once.
	Shared bool
	// Sweep removes records and counters that expired before now, as a server with a data file or the TTL monitor of MongoDB does.
	Sweep func(t *testing.T, b backend, now time.Time)
	// Faulty opens the data at a location over a connection that can be broken; nil: not supported.
	Faulty func(t *testing.T, location string) (backend, Faults)
	// Many is how many records exist at once in the largest test.
	Many int
	// Age moves the time at which a record was written back.
	Age func(t *testing.T, b backend, table store.Table, key string, by time.Duration)
	// Spoil has ways to make a stored record unreadable, by name.
	Spoil map[string]func(t *testing.T, b backend, table store.Table, key string)
	// SpoilEntry has ways to make an entry of the trail unreadable. Its number stays.
	SpoilEntry map[string]func(t *testing.T, b backend, number int64)
}

// Faults breaks or delays a writing command. Commands are counted from the call, from 1.
type Faults struct {
	// Lose drops the reply to a command, or the whole command; 0: none.
	Lose func(command int, whole bool)
	// Hold delays a command until release is called. reached is closed when the command has arrived.
	Hold func(command int) (reached <-chan struct{}, release func())
}

// targets are the kinds of backends. Each must pass the whole suite; no group can be switched off.
var targets = []target{inFile, inMongoDB}

// The tables of the suite.
var (
	plain   = store.Table{Name: "suite_plain"}
	owned   = store.Table{Name: "suite_owned", ByOwner: true}
	trailed = store.Table{Name: "suite_trailed", ByOwner: true} // written by Append only
)

func TestMain(m *testing.M) {
	writeUntilKilled()
	if os.Getenv("MONGODB_TEST_URI") == "" {
		os.Exit(m.Run()) // testcontainers keeps its own connections open until the end
	}
	goleak.VerifyTestMain(m)
}

// TestBackends runs the whole suite for each backend. It does not depend on the date: its records expire around
// [epoch], far in the future, so that no TTL monitor of a database removes them while it runs.
func TestBackends(t *testing.T) {
	for _, target := range targets {
		t.Run(target.Name, func(t *testing.T) {
			t.Parallel()
			runSuite(t, target)
		})
	}
}

func runSuite(t *testing.T, target target) {
	t.Helper()
	both, one := []store.Table{plain, owned}, []store.Table{plain}
	for _, test := range []struct {
		name   string
		tables []store.Table
		run    func(s suite)
	}{
		{"one wins", both, oneWins},
		{"states", both, statesDiffer},
		{"many keys", both, manyKeys},
		{"put all", both, putAll},
		{"put all at once", both, putAllAtOnce},
		{"the clock", one, writesDated},
		{"selection and order", both, listsSelect},
		{"pages while records change", both, listsPage},
		{"changed since", both, listsChanged},
		{"omit", both, listsOmit},
		{"a follower of changes", one, listsFollow},
		{"use within a list", one, listsReenter},
		{"values", both, valuesReturn},
		{"bounds", one, valuesBounded},
		{"expiry", both, expiryRemoves},
		{"renewed while it expires", both, expiryRaces},
		{"the next number", one, trailNext},
		{"effects of entries", one, trailEffects},
		{"twenty writers", one, trailWriters},
		{"pages and marks", one, trailMarks},
		{"trim and history", one, trailTrim},
		{"cancelled before", one, contextsBefore},
		{"cancelled meanwhile", one, cancelledWhileWriting},
		{"reopen", one, reopened},
		{"kill", one, killedWhileWriting},
		{"close", one, closedWhileWriting},
		{"damage", both, damagedRecords},
		{"damage in the trail", one, damagedEntries},
	} {
		for _, table := range test.tables {
			t.Run(test.name+"/"+table.Name, func(t *testing.T) { test.run(suite{T: t, target: target, table: table}.fresh()) })
		}
	}
	if target.Faulty != nil {
		runFaults(t, target)
	}
	runCounters(t, func(t *testing.T) fixture {
		t.Helper()
		s := suite{T: t, target: target}.fresh()
		return fixture{s.backend, s.sweep}
	})
}

// epoch is "now" in this suite. Stores keep times to the millisecond.
var epoch = time.Date(2100, time.March, 4, 5, 6, 7, 890e6, time.UTC)

// suite is a test with its backend and table.
type suite struct {
	*testing.T
	target
	backend
	location string
	table    store.Table
}

// unclosed opens a backend that the test itself closes, at a new location if s has no location.
func (s suite) unclosed() suite {
	s.Helper()
	if s.location == "" {
		s.location = s.Location(s.T)
	}
	var err error
	s.backend, err = s.Open(s.Context(), s.location)
	check.OK(s.T, err, "open")
	return s
}

// open opens a backend that is closed when the test ends.
func (s suite) open() suite {
	s.Helper()
	s = s.unclosed()
	s.Cleanup(func() { check.OK(s.T, s.Close(), "close") })
	return s
}

// fresh opens an empty backend.
func (s suite) fresh() suite { s.location = ""; return s.open() }

// another opens the location once more, or returns the same backend if that is not possible.
func (s suite) another() suite {
	s.Helper()
	if s.Shared {
		return s.open()
	}
	return s
}

func (s suite) in(table store.Table) suite { s.table = table; return s }

func (s suite) check(ok bool, format string, args ...any) {
	s.Helper()
	if !ok {
		s.Errorf(format, args...)
	}
}

func (s suite) sweep(now time.Time) {
	s.Helper()
	s.Sweep(s.T, s.backend, now)
}

func (s suite) now() time.Time {
	s.Helper()
	at, err := s.Now(s.Context())
	check.OK(s.T, err, "now")
	return at
}

func (s suite) put(r store.Record, seen store.Seen) store.Seen {
	s.Helper()
	next, err := s.Put(s.Context(), s.table, r, seen)
	check.OK(s.T, err, fmt.Sprintf("put %.40q", r.Key))
	return next
}

func (s suite) putAll(records ...store.Record) {
	s.Helper()
	check.OK(s.T, s.PutAll(s.Context(), s.table, records), "put all")
}

func (s suite) delete(key string) {
	s.Helper()
	check.OK(s.T, s.Delete(s.Context(), s.table, nil, key), "delete "+key)
}

func (s suite) get(key string) (found *store.Record) {
	s.Helper()
	err := s.Get(s.Context(), s.table, func(r store.Record) error {
		s.check(found == nil && r.Key == key, "asked for %.40q once, got %.40q", key, r.Key)
		r.Value = bytes.Clone(r.Value)
		found = &r
		return nil
	}, key)
	check.OK(s.T, err, fmt.Sprintf("get %.40q", key))
	return found
}

func (s suite) list(q store.Query) (records []store.Record) {
	s.Helper()
	check.OK(s.T, s.List(s.Context(), s.table, q, func(r store.Record) error {
		r.Value = bytes.Clone(r.Value)
		records = append(records, r)
		return nil
	}), "list")
	return records
}

func (s suite) keys(q store.Query) (keys []string) {
	s.Helper()
	for _, r := range s.list(q) {
		keys = append(keys, r.Key)
	}
	return keys
}

func (s suite) haveKeys(want ...string) {
	s.Helper()
	equal(s.T, "keys of "+s.table.Name, want, s.keys(store.Query{}))
}

// numbered returns a record with the number n as its value and version.
func numbered(key string, n int64) store.Record {
	return store.Record{Key: key, Value: fmt.Appendf(nil, `{"n":%d}`, n), Version: n}
}

// number returns the number of a record; -1: no record, -2: the record has no number.
func number(r *store.Record) int64 {
	v := struct{ N int64 }{-2}
	if r == nil {
		return -1
	}
	_ = json.Unmarshal(r.Value, &v) // -2 stays
	return v.N
}

func (s suite) haveNumbers(about string, want map[string]int64) {
	s.Helper()
	got := map[string]int64{}
	for key := range want {
		got[key] = number(s.get(key))
	}
	equal(s.T, about, want, got)
}

// same compares all but Nonce and Changed, which the store chooses.
func (s suite) same(want store.Record, got *store.Record) {
	s.Helper()
	if got == nil {
		s.Errorf("there is no record %.40q", want.Key)
		return
	}
	g := *got
	s.sameValue(want.Value, g.Value)
	want.Expires, want.Value, want.Nonce, want.Changed = want.Expires.Truncate(time.Millisecond), nil, 0, time.Time{}
	g.Value, g.Nonce, g.Changed = nil, 0, time.Time{}
	equal(s.T, "record", want, g)
}

// sameValue compares the tokens of JSON values: spelling does not matter. The order and every bit of a number do.
func (s suite) sameValue(want, got []byte) {
	s.Helper()
	if bytes.Equal(want, got) {
		return // values of megabytes take seconds under the race detector
	}
	w, g := tokens(want), tokens(got)
	s.check(slices.Equal(w, g), "the value is %.1000s, want %.1000s", got, want)
}

func tokens(value []byte) (list []string) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	for {
		token, err := d.Token()
		if n, ok := token.(json.Number); ok {
			if _, err := n.Int64(); err != nil {
				f, _ := n.Float64()
				token = json.Number(strconv.FormatFloat(f, 'g', -1, 64))
			}
		}
		list = append(list, fmt.Sprintf("%T %v %v", token, token, err))
		if err != nil {
			return list
		}
	}
}

func entry(n int64) store.Entry {
	return store.Entry{Number: n, At: epoch.Add(time.Duration(n) * time.Second), Value: fmt.Appendf(nil, `{"n":%d,"by":"ops"}`, n)}
}

func writing(key string, n int64) store.Write {
	return store.Write{Table: trailed, Record: numbered(key, n)}
}

func deleting(key string) store.Write {
	return store.Write{Table: trailed, Record: store.Record{Key: key}, Delete: true}
}

// append adds the next entry, which must have that number.
func (s suite) append(n int64, writes ...store.Write) store.Mark {
	s.Helper()
	m, err := s.Append(s.Context(), entry(n), writes...)
	check.OK(s.T, err, fmt.Sprintf("append %d", n))
	s.check(m.Number == n, "appended %d as %d", n, m.Number)
	return m
}

func (s suite) trail(after store.Mark, limit int) ([]store.Entry, store.Mark) {
	s.Helper()
	entries, newest, err := s.Trail(s.Context(), after, limit)
	check.OK(s.T, err, fmt.Sprintf("trail after %+v", after))
	return entries, newest
}

func (s suite) newest() store.Mark {
	s.Helper()
	_, newest, err := s.Trail(s.Context(), store.Mark{}, 0)
	if !errors.Is(err, store.ErrMarkLost) {
		check.OK(s.T, err, "trail")
	}
	return newest
}

func (s suite) history(before int64) (entries []store.Entry) {
	s.Helper()
	check.OK(s.T, s.History(s.Context(), before, func(e store.Entry) error {
		entries = append(entries, e)
		return nil
	}), "history")
	return entries
}

func (s suite) haveEntries(first, last int64, entries []store.Entry) {
	s.Helper()
	var want, got []int64
	for n := first; n <= last; n++ {
		want = append(want, n)
	}
	for _, e := range entries {
		got = append(got, e.Number)
	}
	equal(s.T, "entries", want, got)
}

func (s suite) haveHistory(first, last int64) {
	s.Helper()
	entries := s.history(0)
	slices.Reverse(entries)
	s.haveEntries(first, last, entries)
}

// equal compares records. Nil and empty lists count as equal, as do times of the same instant.
func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// together runs do(0) to do(n-1), all at the same time as far as possible.
func together(n int, do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}
