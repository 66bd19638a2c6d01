package clientcfg_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// slowStore reads all clients as they are, and then waits until it may return them, or fail.
type slowStore struct {
	*fakeStore
	may chan error
}

func (s *slowStore) Clients(ctx context.Context, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	var records []clientcfg.Record
	mark, err := s.fakeStore.Clients(ctx, func(r clientcfg.Record) { records = append(records, r) })
	if err != nil {
		return mark, err
	}
	select {
	case err := <-s.may:
		for _, r := range records {
			each(r)
		}
		return mark, err
	case <-ctx.Done():
		return mark, ctx.Err()
	}
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of the bubble
	synctest.Wait()
}

// slowRead is a source that reads all clients, which takes long.
type slowRead struct {
	*testing.T
	store     *slowStore
	source    *clientcfg.Source
	refreshed chan error
}

// beginSlowRead lets a source of some clients refresh, until it reads all because of what the test does.
func beginSlowRead(t *testing.T, because func(store *slowStore), list ...clientcfg.Client) *slowRead {
	t.Helper()
	r := &slowRead{T: t, store: &slowStore{fakeStore: storeOf(list...), may: make(chan error, 1)}, refreshed: make(chan error, 1)}
	r.store.may <- nil
	var err error
	r.source, err = clientcfg.NewSource(t.Context(), r.store, nil)
	check.OK(t, err)
	because(r.store)
	go func() {
		for r.store.readsOfAll() == 1 {
			time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
			err = r.source.Refresh(t.Context())
		}
		r.refreshed <- err
	}()
	for r.store.readsOfAll() == 1 {
		pass(time.Second)
	}
	return r
}

func (f *fakeStore) readsOfAll() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// end lets the read of all clients return, and waits for the refresh.
func (r *slowRead) end(failure error) error {
	r.store.may <- failure
	return <-r.refreshed
}

func (r *slowRead) has(what string, want ...string) {
	r.Helper()
	check.Equal(r, "clients "+what, ids(r.source.Directory()), want)
}

// silently has an earlier release change b and add silent.
func silently(store *slowStore) {
	b := named("b")
	b.Name = "changed silently"
	store.put(true, named("a"), b, named("c"), named("silent"), named("a2"))
}

// TestChangesAreFollowedWhileAllClientsAreRead: what is in memory stays the newest, changes act within
// a second, and a read that is older than they are undoes none of them.
func TestChangesAreFollowedWhileAllClientsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginSlowRead(t, silently, named("a"), named("a2"), named("b"), named("c"))
		for range 30 {
			pass(time.Second)
			if age := time.Since(r.source.CheckedAt()); age > time.Second {
				t.Errorf("the clients are of %v ago", age)
			}
			check.OK(t, r.source.Renew(t.Context(), 2*time.Second))
		}
		revoked, b := named("c"), r.store.clients["b"]
		revoked.Stamp = secret.NewStamp()
		unreadable := clientcfg.Client{ID: "unreadable"}
		r.store.put(false, b, revoked, named("a2"), named("silent"), named("new"), named("brief"), unreadable) // without a
		pass(time.Second)
		r.has("within a second", "a2", "b", "brief", "c", "new")
		r.store.put(false, b, revoked, named("a2"), named("silent"), named("new"), unreadable)
		check.OK(t, r.source.Renew(t.Context(), 0)) // by a request
		r.has("after a request", "a2", "b", "c", "new")

		before := r.source.Directory()
		check.OK(t, r.end(nil))
		r.has("when all are read", "a2", "b", "c", "new", "silent")
		if now := r.source.Directory(); !now.Shares(before, "c") || !now.Shares(before, "a2") || now.Shares(before, "b") {
			t.Error("what has not changed is in memory again")
		}
		if c, _ := r.source.Client("c"); c.Stamp != revoked.Stamp {
			t.Error("the read of all has undone a revocation")
		}
		if got, _ := r.source.Client("b"); got.Name != b.Name {
			t.Error("the silent change is not seen")
		}
		if _, ok := r.source.Directory().Unreadable()["unreadable"]; !ok {
			t.Error("the read of all has taken out one that cannot be read")
		}
		check.Equal(t, "revision", r.source.Directory().Revision(), int64(len(r.store.changed)))
		for range 3600 {
			pass(time.Second)
			check.OK(t, r.source.Refresh(t.Context()))
		}
		check.Equal(t, "reads of all clients", r.store.reads, 2)
	})
}

// TestChangesAreFollowedAfterALostMark: what has changed before is not known until all are read, so the
// directory is not the newest, and says so. What changes from then on acts within a second.
func TestChangesAreFollowedAfterALostMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginSlowRead(t, func(store *slowStore) {
			store.put(false, named("b"), named("missed"))
			store.lost = true
		}, named("a"), named("b"))
		checked := r.source.CheckedAt()
		r.store.put(false, named("missed"), named("new")) // without b
		pass(time.Second)
		r.has("within a second", "a", "new")
		if err := r.source.Renew(t.Context(), 2*time.Second); !errors.Is(err, clientcfg.ErrMarkLost) {
			t.Errorf("a request for the newest clients: %v", err)
		}
		check.Equal(t, "checked at", r.source.CheckedAt(), checked)
		check.OK(t, r.end(nil))
		r.has("when all are read", "missed", "new")
		if age := time.Since(r.source.CheckedAt()); age > 2*time.Second {
			t.Errorf("the clients are of %v ago, and the read began later", age)
		}
		check.OK(t, r.source.Renew(t.Context(), 0))
		check.Equal(t, "reads of all clients", r.store.reads, 2)
	})
}

// TestAReadOfAllThatFails is tried again, and what was followed meanwhile stays. The directory is not
// taken for the newest in between.
func TestAReadOfAllThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginSlowRead(t, func(store *slowStore) {
			store.put(false, named("missed"))
			store.lost = true
		}, named("a"))
		r.store.put(false, named("missed"), named("new"))
		pass(time.Second)
		requireError(t, r.end(errors.New("down")), "down")
		r.has("after the failure", "a", "new")
		if err := r.source.Renew(t.Context(), 0); !errors.Is(err, clientcfg.ErrMarkLost) {
			t.Errorf("a request for the newest clients: %v", err)
		}
		r.store.may <- nil
		check.OK(t, r.source.Refresh(t.Context()))
		r.has("when all are read", "missed", "new")
	})
}

// TestMarkIsLostAgain while all clients are read: they are read once more.
func TestMarkIsLostAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginSlowRead(t, silently, named("a"), named("a2"), named("b"), named("c"))
		r.store.put(false, named("missed"))
		r.store.mu.Lock()
		r.store.lost = true
		r.store.mu.Unlock()
		pass(2 * time.Second)
		check.OK(t, r.end(nil))
		r.has("when all are read", "a", "a2", "b", "c", "silent")
		if age := time.Since(r.source.CheckedAt()); age < 2*time.Second {
			t.Errorf("it is taken for the newest of %v ago", age)
		}
		r.store.may <- nil
		check.OK(t, r.source.Refresh(t.Context()))
		r.has("when all are read again", "missed")
	})
}

// TestRequestsLeaveReadsOfAllToTheTask: Renew neither reads all clients nor waits until that was done, and
// there are never two such reads at once.
func TestRequestsLeaveReadsOfAllToTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginSlowRead(t, func(store *slowStore) { store.lost = true }, named("a"))
		asked := time.Now()
		for _, ask := range []func() error{
			func() error { return r.source.Renew(t.Context(), 0) }, func() error { return r.source.Refresh(t.Context()) },
		} {
			if err := ask(); !errors.Is(err, clientcfg.ErrMarkLost) {
				t.Errorf("after the mark was lost: %v", err)
			}
		}
		if waited := time.Since(asked); waited > time.Second {
			t.Errorf("waited %v for a read of all clients", waited)
		}
		check.OK(t, r.end(nil))
		check.OK(t, r.source.Renew(t.Context(), 0))
		check.Equal(t, "reads of all clients", r.store.reads, 2)
		r.store.lost = true
		if err := r.source.Renew(t.Context(), 0); !errors.Is(err, clientcfg.ErrMarkLost) {
			t.Errorf("after the mark was lost again: %v", err)
		}
		check.Equal(t, "reads of all clients", r.store.reads, 2)
	})
}

// TestStopWhileAllClientsAreRead: the refresh ends with its context.
func TestStopWhileAllClientsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: storeOf(named("a")), may: make(chan error, 1)}
		store.may <- nil
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		check.OK(t, err)
		store.lost = true
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		if err := source.Refresh(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := ids(source.Directory()); !slices.Equal(got, []string{"a"}) {
			t.Errorf("clients %q", got)
		}
	})
}
