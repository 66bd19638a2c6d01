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
	for name, run := range map[string]func(direct, s suite, f Faults){
		"the writer of an entry is dead": deadWriter, "the writer of an entry is late": lateWriter, "a reader of an entry is late": lateReader,
		"an unfinished entry is trimmed": trimUnfinished,
		"put without a reply":            each(2, putLost), "conflict without a reply": each(1, conflictLost), "append without a reply": each(lastCommand, appendLost),
		"conflict of entries without a reply": each(1, appendConflictLost), "other writes without a reply": each(1, othersLost),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for connections most of the time
			direct := suite{T: t, BackendTarget: target, table: trailed}.fresh()
			over := direct
			var f Faults
			over.Backend, f = target.Faulty(t, direct.location)
			run(direct, over, f)
		})
	}
}

// lastCommand is how many commands of an entry are broken, one after the other.
const lastCommand = 4

// held is an operation that stands still at one of its commands.
type held struct {
	release func()
	ended   chan error
}

// resume continues what was held.
func (h *held) resume() error {
	if h == nil {
		return nil
	}
	h.release()
	return <-h.ended
}

// hold starts an operation that stops at a command; nil: it has ended before.
func (s suite) hold(f Faults, command int, do func(ctx context.Context) error) *held {
	s.Helper()
	reached, release := f.Hold(command)
	s.Cleanup(release)
	h := &held{release: release, ended: make(chan error, 1)}
	go func() { h.ended <- do(s.Context()) }()
	select {
	case <-reached:
		return h
	case err := <-h.ended:
		release()
		succeed(s.T, "an operation that was not held", err)
		return nil
	}
}

// unfinished starts an entry that has not changed its records yet.
func (s suite) unfinished(f Faults, command int, n int64, writes ...store.Write) *held {
	s.Helper()
	return s.hold(f, command, func(ctx context.Context) error {
		_, err := s.Append(ctx, entry(n), writes...)
		return err
	})
}

// deadWriter: an entry takes effect for all that read the trail or add to it, though its writer died.
func deadWriter(direct, s suite, f Faults) {
	for n := int64(1); n <= 7; n += 3 {
		direct.append(n, writing("a", n), writing("b", n))
		h := s.unfinished(f, 2, n+1, writing("a", n+1), deleting("b"), writing("c", n+1))
		s.check(h != nil, "the entry has taken effect in one command")
		c := n + 1
		switch n {
		case 1:
			direct.trail(store.Mark{}, 10)
		case 4:
			direct.newest()
		default:
			c = n + 2
			direct.append(c, writing("c", c))
		}
		direct.haveNumbers("records", map[string]int64{"a": n + 1, "b": -1, "c": c})
		equal(s.T, "refs", []store.Ref{{Table: trailed.Name, Key: "a"}, {Table: trailed.Name, Key: "b"}, {Table: trailed.Name, Key: "c"}}, direct.history(n + 2)[0].Refs)
		if succeed(s.T, "resume", h.resume()); c == n+1 {
			direct.append(n + 2)
		}
	}
	direct.haveHistory(1, 9)
}

// lateWriter has a writer continue after others have completed its entry, and have written more.
func lateWriter(direct, s suite, f Faults) {
	n, key := int64(0), ""
	next := func(number int64) {
		if n++; number < 0 {
			direct.append(n, deleting(key))
		} else {
			direct.append(n, writing(key, number))
		}
	}
	for before := int64(-1); before <= 1; before += 2 { // -1 deletes a record
		for own := int64(-1); own <= 2; own += 3 {
			for _, after := range [][]int64{nil, {3}, {-1}, {3, -1}, {-1, 3}} {
				for command := 1; command <= lastCommand; command++ {
					trim := command%2 == 0
					about := fmt.Sprintf("%d, then %d, then %d, held at %d", before, own, after, command)
					key = "key of " + about
					next(before)
					write, want := writing(key, own), own
					if own < 0 {
						write = deleting(key)
					}
					h := s.unfinished(f, command, n+1, write, writing("other", n+1))
					n = direct.newest().Number // with the entry, unless command is 1
					for _, number := range after {
						next(number)
						want = number
					}
					if trim {
						succeed(s.T, "trim", direct.Trim(s.Context(), n))
					}
					if err := h.resume(); command == 1 && len(after) > 0 { // another entry has the number
						failWith(s.T, about, store.ErrConflict, err)
					} else {
						succeed(s.T, about, err)
					}
					n = direct.newest().Number
					direct.haveNumbers(about, map[string]int64{key: want})
				}
			}
		}
	}
}

// lateReader has a reader that completes the entry of a dead writer continue late.
func lateReader(direct, s suite, f Faults) {
	reader := s
	var readerFaults Faults
	reader.Backend, readerFaults = s.Faulty(s.T, direct.location)
	n := int64(0)
	for command := 1; command <= lastCommand; command++ {
		for _, later := range []int64{-1, 3} {
			direct.append(n+1, writing("old", 1))
			dead := s.unfinished(f, 2, n+2, writing("key", 2), deleting("old"))
			h := s.hold(readerFaults, command, func(ctx context.Context) error {
				_, _, err := reader.Trail(ctx, store.Mark{}, 1000)
				return err
			})
			direct.newest()
			change := deleting("key")
			if later > 0 {
				change = writing("key", later)
			}
			direct.append(n+3, change, writing("old", 3))
			succeed(s.T, "resume the reader", h.resume())
			succeed(s.T, "resume the writer", dead.resume())
			direct.newest()
			direct.haveNumbers(fmt.Sprintf("held at %d", command), map[string]int64{"key": later, "old": 3})
			n += 3
		}
	}
}

// trimUnfinished: an entry takes effect before it is removed.
func trimUnfinished(direct, s suite, f Faults) {
	h := s.unfinished(f, 2, 1, writing("a", 1))
	direct.append(2, writing("b", 2))
	succeed(s.T, "trim", direct.Trim(s.Context(), 1))
	direct.haveNumbers("records", map[string]int64{"a": 1, "b": 2})
	direct.haveHistory(2, 2)
	succeed(s.T, "resume", h.resume())
}

// faulty is a write of which one command is broken, with or without its effect.
type faulty struct {
	suite
	direct suite
	key    string
	round  int64
	whole  bool // the command is lost
	lose   func()
	mend   func()
}

// each runs a test for every command up to the last.
func each(last int, run func(f faulty)) func(direct, s suite, f Faults) {
	return func(direct, s suite, f Faults) {
		round := int64(0)
		for command := 1; command <= last; command++ {
			for _, whole := range []bool{false, true} {
				round++
				run(faulty{
					suite: s, direct: direct, key: fmt.Sprintf("key %d", round), round: round, whole: whole,
					lose: func() { f.Lose(command, whole) }, mend: func() { f.Lose(0, false) },
				})
			}
		}
	}
}

// putLost: success is a record in the state that was returned. An executed write is a success.
func putLost(f faulty) {
	direct := f.direct.in(owned)
	var seen store.Seen
	for n := int64(1); n <= 2; n++ {
		f.lose()
		next, err := f.Put(f.Context(), owned, numbered(f.key, n), seen)
		f.mend()
		f.check(!errors.Is(err, store.ErrConflict) && (err == nil || f.whole), "put did not find out what became of the write: %v", err)
		if err != nil {
			next = direct.put(numbered(f.key, n), seen)
		}
		r := direct.get(f.key)
		f.check(number(r) == n && r.Seen() == next && next.Version == n, "put returned %+v, and the record is %+v", next, r)
		seen = next
	}
}

// conflictLost: a write in an old state is never a success.
func conflictLost(f faulty) {
	direct := f.direct.in(owned)
	seen := direct.put(numbered(f.key, 1), store.Seen{})
	for _, old := range []store.Seen{{}, {Version: 1, Nonce: seen.Nonce + 1}} {
		f.lose()
		_, err := f.Put(f.Context(), owned, numbered(f.key, 2), old)
		f.mend()
		f.check(err != nil && (f.whole || errors.Is(err, store.ErrConflict)), "put in an old state: %v", err)
	}
	r := direct.get(f.key)
	f.check(number(r) == 1 && r.Seen() == seen, "the record was replaced: %+v", r)
}

func appendLost(f faulty) {
	next := f.direct.newest().Number + 1
	f.direct.append(next, writing("old", next))
	next++
	f.lose()
	m, err := f.Append(f.Context(), entry(next), writing(f.key, next), deleting("old"))
	f.mend()
	f.check(!errors.Is(err, store.ErrConflict) && (err == nil || f.whole), "append did not find out what became of the entry: %v", err)
	newest := f.direct.newest()
	f.check(err != nil || newest == m, "append returned %+v, and the newest is %+v", m, newest)
	want := map[string]int64{f.key: next, "old": -1}
	if newest.Number < next {
		want = map[string]int64{f.key: -1, "old": next - 1}
	}
	f.direct.haveNumbers("records", want)
	f.direct.haveHistory(1, newest.Number)
}

func appendConflictLost(f faulty) {
	newest := f.direct.append(f.round, writing("present", f.round))
	f.lose()
	_, err := f.Append(f.Context(), entry(f.round), writing(f.key, 1), deleting("present"))
	f.mend()
	f.check(err != nil && (f.whole || errors.Is(err, store.ErrConflict)), "append of a number that exists: %v", err)
	f.direct.haveNumbers("records", map[string]int64{"present": f.round, f.key: -1})
	f.check(f.direct.newest() == newest, "the newest is %+v, want %+v", f.direct.newest(), newest)
}

// othersLost: these may fail, and can be repeated.
func othersLost(f faulty) {
	direct := f.direct.in(owned)
	a, b := numbered(f.key+"a", 3), numbered(f.key+"b", 4)
	for _, write := range []func() error{
		func() error { return f.PutAll(f.Context(), owned, []store.Record{a, b}) },
		func() error { direct.same(a, direct.get(a.Key)); direct.same(b, direct.get(b.Key)); return nil },
		func() error { return f.Delete(f.Context(), owned, nil, a.Key) },
		func() error { return f.DeleteAll(f.Context(), owned, a.Key, b.Key) },
	} {
		f.lose()
		err := write()
		f.mend()
		if err != nil {
			succeed(f.T, "again", write())
		}
	}
	direct.haveKeys()
}
