package clientcfg_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// policyStore keeps the set in memory, and the test can put anything in.
type policyStore struct {
	mu    sync.Mutex
	set   clientcfg.PolicySet
	audit []clientcfg.AuditEntry
	err   error
	reads int
	race  int // so many writes of others come first
}

func (f *policyStore) PolicySet(context.Context) (clientcfg.PolicySet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	return f.set, f.err
}

func (f *policyStore) PolicyVersion(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set.Version, f.err
}

func (f *policyStore) ReplacePolicySet(_ context.Context, next clientcfg.PolicySet, entry clientcfg.AuditEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.race > 0 {
		f.race--
		f.set.Version++
	}
	if f.err != nil || next.Version != f.set.Version+1 || entry.Version != next.Version {
		return errors.Join(f.err, clientcfg.ErrPolicyConflict)
	}
	f.set, f.audit = next, append(f.audit, entry)
	return nil
}

func (f *policyStore) put(set clientcfg.PolicySet, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set.Version = f.set.Version + 1
	f.set, f.err = set, err
}

func newPolicySource(t *testing.T, store clientcfg.PolicyStore) *clientcfg.PolicySource {
	t.Helper()
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{Base: fileSettings()})
	requireError(t, err, "")
	return s
}

func userLimit(s *clientcfg.PolicySource, id string) int64 {
	return s.Snapshot().For(id).User.All()[0].Requests
}

// limitShop is an edit that gives shop a policy.
func limitShop(requests int64) clientcfg.Edit {
	return func(p *clientcfg.PolicySnapshot) (clientcfg.PolicySet, clientcfg.AuditEntry, error) {
		policy := clientcfg.ClientPolicy{Policy: ratelimit.Policy{User: limits(requests)}}
		return p.Set().WithPolicy("shop", &policy), clientcfg.AuditEntry{Reason: strconv.FormatInt(requests, 10)}, nil
	}
}

func brokenSet() clientcfg.PolicySet {
	return clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{User: limits(0)}})
}

func TestPolicySourceStartsOnlyWithGoodPolicies(t *testing.T) {
	for name, store := range map[string]*policyStore{
		"no store": {err: errors.New("down")}, "an impossible limit": {set: brokenSet()},
	} {
		if _, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{}); err == nil {
			t.Errorf("%s: it started", name)
		}
	}
	s, err := clientcfg.NewPolicySource(t.Context(), &policyStore{}, clientcfg.PolicyOptions{})
	requireError(t, err, "")
	if got := userLimit(s, "anybody"); got != ratelimit.DefaultLimit().Requests {
		t.Errorf("without a file the limit is %d", got)
	}
}

func TestPolicySourceReadsOnlyWhenTheVersionMoved(t *testing.T) {
	store := &policyStore{}
	s := newPolicySource(t, store)
	requireError(t, s.Refresh(t.Context()), "")
	if store.reads != 1 {
		t.Fatalf("%d reads of the whole set, want 1", store.reads)
	}
	store.put(clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{User: limits(3)}}), nil)
	requireError(t, s.Refresh(t.Context()), "")
	if got := userLimit(s, "shop"); got != 3 {
		t.Errorf("the limit is %d, want 3", got)
	}
}

func TestPolicySourceKeepsTheLastGoodPolicies(t *testing.T) {
	store := &policyStore{}
	s := newPolicySource(t, store)
	good := s.Snapshot()
	for _, bad := range []struct {
		name, want string
		set        clientcfg.PolicySet
		err        error
	}{
		{"impossible", "refused version", brokenSet(), nil},
		{"unreadable", "cannot be read", clientcfg.PolicySet{}, clientcfg.ErrUnreadable},
	} {
		store.put(bad.set, bad.err)
		requireError(t, s.Refresh(t.Context()), bad.want)
		if s.Snapshot() != good {
			t.Errorf("%s: the good policies are gone", bad.name)
		}
		if st := s.Status(); !st.Refused() || st.Version != good.Version() {
			t.Errorf("%s: the status is %+v", bad.name, st)
		}
	}
	store.put(clientcfg.PolicySet{}, errors.New("down"))
	requireError(t, s.Refresh(t.Context()), "down")
	if s.Status().Refused() {
		t.Error("a store that is away has refused nothing")
	}
	store.put(clientcfg.PolicySet{}, nil)
	requireError(t, s.Refresh(t.Context()), "")
	if st := s.Status(); st.Err != nil || st.Refused() || st.Version != store.set.Version || st.CheckedAt.IsZero() {
		t.Errorf("afterwards the status is %+v", st)
	}
}

// watchableStore tells of changes when the test says so.
type watchableStore struct {
	policyStore
	tell chan error // nil: something has changed; an error ends the watch
}

func (w *watchableStore) WatchPolicies(ctx context.Context, changed func()) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.tell:
			if err != nil {
				return err
			}
			changed()
		}
	}
}

func TestWatchRefreshesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watchableStore{tell: make(chan error)}
		s := newPolicySource(t, store)
		log := slog.New(slog.DiscardHandler)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		watch := func() { done <- s.Watch(ctx, log) }
		go watch()
		store.put(clientcfg.PolicySet{}, nil)
		store.tell <- nil
		synctest.Wait()
		if s.Snapshot().Version() != 1 {
			t.Error("a change that the store told of was not seen")
		}
		store.tell <- errors.New("broken off")
		requireError(t, <-done, "broken off")
		go watch()
		store.tell <- clientcfg.ErrNoWatch // waits for the end, and is no failure
		stop()
		requireError(t, <-done, "")
	})
}

func TestWatchOfAStoreThatCannot(t *testing.T) {
	s := newPolicySource(t, &policyStore{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	requireError(t, s.Watch(ctx, slog.New(slog.DiscardHandler)), "")
}

func TestChangeIsStoredWithItsEntryAndInForce(t *testing.T) {
	store := &policyStore{}
	var adopted []int64
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{
		Adopted: func(old, next *clientcfg.PolicySnapshot) { adopted = append(adopted, old.Version(), next.Version()) },
	})
	requireError(t, err, "")
	p, err := s.Change(t.Context(), limitShop(3))
	requireError(t, err, "")
	if p != s.Snapshot() || userLimit(s, "shop") != 3 || p.Version() != 1 {
		t.Errorf("version %d with a limit of %d is in force", p.Version(), userLimit(s, "shop"))
	}
	if len(store.audit) != 1 || store.audit[0].Version != 1 || store.audit[0].Reason != "3" {
		t.Errorf("the trail is %+v", store.audit)
	}
	if len(adopted) != 2 || adopted[0] != 0 || adopted[1] != 1 {
		t.Errorf("adopted %v", adopted)
	}
}

func TestChangeThatCannotBeChangesNothing(t *testing.T) {
	store := &policyStore{}
	s := newPolicySource(t, store)
	_, err := s.Change(t.Context(), limitShop(0))
	requireError(t, err, "clients.shop.user[0].requests")
	stop := errors.New("the edit says no")
	_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.PolicySet, clientcfg.AuditEntry, error) {
		return clientcfg.PolicySet{}, clientcfg.AuditEntry{}, stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("the error is %v", err)
	}
	_, err = s.Try(t.Context(), limitShop(5))
	requireError(t, err, "")
	if store.set.Version != 0 || len(store.audit) != 0 || userLimit(s, "shop") != 7 {
		t.Errorf("something changed: %+v", store.set)
	}
}

func TestChangeGoesOnAfterLosingARace(t *testing.T) {
	store := &policyStore{race: 3}
	s := newPolicySource(t, store)
	p, err := s.Change(t.Context(), limitShop(3))
	requireError(t, err, "")
	if p.Version() != 4 || len(store.audit) != 1 {
		t.Errorf("version %d after %d entries", p.Version(), len(store.audit))
	}
	store.race = 1000
	if _, err = s.Change(t.Context(), limitShop(4)); !errors.Is(err, clientcfg.ErrPolicyConflict) {
		t.Errorf("the error of an endless race is %v", err)
	}
}

func TestNoChangeIsLostBetweenInstances(t *testing.T) {
	store := &policyStore{}
	var workers sync.WaitGroup
	for i := range 8 {
		s := newPolicySource(t, store)
		workers.Go(func() {
			for j := range 5 {
				id := strconv.Itoa(i) + "-" + strconv.Itoa(j)
				err := clientcfg.ErrPolicyConflict
				for errors.Is(err, clientcfg.ErrPolicyConflict) { // who loses too often is told, and nothing is changed
					_, err = s.Change(t.Context(), func(p *clientcfg.PolicySnapshot) (clientcfg.PolicySet, clientcfg.AuditEntry, error) {
						return p.Set().WithPolicy(id, &clientcfg.ClientPolicy{}), clientcfg.AuditEntry{}, nil
					})
				}
				if err != nil {
					t.Errorf("change %s: %v", id, err)
				}
			}
		})
	}
	workers.Wait()
	if n := len(store.set.Clients); n != 40 || len(store.audit) != 40 {
		t.Errorf("%d policies and %d entries of 40", n, len(store.audit))
	}
}
