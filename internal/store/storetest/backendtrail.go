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

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
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
			s.putAll(expiring("a", Epoch), expiring("c", Epoch))
			defer spoil(s.T, s.Backend, s.table, "b")
			return s.put(expiring("b", Epoch), store.Seen{})
		}
		seen := fill()
		have("all", store.Query{}, "a", "b*", "c")
		have("one", store.Query{Prefix: "b", Limit: 1}, "b*")
		have("others of the owner", store.Query{Owner: "owner"}, "a", "c")
		have("others that changed", store.Query{ChangedSince: Epoch.AddDate(-200, 0, 0)}, "a", "c")
		check.ErrorIs(s.T, s.get("b").Err, store.ErrUnreadable, "get")
		_, err := s.Put(s.Context(), s.table, numbered("b", 1), store.Seen{})
		check.ErrorIs(s.T, err, store.ErrConflict, "put where an unreadable record is")
		if err = s.PutAll(s.Context(), s.table, []store.Record{expiring("a", Epoch), expiring("d", Epoch)}); err != nil {
			check.ErrorIs(s.T, err, store.ErrUnreadable, "put all")
		}
		have("after writes", store.Query{}, "a", "b*", "c", "d")
		s.delete("b")
		check.ErrorIs(s.T, s.Delete(s.Context(), s.table, &seen, "b"), store.ErrConflict, "delete the former")
		s.put(expiring("b", Epoch), store.Seen{})
		have("of the owner", store.Query{Owner: "owner"}, "a", "b", "c", "d")
		check.OK(s.T, s.DeleteAll(s.Context(), s.table, "a", "b", "c", "d"), "delete")
		fill()
		s.sweep(Epoch.AddDate(0, 0, 1))
		check.OK(s.T, s.DeleteAll(s.Context(), s.table, "b"), "delete")
		s.haveKeys()
		s = s.in(trailed)
		s.append(1, writing("a", 1), writing("b", 1), writing("c", 1))
		spoil(s.T, s.Backend, s.table, "a")
		spoil(s.T, s.Backend, s.table, "c")
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
		spoil(s.T, s.Backend, 2)
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
		spoil(s.T, s.Backend, 3)
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

// calls returns the errors of all methods, called with one context.
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
	_, errs["Exchange to write"] = s.Exchange(ctx, []exchange.Item{{ID: counterID("new"), Write: adding("me", 1)}})
	_, errs["Exchange to read"] = s.Exchange(ctx, []exchange.Item{{ID: counterID("new"), Read: true}})
	_, errs["Now"] = s.Now(ctx)
	if sweeper, ok := s.Backend.(store.Sweeper); ok {
		_, errs["Sweep"] = sweeper.Sweep(ctx, Epoch.AddDate(1, 0, 0))
	}
	return errs
}

// contextsBefore: a call with a cancelled context fails without effect.
func contextsBefore(s suite) {
	there := expiring("there", Epoch)
	s.in(volatile).put(there, store.Seen{})
	seen := s.put(there, store.Seen{})
	s.append(1, writing("there", 1))
	s.append(2, writing("there", 2))
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for name, err := range s.calls(ctx, seen) {
		check.ErrorIs(s.T, err, context.Canceled, name)
	}
	s.haveKeys("there")
	s.in(volatile).haveKeys("there")
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
			r := expiring(fmt.Sprintf("key %02d", k), Epoch.Add(time.Duration(k)*time.Hour))
			r.Value = numbered("", k*int64(i)).Value
			s.in(table).put(r, s.in(table).put(numbered(r.Key, k), store.Seen{}))
		}
		s.in(table).delete("key 05")
	}
	s.in(volatile).put(numbered("key 00", 100), store.Seen{})
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
	s.sweep(Epoch.Add(10*time.Hour + time.Millisecond))
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

// backendEnv carries the location to the child process.
const backendEnv = "STORETEST_BACKEND_LOCATION"

// Child returns at once, unless the suite started this process as the one to be killed. In
// that case it writes until it is killed, and prints the key and the number of each stored record.
// TestMain of a backend calls it first.
func Child(target Target) {
	location, ok := os.LookupEnv(backendEnv)
	if !ok {
		return
	}
	done := func(err error, key string, n int64) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		fmt.Println(key, n)
	}
	ctx := context.Background() //nolint:forbidigo // shared by tests
	b, err := target.Open(ctx, location)
	done(err, "newest", 0)
	for w := range 8 {
		go func() {
			var seen store.Seen
			for n := int64(1); ; n++ {
				if n%3 == 0 {
					seen = store.Seen{} // a new key
				}
				key := fmt.Sprintf("%d/%d", w, n/3)
				next, err := b.Put(ctx, Tables[w%2], numbered(key, n), seen)
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
	child.Env, child.Stderr = append(os.Environ(), backendEnv+"="+s.location), os.Stderr
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
		got := number(s.in(Tables[(key[0]-'0')%2]).get(key))
		s.check(got == least || got == least+1, "%s is of %d, and %d was answered", key, got, least)
	}
}

// runFaults tests a backend over a connection that breaks, beside one with a connection of its own.
func runFaults(t *testing.T, target Target) {
	t.Helper()
	for name, run := range map[string]func(f faulty){
		"a writer is dead": writerDead, "a writer or reader is late": late, "lost replies to Put": putLost,
		"lost replies to Append": appendLost, "lost replies to others": othersLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for connections most of the time
			direct := suite{T: t, Target: target, table: trailed}.fresh()
			f := faulty{suite: direct, direct: direct}
			f.Backend, f.faults = target.Faulty(t, direct.location)
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
	reader.Backend, reader.faults = f.Faulty(f.T, f.location)
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
