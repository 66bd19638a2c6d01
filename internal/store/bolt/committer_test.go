package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

var errSpoiled = errors.New("spoiled")

// hold blocks the writer until the returned function is called, so that writes in between form one
// batch.
func hold(s *Store) (release func()) {
	held, wait := make(chan struct{}), make(chan struct{})
	finished := make(chan error, 1)
	go func() {
		finished <- s.writes.do(context.Background(), func(*writeTx) error {
			close(held)
			<-wait
			return nil
		})
	}()
	<-held
	return func() {
		close(wait)
		if err := <-finished; err != nil {
			panic(err)
		}
	}
}

// queued waits until n writes are waiting.
func queued(s *Store, n int) {
	for {
		s.writes.mu.Lock()
		have := len(s.writes.queue)
		s.writes.mu.Unlock()
		if have == n {
			return
		}
	}
}

// inOneBatch makes the writer take all the changes at once, in their order.
func inOneBatch(t *testing.T, s *Store, changes []func(*writeTx) error) []error {
	t.Helper()
	release := hold(s)
	answers := make([]chan error, len(changes))
	for i, change := range changes {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- s.writes.do(t.Context(), change) }()
		queued(s, i+1)
	}
	release()
	errs := make([]error, len(changes))
	for i := range answers {
		errs[i] = <-answers[i]
	}
	return errs
}

var things = store.Table{Name: "things"}

func putKey(key string) func(*writeTx) error { return putValue(key, nil) }

func putValue(key string, value []byte) func(*writeTx) error {
	return func(w *writeTx) error {
		tb, err := w.table(things)
		if err != nil {
			return err
		}
		return tb.put(key, "", value)
	}
}

func keysIn(t *testing.T, s *Store) (keys string) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bbolt.Tx) error {
		for key := range from(tx.Bucket([]byte(things.Name)), "") {
			keys += string(key) + " "
		}
		return nil
	})
	check.OK(t, err)
	return keys
}

// TestFailingChange: a change that fails half-way leaves nothing behind, and does not affect other
// changes in the same transaction.
func TestFailingChange(t *testing.T) {
	for name, spoil := range map[string]func() error{
		"an error":      func() error { return errSpoiled },
		"a panic":       func() error { panic("spoiled") },
		"a nil pointer": func() error { var w *writeTx; w.touch(); return nil },
	} {
		for _, touch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, touched=%v", name, touch), func(t *testing.T) {
				s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
				spoiler := func(w *writeTx) error {
					if touch {
						_ = putKey("half")(w)
					}
					return spoil()
				}
				errs := inOneBatch(t, s, []func(*writeTx) error{
					putKey("a"), spoiler, putKey("b"), spoiler, putKey("c"),
				})
				for i, err := range errs {
					if wrong := i == 1 || i == 3; (err != nil) != wrong {
						t.Errorf("change %d: %v", i, err)
					}
				}
				check.Equal(t, "keys", keysIn(t, s), "a b c ")
			})
		}
	}
}

// TestOneTransaction: writes that arrive during a commit share the next one.
func TestOneTransaction(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	ids := make([]int, 64)
	changes := make([]func(*writeTx) error, len(ids))
	for i := range changes {
		changes[i] = func(w *writeTx) error {
			ids[i] = w.tx.ID()
			return putKey(fmt.Sprintf("key %d", i))(w)
		}
	}
	check.OK(t, errors.Join(inOneBatch(t, s, changes)...))
	for i, id := range ids {
		check.Equal(t, fmt.Sprint("transaction of change ", i), id, ids[0])
	}
}

// TestFullDisk: a write that does not fit fails alone and changes nothing. The store continues.
func TestFullDisk(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "data.db"), Options{maxSize: 1 << 20})
	check.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	if err := s.writes.do(t.Context(), putValue("big", make([]byte, 4<<20))); err == nil {
		t.Fatal("4 MiB went into a file of 1 MiB")
	}
	check.OK(t, s.writes.do(t.Context(), putKey("small")), "after a write that did not fit")
	check.Equal(t, "keys", keysIn(t, s), "small ")
}

// TestWithdraw: a queued write is withdrawn when its context ends.
func TestWithdraw(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	release := hold(s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- s.writes.do(ctx, putKey("late")) }()
	queued(s, 1)
	cancel()
	check.ErrorIs(t, <-answer, context.Canceled)
	release()
	check.Equal(t, "keys", keysIn(t, s), "")
}

// TestStaysForTheAnswer: once its commit has begun, a write returns the outcome even if the context
// ends.
func TestStaysForTheAnswer(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.writes.do(ctx, func(w *writeTx) error {
		cancel()
		return putKey("u")(w)
	})
	if err != nil || keysIn(t, s) != "u " {
		t.Errorf("got %v with keys %q", err, keysIn(t, s))
	}
}

// TestStops: after a commit with an unknown outcome, all writes and reads fail.
func TestStops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	cause := errors.New("disk on fire")
	if err := s.writes.refuse(fmt.Errorf("%w: %w", ErrFailed, cause)); !errors.Is(err, ErrFailed) || !errors.Is(err, cause) {
		t.Fatal(err)
	}
	read := s.List(t.Context(), things, store.Query{}, nil)
	write := s.writes.do(t.Context(), putKey("u"))
	for name, err := range map[string]error{"read": read, "write": write} {
		if !errors.Is(err, ErrFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check.OK(t, s.Close())
	check.Equal(t, "keys", keysIn(t, mustOpen(t, path)), "")
}

// TestCloseStuck: when bbolt cannot release its lock, closing returns an error instead of waiting for it.
func TestCloseStuck(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	tx, err := s.db.Begin(true)
	check.OK(t, err)
	_ = s.writes.refuse(fmt.Errorf("%w: %w: %w", ErrFailed, ErrCorrupt, errPanicked))
	for range 2 {
		if err := s.Close(); !errors.Is(err, ErrFailed) || !errors.Is(err, ErrCorrupt) {
			t.Errorf("Close() = %v, want ErrFailed and ErrCorrupt", err)
		}
	}
	check.OK(t, errors.Join(tx.Rollback(), s.db.Close()))
}
