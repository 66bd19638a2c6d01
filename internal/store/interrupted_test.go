package store_test

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

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// calls returns the errors of all methods, called with one context.
func (s suite) calls(ctx context.Context, seen store.Seen) map[string]error {
	record := func(store.Record) error { return nil }
	errs := map[string]error{
		"Get": s.Get(ctx, plain, record, "there"), "List": s.List(ctx, plain, store.Query{}, record),
		"PutAll": s.PutAll(ctx, plain, []store.Record{numbered("new", 1)}), "DeleteAll": s.DeleteAll(ctx, plain, "there"),
		"Delete": s.Delete(ctx, plain, &seen, "there"), "Delete any": s.Delete(ctx, plain, nil, "there"),
		"History": s.History(ctx, 0, func(store.Entry) error { return nil }), "Trim": s.Trim(ctx, 1),
	}
	_, errs["Put"] = s.Put(ctx, plain, numbered("new", 1), store.Seen{})
	_, errs["Put over"] = s.Put(ctx, plain, numbered("there", 2), seen)
	_, errs["Append"] = s.Append(ctx, entry(3), writing("new", 1))
	_, _, errs["Trail"] = s.Trail(ctx, store.Mark{}, 10)
	_, errs["Exchange to write"] = s.Exchange(ctx, []exchange.Item{{ID: counterID("new"), Write: adding("me", 1)}})
	_, errs["Exchange to read"] = s.Exchange(ctx, []exchange.Item{{ID: counterID("new"), Read: true}})
	_, errs["Now"] = s.Now(ctx)
	if file, ok := s.backend.(*boltFile); ok {
		_, errs["Sweep"] = file.Sweep(ctx, epoch.AddDate(1, 0, 0))
	}
	return errs
}

// contextsBefore: a call with a cancelled context fails without effect.
func contextsBefore(s suite) {
	there := expiring("there", epoch)
	seen := s.put(there, store.Seen{})
	s.append(1, writing("there", 1))
	s.append(2, writing("there", 2))
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for name, err := range s.calls(ctx, seen) {
		check.ErrorIs(s.T, err, context.Canceled, name)
	}
	s.haveKeys("there")
	s.in(trailed).haveKeys("there")
	s.same(there, s.get("there"))
	s.haveHistory(1, 2)
	s.check(load(s.T, s, counterID("new")) == nil, "a cancelled exchange has counted")
}

// cancelledWhileWriting: a cancelled write takes place completely or not at all.
func cancelledWhileWriting(s suite) {
	trail := s.in(trailed)
	seen, before := store.Seen{}, int64(-1)
	for n := int64(1); n <= 60; n++ {
		ctx, cancel := context.WithTimeout(s.Context(), time.Duration(60-n)*200*time.Microsecond)
		next, put := s.Put(ctx, s.table, numbered("key", n), seen)
		_, appended := s.Append(ctx, entry(n), writing("a", n), writing("b", n))
		cancel()
		s.check(!errors.Is(put, store.ErrConflict) && !errors.Is(appended, store.ErrConflict), "%v, %v", put, appended)
		r := s.get("key")
		s.check(number(r) == n && (put != nil || r.Seen() == next) || number(r) == before && put != nil, "put returned %v, and the record is %+v", put, r)
		// The cancelled write may still be under way. Writing the same again ends that.
		_, err := s.Put(s.Context(), s.table, numbered("key", n), seen)
		_, err2 := s.Append(s.Context(), entry(n), writing("a", n), writing("b", n))
		for _, err := range []error{err, err2} {
			s.check(err == nil || errors.Is(err, store.ErrConflict), "once more: %v", err)
		}
		seen, before = s.get("key").Seen(), n
		s.check(s.newest().Number == n, "after entry %d the newest is %d", n, s.newest().Number)
		trail.haveNumbers("records", map[string]int64{"a": n, "b": n})
	}
}

// reopened: after a restart all data is unchanged.
func reopened(s suite) {
	s.location = ""
	s = s.unclosed()
	for i, table := range []store.Table{plain, owned} {
		for k := range int64(20) {
			r := expiring(fmt.Sprintf("key %02d", k), epoch.Add(time.Duration(k)*time.Hour))
			r.Value = numbered("", k*int64(i)).Value
			s.in(table).put(r, s.in(table).put(numbered(r.Key, k), store.Seen{}))
		}
		s.in(table).delete("key 05")
	}
	for n := range int64(6) {
		s.append(n+1, writing(fmt.Sprint("key ", n), n+1), deleting("key 1"))
	}
	check.OK(s.T, s.Trim(s.Context(), 2), "trim")
	read := func(s suite) []any {
		all := []any{s.in(owned).list(store.Query{Owner: "owner"}), s.history(0), s.newest()}
		for _, table := range []store.Table{plain, owned, trailed} {
			all = append(all, s.in(table).list(store.Query{}))
		}
		return all
	}
	want, state := read(s), s.in(owned).get("key 00").Seen()
	check.OK(s.T, s.Close(), "close")
	s = s.open()
	equal(s.T, "all data", want, read(s))
	s.append(7)
	s.in(owned).put(numbered("key 00", 1), state)
	s.sweep(epoch.Add(10*time.Hour + time.Millisecond))
	s.check(len(s.keys(store.Query{})) == 9, "after a sweep there are %q", s.keys(store.Query{}))
}

// closedWhileWriting: calls under way complete, and later ones fail.
func closedWhileWriting(s suite) {
	const n = 64
	s.location = ""
	s = s.unclosed()
	errs, closed := make([]error, n), make(chan error, 1)
	together(n, func(i int) {
		if i == n/2 {
			closed <- s.Close()
		}
		_, errs[i] = s.Put(s.Context(), s.table, numbered(fmt.Sprint(i), 1), store.Seen{})
	})
	check.OK(s.T, <-closed, "close")
	late := s.calls(s.Context(), store.Seen{})
	delete(late, "Now") // it may not need the data
	for name, err := range late {
		s.check(err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrMarkLost), "%s after the end returned %v", name, err)
	}
	s = s.open()
	for i, err := range errs {
		s.check(err != nil || s.get(fmt.Sprint(i)) != nil, "write %d had succeeded, and is gone", i)
	}
	s.check(s.get("new") == nil, "a write after the end has succeeded")
}

// targetEnv and locationEnv tell the child process where to write.
const (
	targetEnv   = "STORE_TEST_TARGET"
	locationEnv = "STORE_TEST_LOCATION"
)

// writeUntilKilled returns at once, unless the suite started this process as the one to be killed. In
// that case it writes until it is killed, and prints the key and the number of each stored record.
func writeUntilKilled() {
	i := slices.IndexFunc(targets, func(t target) bool { return t.Name == os.Getenv(targetEnv) })
	if i < 0 {
		return
	}
	done := func(err error, key string, n int64) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		fmt.Println(key, n)
	}
	ctx := context.Background()
	b, err := targets[i].Open(ctx, os.Getenv(locationEnv))
	done(err, "newest", 0)
	for w := range 8 {
		go func() {
			var seen store.Seen
			for n := int64(1); ; n++ {
				if n%3 == 0 {
					seen = store.Seen{} // a new key
				}
				key := fmt.Sprintf("%d/%d", w, n/3)
				next, err := b.Put(ctx, []store.Table{plain, owned}[w%2], numbered(key, n), seen)
				seen = next
				done(err, key, n)
			}
		}()
	}
	for n := int64(1); ; n++ {
		_, err := b.Append(ctx, entry(n), writing("newest", n), writing(fmt.Sprint(n), n))
		done(err, "newest", n)
	}
}

// killedWhileWriting: all writes that a process reported before kill -9 are present. The next write
// of each writer is present completely or not at all.
func killedWhileWriting(s suite) {
	s.location = s.Location(s.T)
	child := exec.CommandContext(s.Context(), os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), targetEnv+"="+s.Name, locationEnv+"="+s.location), os.Stderr
	out, err := child.StdoutPipe()
	check.OK(s.T, errors.Join(err, child.Start()), "start the child")
	answered, answers := map[string]int64{}, 0
	for printed := bufio.NewScanner(out); printed.Scan(); answers++ {
		var key string
		var n int64
		_, err := fmt.Sscan(printed.Text(), &key, &n)
		check.OK(s.T, err, "parse "+printed.Text())
		if answered[key] = n; answers == 600 {
			check.OK(s.T, child.Process.Kill(), "kill")
		}
	}
	if err := child.Wait(); err == nil || answers < 600 {
		s.Fatalf("the child ended by itself after %d answers: %v", answers, err)
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
		got := number(s.in([]store.Table{plain, owned}[(key[0]-'0')%2]).get(key))
		s.check(got == least || got == least+1, "%s is of %d, and %d was answered", key, got, least)
	}
}

// runFaults tests a backend over a connection that breaks, beside one with a connection of its own.
func runFaults(t *testing.T, target target) {
	t.Helper()
	for name, run := range map[string]func(f faulty){
		"a writer is dead": writerDead, "a writer or reader is late": late, "lost replies to Put": putLost,
		"lost replies to Append": appendLost, "lost replies to others": othersLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for connections most of the time
			direct := suite{T: t, target: target, table: trailed}.fresh()
			f := faulty{suite: direct, direct: direct}
			f.backend, f.faults = target.Faulty(t, direct.location)
			run(f)
		})
	}
}

// faulty is a backend over a connection that breaks.
type faulty struct {
	suite
	direct suite
	faults Faults
}

// lastCommand is the number of commands of an operation to break, one after the other.
const lastCommand = 4

// held is an operation blocked at one of its commands. It is nil if the operation ended without
// reaching that command.
type held struct {
	release func()
	ended   chan error
}

func (f faulty) hold(command int, do func(ctx context.Context) error) *held {
	f.Helper()
	reached, release := f.faults.Hold(command)
	f.Cleanup(release)
	h := &held{release, make(chan error, 1)}
	go func() { h.ended <- do(f.Context()) }()
	select {
	case <-reached:
		return h
	case err := <-h.ended:
		release()
		check.OK(f.T, err, "an operation that was not held")
		return nil
	}
}

// holdEntry starts an entry and blocks it at a command. At command 2 the entry is stored, and has
// not changed anything yet.
func (f faulty) holdEntry(command int, n int64, writes ...store.Write) *held {
	f.Helper()
	return f.hold(command, func(ctx context.Context) error {
		_, err := f.Append(ctx, entry(n), writes...)
		return err
	})
}

func (h *held) resume() error {
	if h == nil {
		return nil
	}
	h.release()
	return <-h.ended
}

// writerDead: an entry takes effect for all that read or continue the trail, even though its writer died.
func writerDead(f faulty) {
	for n := int64(1); n <= 7; n += 3 {
		f.direct.append(n, writing("a", n), writing("b", n))
		h := f.holdEntry(2, n+1, writing("a", n+1), deleting("b"), writing("c", n+1))
		f.check(h != nil, "the entry has taken effect in one command")
		c := n + 1
		switch n {
		case 1:
			f.direct.trail(store.Mark{}, 10)
		case 4:
			f.direct.newest()
		default:
			c = n + 2
			f.direct.append(c, writing("c", c))
			check.OK(f.T, f.direct.Trim(f.Context(), c), "trim")
		}
		f.direct.haveNumbers("records", map[string]int64{"a": n + 1, "b": -1, "c": c})
		if check.OK(f.T, h.resume(), "resume"); c == n+1 {
			equal(f.T, "refs", []store.Ref{{Table: trailed.Name, Key: "a"}, {Table: trailed.Name, Key: "b"}, {Table: trailed.Name, Key: "c"}}, f.direct.history(0)[0].Refs)
			f.direct.append(n + 2)
		}
	}
	f.direct.haveHistory(9, 9)
}

// late: the writer of an entry, or a reader that completes it, continues after others have
// completed the entry and written more.
func late(f faulty) {
	reader := f
	reader.backend, reader.faults = f.Faulty(f.T, f.location)
	n, key := int64(0), ""
	write := func(number int64) store.Write { // -1 deletes
		if number < 0 {
			return deleting(key)
		}
		return writing(key, number)
	}
	for i := range 2 * 2 * 5 * lastCommand * 2 {
		before, own := int64(i%2)*2-1, int64(i/2%2)*3-1
		after := [][]int64{nil, {3}, {-1}, {3, -1}, {-1, 3}}[i/4%5]
		command, byReader := i/20%lastCommand+1, i/20/lastCommand == 1
		about := fmt.Sprintf("%d, then %d, then %d, held at %d, reader: %v", before, own, after, command, byReader)
		key = "key of " + about
		want := own
		n++
		mark := f.direct.append(n, write(before))
		var writer, late *held
		if byReader {
			writer = f.holdEntry(2, n+1, write(own), writing("other", n+1))
			late = reader.hold(command, func(ctx context.Context) error { _, _, err := reader.Trail(ctx, mark, 10); return err })
		} else {
			late = f.holdEntry(command, n+1, write(own), writing("other", n+1))
		}
		n = f.direct.newest().Number // including the entry, unless command 1 stores it
		for _, number := range after {
			n, want = n+1, number
			f.direct.append(n, write(number))
		}
		if i%3 == 0 && command > 1 && !byReader {
			check.OK(f.T, f.direct.Trim(f.Context(), n), "trim")
		}
		if err := late.resume(); !byReader && command == 1 && len(after) > 0 { // another entry has taken the number
			check.ErrorIs(f.T, err, store.ErrConflict, about)
		} else {
			check.OK(f.T, err, about)
		}
		check.OK(f.T, writer.resume(), "resume the writer")
		n = f.direct.newest().Number
		f.direct.haveNumbers(about, map[string]int64{key: want})
	}
}

// eachFault runs a test for every command, once with the command lost and once with its reply lost.
func (f faulty) eachFault(last int, run func(key string, round int64, lost bool, broken func(func() error) error)) {
	for i := range int64(2 * last) {
		run(fmt.Sprintf("key %d", i), i, i%2 == 1, func(do func() error) error {
			f.faults.Lose(int(i/2+1), i%2 == 1)
			defer f.faults.Lose(0, false)
			return do()
		})
	}
}

// putLost: after a success the record is in the returned state, and an executed write returns
// success. A write in an old state never succeeds.
func putLost(f faulty) {
	direct := f.direct.in(owned)
	f.eachFault(2, func(key string, _ int64, lost bool, broken func(func() error) error) {
		var seen, next store.Seen
		for n := int64(1); n <= 2; n++ {
			put := func() (err error) { next, err = f.Put(f.Context(), owned, numbered(key, n), seen); return err }
			err := broken(put)
			f.check(!errors.Is(err, store.ErrConflict) && (err == nil || lost), "put did not find out what became of the write: %v", err)
			if err != nil {
				check.OK(f.T, put(), "put again")
			}
			r := direct.get(key)
			f.check(number(r) == n && r.Seen() == next && next.Version == n, "put returned %+v, and the record is %+v", next, r)
			state := next
			err = broken(put)
			f.check(err != nil && (lost || errors.Is(err, store.ErrConflict)), "put in an old state: %v", err)
			f.check(direct.get(key).Seen() == state, "the record was replaced in an old state")
			seen = state
		}
	})
}

// appendLost: the same for entries.
func appendLost(f faulty) {
	f.eachFault(lastCommand, func(key string, round int64, lost bool, broken func(func() error) error) {
		n, mark := 2*round+2, store.Mark{}
		f.direct.append(n-1, writing("old", n-1))
		add := func() (err error) {
			mark, err = f.Append(f.Context(), entry(n), writing(key, n), deleting("old"))
			return err
		}
		err := broken(add)
		f.check(!errors.Is(err, store.ErrConflict) && (err == nil || lost), "append did not find out what became of the entry: %v", err)
		newest := f.direct.newest()
		f.check(err != nil || newest == mark, "append returned %+v, and the newest is %+v", mark, newest)
		if newest.Number < n {
			f.direct.haveNumbers("without the entry", map[string]int64{key: -1, "old": n - 1})
			check.OK(f.T, add(), "append again")
		}
		newest = f.direct.newest()
		if round < 2 {
			err = broken(add)
			f.check(err != nil && (lost || errors.Is(err, store.ErrConflict)), "append of a number that exists: %v", err)
		}
		f.check(f.direct.newest() == newest, "the newest is %+v, want %+v", f.direct.newest(), newest)
		f.direct.haveNumbers("records", map[string]int64{key: n, "old": -1})
		f.direct.haveHistory(1, n)
	})
}

// othersLost: other operations may fail, and can be repeated.
func othersLost(f faulty) {
	direct := f.direct.in(owned)
	f.eachFault(1, func(key string, _ int64, _ bool, broken func(func() error) error) {
		a, b := numbered(key+"a", 3), numbered(key+"b", 4)
		for _, write := range []func() error{
			func() error { return f.PutAll(f.Context(), owned, []store.Record{a, b}) },
			func() error { direct.same(a, direct.get(a.Key)); direct.same(b, direct.get(b.Key)); return nil },
			func() error { return f.Delete(f.Context(), owned, nil, a.Key) },
			func() error { return f.DeleteAll(f.Context(), owned, a.Key, b.Key) },
		} {
			if broken(write) != nil {
				check.OK(f.T, write(), "again")
			}
		}
		direct.haveKeys()
	})
}
