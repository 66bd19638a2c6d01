package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"oauth-server/internal/store"
)

// runFaults tests a backend over a connection that breaks, beside one that has an own connection.
func runFaults(t *testing.T, target BackendTarget) {
	t.Helper()
	for name, run := range map[string]func(f faulty){
		"a writer is dead": writerDead, "a writer or reader is late": late, "lost replies to Put": putLost,
		"lost replies to Append": appendLost, "lost replies to others": othersLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for connections most of the time
			direct := suite{T: t, BackendTarget: target, table: trailed}.fresh()
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

// lastCommand is how many commands of an operation are broken, one after the other.
const lastCommand = 4

// held is an operation that stands still at one of its commands; nil: it has ended without.
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
		succeed(f.T, "an operation that was not held", err)
		return nil
	}
}

// holdEntry starts an entry that stands still at a command; 2: it is stored, and has changed nothing yet.
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

// writerDead: an entry takes effect for all that read the trail or add to it, though its writer died.
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
			succeed(f.T, "trim", f.direct.Trim(f.Context(), c))
		}
		f.direct.haveNumbers("records", map[string]int64{"a": n + 1, "b": -1, "c": c})
		if succeed(f.T, "resume", h.resume()); c == n+1 {
			equal(f.T, "refs", []store.Ref{{Table: trailed.Name, Key: "a"}, {Table: trailed.Name, Key: "b"}, {Table: trailed.Name, Key: "c"}}, f.direct.history(0)[0].Refs)
			f.direct.append(n + 2)
		}
	}
	f.direct.haveHistory(9, 9)
}

// late has the writer of an entry, or a reader that completes it, continue after others have completed it and
// have written more.
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
		n = f.direct.newest().Number // with the entry, unless command 1 stores that
		for _, number := range after {
			n, want = n+1, number
			f.direct.append(n, write(number))
		}
		if i%3 == 0 && command > 1 && !byReader {
			succeed(f.T, "trim", f.direct.Trim(f.Context(), n))
		}
		if err := late.resume(); !byReader && command == 1 && len(after) > 0 { // another entry has the number
			failWith(f.T, about, store.ErrConflict, err)
		} else {
			succeed(f.T, about, err)
		}
		succeed(f.T, "resume the writer", writer.resume())
		n = f.direct.newest().Number
		f.direct.haveNumbers(about, map[string]int64{key: want})
	}
}

// eachFault runs a test for every command that may be lost, or the reply to it.
func (f faulty) eachFault(last int, run func(key string, round int64, lost bool, broken func(func() error) error)) {
	for i := range int64(2 * last) {
		run(fmt.Sprintf("key %d", i), i, i%2 == 1, func(do func() error) error {
			f.faults.Lose(int(i/2+1), i%2 == 1)
			defer f.faults.Lose(0, false)
			return do()
		})
	}
}

// putLost: success is a record in the state that was returned, and an executed write is a success. One in an old
// state never is.
func putLost(f faulty) {
	direct := f.direct.in(owned)
	f.eachFault(2, func(key string, _ int64, lost bool, broken func(func() error) error) {
		var seen, next store.Seen
		for n := int64(1); n <= 2; n++ {
			put := func() (err error) { next, err = f.Put(f.Context(), owned, numbered(key, n), seen); return err }
			err := broken(put)
			f.check(!errors.Is(err, store.ErrConflict) && (err == nil || lost), "put did not find out what became of the write: %v", err)
			if err != nil {
				succeed(f.T, "put again", put())
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

// appendLost: the same of entries.
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
			succeed(f.T, "append again", add())
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

// othersLost: these may fail, and can be repeated.
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
				succeed(f.T, "again", write())
			}
		}
		direct.haveKeys()
	})
}
