package clientcfg_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// policyStore keeps the trail in memory, and the test can put anything in.
type policyStore struct {
	mu      sync.Mutex
	state   clientcfg.PolicyState
	trail   []clientcfg.PolicyEntry
	err     error // of everything
	spoiled error // of the next entries
	loads   int
	reads   int // of entries
	race    int // so many writes of others come first
}

func (f *policyStore) PolicyState(context.Context) (clientcfg.PolicyState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	state := f.state
	state.Targets, state.Stopped = maps.Clone(f.state.Targets), f.spoiled
	return state, f.err
}

func (f *policyStore) PolicyVersion(context.Context) (clientcfg.PolicyVersion, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := clientcfg.PolicyVersion{Number: f.state.Version}
	if n := len(f.trail); n > 0 {
		newest.ID = f.trail[n-1].ID
	}
	return newest, f.err
}

func (f *policyStore) PolicyEntries(_ context.Context, from int64) (entries []clientcfg.PolicyEntry, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	for _, e := range f.trail {
		if e.Version >= from && len(entries) < 3 {
			entries = append(entries, e)
		}
	}
	if f.spoiled != nil && len(entries) < 3 {
		bad := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: from, ID: "spoiled", Err: f.spoiled}}
		if n := len(entries); n > 0 {
			bad.Version = entries[n-1].Version + 1
		}
		entries = append(entries, bad)
	}
	return entries, f.err
}

func (f *policyStore) AppendPolicyEntry(_ context.Context, e clientcfg.PolicyEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.race > 0 {
		f.race--
		f.append(stored("policies/rival", "{}"))
	}
	if f.err != nil || e.Version != f.state.Version+1 {
		return errors.Join(f.err, clientcfg.ErrPolicyConflict)
	}
	f.trail = append(f.trail, e)
	return f.state.Fold(&e)
}

// append adds an entry of another instance.
func (f *policyStore) append(changes ...clientcfg.Change) {
	e := *entry(f.state.Version+1, changes...)
	f.trail = append(f.trail, e)
	_ = f.state.Fold(&e)
}

func (f *policyStore) put(changes ...clientcfg.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.append(changes...)
}

func (f *policyStore) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
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
	return func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
		c, err := clientcfg.ChangePolicy("shop", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{User: limits(requests)}})
		return clientcfg.PolicyEntry{Changes: []clientcfg.Change{c}, AuditEntry: clientcfg.AuditEntry{ID: secret.ID(), Reason: strconv.FormatInt(requests, 10)}}, err
	}
}

// broken is a change that another release may find valid.
func broken() clientcfg.Change { return stored("policies/shop", `{"user":[{"requests":0}]}`) }

// shopHas is a change by another instance.
func shopHas(requests int) clientcfg.Change {
	return stored("policies/shop", fmt.Sprintf(`{"user":[{"requests":%d}]}`, requests))
}

func TestPolicySourceStartsOnlyWithAStore(t *testing.T) {
	if _, err := clientcfg.NewPolicySource(t.Context(), &policyStore{err: errors.New("down")}, clientcfg.PolicyOptions{}); err == nil {
		t.Error("it started without a store")
	}
	s, err := clientcfg.NewPolicySource(t.Context(), &policyStore{}, clientcfg.PolicyOptions{})
	requireError(t, err, "")
	if got := userLimit(s, "anybody"); got != ratelimit.DefaultLimit().Requests {
		t.Errorf("without a file the limit is %d", got)
	}
}

// TestPolicySourceReadsWhatIsNew: the whole state once, then entries, however many there are.
func TestPolicySourceReadsWhatIsNew(t *testing.T) {
	store := &policyStore{}
	s := newPolicySource(t, store)
	requireError(t, s.Refresh(t.Context()), "")
	for i := range 10 {
		store.put(shopHas(i + 1))
	}
	requireError(t, s.Refresh(t.Context()), "")
	if got := userLimit(s, "shop"); got != 10 || s.Snapshot().Version() != 10 {
		t.Errorf("the limit of version %d is %d, want 10", s.Snapshot().Version(), got)
	}
	if store.loads != 1 {
		t.Errorf("%d reads of the whole state, want 1", store.loads)
	}
}

// TestPolicySourceReadsAllOfAnotherTrail: what was restored from a backup, or is no longer in the trail.
func TestPolicySourceReadsAllOfAnotherTrail(t *testing.T) {
	for name, change := range map[string]func(f *policyStore){
		"an older one": func(f *policyStore) { *f = policyStore{}; f.append(shopHas(8)) },
		"an older one that went on": func(f *policyStore) {
			*f = policyStore{}
			for range 5 {
				f.append(shopHas(8))
				f.trail[len(f.trail)-1].ID += " of another trail"
			}
		},
		"all swept":        func(f *policyStore) { f.append(shopHas(8)); f.trail = nil },
		"swept up to here": func(f *policyStore) { f.append(shopHas(8)); f.trail = f.trail[3:] },
		"swept beyond":     func(f *policyStore) { f.append(shopHas(7)); f.append(shopHas(8)); f.trail = f.trail[4:] },
		"swept in between": func(f *policyStore) {
			f.append(shopHas(7))
			f.append(shopHas(8))
			f.trail = slices.Delete(f.trail, 3, 4)
		},
		"empty, and so are": func(f *policyStore) { *f = policyStore{} },
	} {
		t.Run(name, func(t *testing.T) {
			store := &policyStore{}
			for range 3 {
				store.put(shopHas(3))
			}
			s := newPolicySource(t, store)
			store.put(shopHas(3))
			requireError(t, s.Refresh(t.Context()), "")
			store.trail, store.state.Version = store.trail[:3], 3
			s = newPolicySource(t, store)
			change(store)
			requireError(t, s.Refresh(t.Context()), "")
			want := int64(8)
			if store.state.Version == 0 {
				want = 7 // of the file
			}
			if got := userLimit(s, "shop"); got != want || s.Snapshot().Version() != store.state.Version {
				t.Errorf("the limit of version %d is %d, want %d", s.Snapshot().Version(), got, want)
			}
		})
	}
}

// TestPolicySourceFollowsAgainOnceMended: limits that cannot be are refused until another change
// replaces them, and the whole state is read once for each version.
func TestPolicySourceFollowsAgainOnceMended(t *testing.T) {
	store := &policyStore{}
	s := newPolicySource(t, store)
	store.put(broken())
	for range 2 {
		requireError(t, s.Refresh(t.Context()), "refused version 1")
	}
	check.Equal(t, "reads of the whole state", store.loads, 2) // the first at the start
	for i := range 40 {
		store.put(shopHas(1 + i))
	}
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "limit after the changes", userLimit(s, "shop"), int64(40))
	check.Equal(t, "reads of the whole state", store.loads, 3)
}

// TestPolicySourceReadsAMendedEntry: what is stored was mended where it is, so the version is the same.
func TestPolicySourceReadsAMendedEntry(t *testing.T) {
	now := time.Unix(1e9, 0)
	store := &policyStore{}
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{
		Base: fileSettings(), Now: func() time.Time { return now },
	})
	requireError(t, err, "")
	store.put(broken())
	requireError(t, s.Refresh(t.Context()), "refused version 1")
	mended := &policyStore{}
	mended.put(shopHas(6))
	store.trail, store.state = mended.trail, mended.state
	requireError(t, s.Refresh(t.Context()), "refused version 1")
	now = now.Add(30 * time.Second)
	requireError(t, s.Refresh(t.Context()), "")
	check.Equal(t, "limit", userLimit(s, "shop"), int64(6))
}

func TestPolicySourceKeepsTheLastGoodPolicies(t *testing.T) {
	for _, bad := range []struct {
		name, want string
		change     clientcfg.Change
	}{
		{"impossible", "refused version 3", broken()},
		{"unreadable", "cannot be read", stored("policies/shop", `{"burst":1}`)},
		{"of a newer release", "cannot be read", stored("users/shop", `{}`)},
	} {
		store := &policyStore{}
		s := newPolicySource(t, store)
		store.put(shopHas(5))
		store.put(bad.change)
		store.put(stored("policies/web", `{"user":[{"requests":6}]}`))
		for range 2 {
			requireError(t, s.Refresh(t.Context()), bad.want)
			if st := s.Status(); userLimit(s, "shop") != 5 || !st.Refused() || st.Version != 1 {
				t.Errorf("%s: a limit of %d, the status is %+v", bad.name, userLimit(s, "shop"), st)
			}
		}
		_, err := s.Change(t.Context(), limitShop(9))
		requireError(t, err, bad.want)
	}
	store := &policyStore{}
	s := newPolicySource(t, store)
	store.put(shopHas(5))
	store.spoiled = clientcfg.ErrUnreadable // after those that can be read
	requireError(t, s.Refresh(t.Context()), "cannot be read")
	if st := s.Status(); userLimit(s, "shop") != 5 || !st.Refused() {
		t.Errorf("the status is %+v", st)
	}
	store.fail(errors.New("down"))
	requireError(t, s.Refresh(t.Context()), "down")
	if s.Status().Refused() {
		t.Error("a store that is away has refused nothing")
	}
	store.spoiled = nil
	store.fail(nil)
	store.put(shopHas(6))
	requireError(t, s.Refresh(t.Context()), "")
	if st := s.Status(); st.Err != nil || st.Refused() || st.Version != 2 || st.CheckedAt.IsZero() {
		t.Errorf("afterwards the status is %+v", st)
	}
}

// TestResetsTravelWithTheEntries: to those that have read what was before, for an hour.
func TestResetsTravelWithTheEntries(t *testing.T) {
	store := &policyStore{}
	now := entry(0).At
	var seen []string
	s, err := clientcfg.NewPolicySource(t.Context(), store, clientcfg.PolicyOptions{
		Now: func() time.Time { return now },
		Adopted: func(_, next *clientcfg.PolicySnapshot) {
			for _, r := range next.Resets() {
				seen = append(seen, r.ClientID)
			}
		},
	})
	requireError(t, err, "")
	store.put(stored("clients/a/counters", "{}"), shopHas(5), stored("clients/b/counters", `{"username":"u"}`))
	store.put(shopHas(6))
	store.put(stored("clients/c/counters", "{}"))
	requireError(t, s.Refresh(t.Context()), "")
	now = now.Add(time.Hour + time.Second)
	store.put(stored("clients/late/counters", "{}"))
	requireError(t, s.Refresh(t.Context()), "")
	if diff := cmp.Diff([]string{"a", "b", "c"}, seen); diff != "" || userLimit(s, "shop") != 6 {
		t.Errorf("resets (-want +got):\n%s", diff)
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
		store.put(shopHas(5))
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
