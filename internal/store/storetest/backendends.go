package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/store"
)

// calls are the errors of all methods, called with one context.
func (s suite) calls(ctx context.Context, seen store.Seen) map[string]error {
	record := func(store.Record) error { return nil }
	errs := map[string]error{
		"Get": s.Get(ctx, plain, record, "there"), "List": s.List(ctx, plain, store.Query{}, record),
		"PutAll": s.PutAll(ctx, plain, []store.Record{numbered("new", 1)}), "DeleteAll": s.DeleteAll(ctx, plain, "there"),
		"Delete": s.Delete(ctx, plain, &seen, "there"), "Delete any": s.Delete(ctx, plain, nil, "there"),
		"List volatile": s.List(ctx, volatile, store.Query{}, record), "PutAll volatile": s.PutAll(ctx, volatile, []store.Record{numbered("new", 1)}),
		"Delete volatile": s.DeleteAll(ctx, volatile, "there"),
		"History":         s.History(ctx, 0, func(store.Entry) error { return nil }), "Trim": s.Trim(ctx, 1),
	}
	_, errs["Put"] = s.Put(ctx, plain, numbered("new", 1), store.Seen{})
	_, errs["Put over"] = s.Put(ctx, plain, numbered("there", 2), seen)
	_, errs["Put volatile"] = s.Put(ctx, volatile, numbered("new", 1), store.Seen{})
	_, errs["Append"] = s.Append(ctx, entry(3), writing("new", 1))
	_, _, errs["Trail"] = s.Trail(ctx, store.Mark{}, 10)
	_, errs["Now"] = s.Now(ctx)
	if sweeper, ok := s.Backend.(store.Sweeper); ok {
		_, errs["Sweep"] = sweeper.Sweep(ctx, Epoch.AddDate(1, 0, 0))
	}
	return errs
}

// contextsBefore: a call with a cancelled context fails without effect.
func contextsBefore(s suite) {
	s = s.fresh()
	there := expiring("there", Epoch)
	s.in(volatile).put(there, store.Seen{})
	seen := s.put(there, store.Seen{})
	s.append(1, writing("there", 1))
	s.append(2, writing("there", 2))
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for name, err := range s.calls(ctx, seen) {
		failWith(s.T, name, context.Canceled, err)
	}
	for _, table := range Tables {
		if table != owned {
			s.in(table).haveKeys("there")
		}
	}
	s.same(there, s.get("there"))
	s.haveHistory(1, 2)
}

// attempts is how often a call is cancelled.
const attempts = 60

// cancelled runs an attempt with a context that ends the earlier the greater n is.
func (s suite) cancelled(n int64, attempt func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.Context(), time.Duration(attempts-n)*100*time.Microsecond)
	defer cancel()
	return attempt(ctx)
}

// contextsDuringPut: a write that is cancelled takes place or does not.
func contextsDuringPut(s suite) {
	s = s.fresh()
	var seen store.Seen
	before := int64(-1)
	for n := range int64(attempts) {
		var next store.Seen
		err := s.cancelled(n, func(ctx context.Context) (err error) {
			next, err = s.Put(ctx, s.table, numbered("key", n), seen)
			return err
		})
		r := s.get("key")
		if got := number(r); err == nil {
			s.check(got == n && r.Seen() == next, "put returned %+v, and the record is %+v", next, r)
		} else {
			s.check(!errors.Is(err, store.ErrConflict) && (got == n || got == before), "put returned %v, and the record is of %d, neither %d nor %d", err, got, before, n)
		}
		// A write that was cancelled may still be under way. One in the same state ends that.
		if next, err = s.Put(s.Context(), s.table, numbered("key", n), seen); errors.Is(err, store.ErrConflict) {
			next, err = s.get("key").Seen(), nil
		}
		succeed(s.T, "put again", err)
		seen, before = next, n
	}
}

// contextsDuringAppend: the same of an entry and its records.
func contextsDuringAppend(s suite) {
	s = s.fresh().in(trailed)
	for n := int64(1); n <= attempts; n++ {
		err := s.cancelled(n, func(ctx context.Context) error {
			_, err := s.Append(ctx, entry(n), writing("a", n), writing("b", n))
			return err
		})
		s.check(!errors.Is(err, store.ErrConflict), "append %d: %v", n, err)
		if _, err = s.Append(s.Context(), entry(n), writing("a", n), writing("b", n)); !errors.Is(err, store.ErrConflict) {
			succeed(s.T, "append again", err)
		}
		s.check(s.newest().Number == n, "after entry %d the newest is %d", n, s.newest().Number)
		s.haveNumbers("records", map[string]int64{"a": n, "b": n})
	}
}

// reopened: after a restart all is as before.
func reopened(s suite) {
	s.location = s.Location(s.T)
	b, err := s.Open(s.Context(), s.location)
	succeed(s.T, "open", err)
	s.Backend = b
	for _, table := range []store.Table{plain, owned} {
		for k := range int64(20) {
			r := expiring(fmt.Sprintf("key %02d", k), Epoch.Add(time.Duration(k)*time.Hour))
			s.in(table).put(r, s.in(table).put(numbered(r.Key, k), store.Seen{}))
		}
		s.in(table).delete("key 05")
	}
	for n := range int64(6) {
		s.append(n+1, writing(fmt.Sprint("key ", n), n+1), deleting("key 1"))
	}
	succeed(s.T, "trim", s.Trim(s.Context(), 2))
	read := func(s suite) []any {
		all := []any{s.in(owned).list(store.Query{Owner: "owner"}), s.history(0), s.newest()}
		for _, table := range []store.Table{plain, owned, trailed} {
			all = append(all, s.in(table).list(store.Query{}))
		}
		return all
	}
	want, state := read(s), s.in(owned).get("key 00").Seen()
	succeed(s.T, "close", b.Close())
	s = s.open()
	equal(s.T, "all data", want, read(s))
	s.append(7)
	s.in(owned).put(numbered("key 00", 1), state)
	s.sweep(Epoch.Add(10*time.Hour + time.Millisecond))
	s.check(len(s.keys(store.Query{})) == 9, "after a sweep there are %q", s.keys(store.Query{}))
}

// closedWhileWriting: calls under way complete, and later ones fail.
func closedWhileWriting(s suite) {
	const n = 64
	s.location = s.Location(s.T)
	b, err := s.Open(s.Context(), s.location)
	succeed(s.T, "open", err)
	s.Backend = b
	errs, closed := make([]error, n), make(chan error, 1)
	together(n, func(i int) {
		if i == n/2 {
			closed <- b.Close()
		}
		_, errs[i] = b.Put(s.Context(), s.table, numbered(fmt.Sprint(i), 1), store.Seen{})
	})
	succeed(s.T, "close", <-closed)
	late := s.calls(s.Context(), store.Seen{})
	delete(late, "Now") // it may need no data
	for name, err := range late {
		s.check(err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrMarkLost), "%s after the end returned %v", name, err)
	}
	s = s.open()
	for i, err := range errs {
		s.check(err != nil || s.get(fmt.Sprint(i)) != nil, "write %d had succeeded, and is gone", i)
	}
	s.check(s.get("new") == nil, "a write after the end has succeeded")
}

// backendEnv carries the location to the child process.
const backendEnv = "STORETEST_BACKEND_LOCATION"

// BackendChild returns at once, unless this process was started by the suite as the one to be killed. Then it
// writes until that happens. TestMain of a backend calls it first.
func BackendChild(open func(ctx context.Context, location string) (store.Backend, error)) {
	location, ok := os.LookupEnv(backendEnv)
	if !ok {
		return
	}
	b, err := open(context.Background(), location)
	if err == nil {
		err = writeBackendForever(context.Background(), b)
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(1)
}

// writeBackendForever prints each write once the store has returned: a kind, a key and a number.
func writeBackendForever(ctx context.Context, b store.Backend) error {
	errs := make(chan error)
	endless := func(write func(i int64) error) {
		go func() {
			for i := int64(1); ; i++ {
				if err := write(i); err != nil {
					errs <- err
				}
			}
		}()
	}
	for w := range 8 {
		var seen store.Seen
		endless(func(i int64) (err error) {
			key, table := fmt.Sprintf("%d/%d", w, i/3), Tables[w%2]
			if i%3 == 0 {
				seen = store.Seen{} // a new key
			}
			if seen, err = b.Put(ctx, table, numbered(key, i), seen); err != nil {
				return err
			}
			fmt.Println("put", key, i)
			if i%9 != 0 {
				return nil
			}
			if err = b.Delete(ctx, table, &seen, key); err == nil {
				fmt.Println("delete", key, i)
			}
			seen = store.Seen{}
			return err
		})
	}
	endless(func(n int64) error {
		_, err := b.Append(ctx, entry(n), writing("newest", n), writing(fmt.Sprint(n), n))
		if err == nil {
			fmt.Println("append", "newest", n)
		}
		return err
	})
	return <-errs
}

// killedWhileWriting: what a process has answered before kill -9 is there, and the next write of each writer as a
// whole or not at all.
func killedWhileWriting(s suite) {
	s.location = s.Location(s.T)
	answered, deleted := map[string]int64{}, map[string]bool{}
	for _, line := range runBackendAndKill(s.T, s.location, 600) {
		var kind, key string
		var n int64
		_, err := fmt.Sscan(line, &kind, &key, &n)
		succeed(s.T, "parse "+line, err)
		answered[key], deleted[key] = n, kind == "delete"
	}
	s = s.open()
	newest := s.newest().Number
	s.check(newest == answered["newest"] || newest == answered["newest"]+1, "the newest entry is %d, %d was answered", newest, answered["newest"])
	s.haveHistory(1, newest)
	want := map[string]int64{"newest": newest}
	for n := range newest {
		want[fmt.Sprint(n+1)] = n + 1
	}
	s.in(trailed).haveNumbers("records of entries", want)
	delete(answered, "newest")
	for key, least := range answered {
		may := []int64{least, least + 1} // the next write may have taken place, too
		switch {
		case deleted[key]:
			may[0] = -1
		case least%9 == 0:
			may = append(may, -1)
		}
		got := number(s.in(Tables[(key[0]-'0')%2]).get(key))
		s.check(slices.Contains(may, got), "%s is of %d, and may be of %d", key, got, may)
	}
}

// runBackendAndKill starts the child, kills it after that many answers and returns all that it has printed.
func runBackendAndKill(t *testing.T, location string, answers int) (lines []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), backendEnv+"="+location)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	succeed(t, "pipe", err)
	succeed(t, "start the child", child.Start())
	for printed := bufio.NewScanner(out); printed.Scan(); {
		if lines = append(lines, printed.Text()); len(lines) == answers {
			succeed(t, "kill", child.Process.Kill())
		}
	}
	if err := child.Wait(); err == nil || len(lines) < answers {
		t.Fatalf("the child ended by itself after %d answers: %v", len(lines), err)
	}
	return lines
}
