package clientcfg_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// fakeStore serves what the test puts in.
type fakeStore struct {
	mu      sync.Mutex
	clients map[string]clientcfg.Client
	tags    map[string]int64
	changed []string // IDs in the order of the changes
	err     error
	lost    bool // the changes since any mark are not known
	reads   int  // of all clients
	sums    int
}

func (f *fakeStore) Clients(_ context.Context, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	for id := range f.clients {
		each(f.record(id))
	}
	f.lost = false
	return clientcfg.Mark{Number: int64(len(f.changed))}, f.err
}

func (f *fakeStore) ClientsMark(context.Context) (clientcfg.Mark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = false
	return clientcfg.Mark{Number: int64(len(f.changed))}, f.err
}

func (f *fakeStore) record(id string) clientcfg.Record {
	c, ok := f.clients[id]
	return clientcfg.Record{ID: id, Client: c, Gone: !ok, Tag: f.tags[id]}
}

func (f *fakeStore) ClientChanges(_ context.Context, since clientcfg.Mark, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.changed[since.Number:] {
		each(f.record(id))
	}
	if f.lost {
		return since, clientcfg.ErrMarkLost
	}
	return clientcfg.Mark{Number: int64(len(f.changed))}, f.err
}

func (f *fakeStore) ClientsSum(context.Context) (sum clientcfg.Sum, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums++
	for id := range f.clients {
		sum.Clients++
		sum.Tags += f.tags[id]
	}
	return sum, f.err
}

func (f *fakeStore) Client(context.Context, string) (clientcfg.Client, error) {
	return clientcfg.Client{}, errors.ErrUnsupported
}

// put makes these the clients. What differs is announced, unless it is silent.
func (f *fakeStore) put(silent bool, list ...clientcfg.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.clients
	f.clients = map[string]clientcfg.Client{}
	var changed []string
	for _, c := range list {
		if before, ok := old[c.ID]; !ok || !reflect.DeepEqual(before, c) {
			changed = append(changed, c.ID)
		}
		f.clients[c.ID] = c
	}
	for id := range old {
		if _, ok := f.clients[id]; !ok {
			changed = append(changed, id)
		}
	}
	for _, id := range changed {
		if f.tags == nil {
			f.tags = map[string]int64{}
		}
		f.tags[id] += 1 + rand.Int64N(1<<40)
	}
	if !silent {
		f.changed = append(f.changed, changed...)
	}
}

func storeOf(list ...clientcfg.Client) *fakeStore {
	f := &fakeStore{}
	f.put(false, list...)
	return f
}

func (f *fakeStore) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func named(id string) clientcfg.Client {
	return webClient(func(c *clientcfg.Client) { c.ID = id })
}

func TestSourceStartsOnlyWithAGoodDirectory(t *testing.T) {
	if _, err := clientcfg.NewSource(t.Context(), &fakeStore{err: errors.New("down")}, nil); err == nil {
		t.Error("started without a store")
	}
}

func TestSourceReadsOnlyWhatChanged(t *testing.T) {
	store := storeOf(named("a"))
	source, err := clientcfg.NewSource(t.Context(), store, nil)
	requireError(t, err, "")
	requireError(t, source.Refresh(t.Context()), "")
	store.put(false, named("a"), named("b"))
	requireError(t, source.Refresh(t.Context()), "")
	if _, ok := source.Client("b"); !ok {
		t.Error("the new client is not seen")
	}
	if store.reads != 1 {
		t.Fatalf("%d reads of all clients, want 1", store.reads)
	}
	store.lost = true
	store.put(false, named("b"), named("c"))
	requireError(t, source.Refresh(t.Context()), "")
	if got := ids(source.Directory()); !slices.Equal(got, []string{"b", "c"}) || store.reads != 2 {
		t.Errorf("after the mark was lost: clients %q, %d reads of all, want b and c, 2", got, store.reads)
	}
}

// TestSourceRenews reads the store if the directory is older than asked for, and not otherwise.
func TestSourceRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storeOf(named("a"))
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		requireError(t, err, "")
		store.put(false, named("a"), named("b"))
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		requireError(t, source.Renew(t.Context(), time.Second+1), "")
		if _, ok := source.Client("b"); ok {
			t.Error("the store was read for a directory that is new enough")
		}
		requireError(t, source.Renew(t.Context(), time.Second), "")
		if _, ok := source.Client("b"); !ok {
			t.Error("the store was not read for a directory that is too old")
		}
		store.fail(errors.New("down"))
		requireError(t, source.Renew(t.Context(), time.Second), "")
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		requireError(t, source.Renew(t.Context(), time.Second), "down")
	})
}

// slowChanges answers reads of changes late.
type slowChanges struct {
	*fakeStore
	took  time.Duration
	reads atomic.Int64
}

func (s *slowChanges) ClientChanges(ctx context.Context, since clientcfg.Mark, each func(clientcfg.Record)) (clientcfg.Mark, error) {
	s.reads.Add(1)
	time.Sleep(s.took) //nolint:forbidigo // the clock of synctest
	return s.fakeStore.ClientChanges(ctx, since, each)
}

// TestSourceRenewsForMany: callers that want what is newest at their call share a read that begins after it,
// and do not take one that began before.
func TestSourceRenewsForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowChanges{fakeStore: storeOf(named("a")), took: 100 * time.Millisecond}
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		requireError(t, err, "")
		var callers sync.WaitGroup
		renew := func(want ...string) {
			requireError(t, source.Renew(t.Context(), 0), "")
			if got := ids(source.Directory()); !slices.Equal(got, want) {
				t.Errorf("clients %q, want %q", got, want)
			}
		}
		callers.Go(func() { renew("a", "b") })
		time.Sleep(store.took / 2) //nolint:forbidigo // the clock of synctest
		store.put(false, named("a"), named("b"))
		for range 10 {
			callers.Go(func() { renew("a", "b") })
		}
		callers.Wait()
		if n := store.reads.Load(); n != 2 {
			t.Errorf("%d reads, want 2", n)
		}
	})
}

func ids(d *clientcfg.Directory) (list []string) {
	for c := range d.After("") {
		list = append(list, c.ID)
	}
	return list
}

// TestSourceFindsSilentChanges: what an earlier release changes is not announced, and is found by the
// sum within six minutes. The sum alone never makes the source read again.
func TestSourceFindsSilentChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storeOf(named("a"), named("b"))
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		requireError(t, err, "")
		pass := func(d time.Duration) {
			for range int(d / (2 * time.Second)) {
				time.Sleep(2 * time.Second) //nolint:forbidigo // the time of the bubble
				requireError(t, source.Refresh(t.Context()), "")
			}
		}
		pass(time.Hour)
		if store.reads != 1 || store.sums < 9 || store.sums > 16 {
			t.Errorf("in an hour %d reads of all clients and %d of the sum", store.reads, store.sums)
		}
		revoked := named("b")
		revoked.Stamp = secret.NewStamp()
		for _, put := range [][]clientcfg.Client{{named("a"), revoked}, {named("a"), revoked, named("c")}, {named("c")}} {
			store.put(true, put...)
			pass(6*time.Minute + 4*time.Second)
			if got, want := source.Directory(), store.clients; got.Len() != len(want) {
				t.Errorf("%d clients, want %d", got.Len(), len(want))
			}
		}
		if store.reads != 4 {
			t.Errorf("%d reads of all clients, want 4", store.reads)
		}
	})
}

func TestSourceKnowsHowFreshItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storeOf(named("a"))
		source, err := clientcfg.NewSource(t.Context(), store, nil)
		requireError(t, err, "")
		time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
		requireError(t, source.Refresh(t.Context()), "")
		fresh := time.Now()
		store.fail(errors.New("down"))
		time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
		requireError(t, source.Refresh(t.Context()), "down")
		if got := source.CheckedAt(); !got.Equal(fresh) {
			t.Errorf("checked at %v, want %v", got, fresh)
		}
		if got := source.Directory().Revision(); got != 1 {
			t.Errorf("revision %d, want 1", got)
		}
	})
}

func TestSourceKeepsTheLastGoodDirectory(t *testing.T) {
	store := storeOf(named("a"))
	source, err := clientcfg.NewSource(t.Context(), store, nil)
	requireError(t, err, "")

	store.put(false, named("b"))
	store.fail(errors.New("down"))
	requireError(t, source.Refresh(t.Context()), "down")
	if _, ok := source.Client("a"); !ok {
		t.Error("a refresh that failed replaced the good directory")
	}
	store.fail(nil)
	requireError(t, source.Refresh(t.Context()), "")
	if _, ok := source.Client("a"); ok {
		t.Error("the deleted client is still there")
	}
}

// TestUnreadableClientTakesOnlyItselfOut: the source starts and follows changes with a client that is
// not valid, and logs when that begins and ends, once.
func TestUnreadableClientTakesOnlyItselfOut(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	broken, odd := clientcfg.Client{ID: "broken"}, named("odd")
	odd.Grants = []clientcfg.Grant{"of_a_newer_release"}
	store := storeOf(broken, named("a"))
	source, err := clientcfg.NewSource(t.Context(), store, logger)
	requireError(t, err, "")
	steps := []struct {
		name       string
		put        []clientcfg.Client
		unreadable []string
		logged     string // parts of the lines, in their order
	}{
		{"a client beside it is registered", []clientcfg.Client{broken, named("a"), named("b")}, []string{"broken"}, ""},
		{"another is spoilt", []clientcfg.Client{broken, named("a"), odd}, []string{"broken", "odd"}, "level=ERROR client_id=odd error="},
		{"one is mended", []clientcfg.Client{named("broken"), named("a"), odd}, []string{"odd"}, "level=INFO again client_id=broken"},
		{"one is deleted", []clientcfg.Client{named("broken"), named("a")}, nil, "level=INFO deleted client_id=odd"},
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "client_id=broken") {
		t.Errorf("logged at the start: %q", got)
	}
	for _, step := range steps {
		log.Reset()
		store.put(false, step.put...)
		requireError(t, source.Refresh(t.Context()), "")
		requireError(t, source.Refresh(t.Context()), "")
		d := source.Directory()
		if got := slices.Sorted(maps.Keys(d.Unreadable())); !slices.Equal(got, step.unreadable) {
			t.Errorf("%s: unreadable are %q, want %q", step.name, got, step.unreadable)
		}
		if got, want := d.Len(), len(step.put)-len(step.unreadable); got != want {
			t.Errorf("%s: %d clients are served, want %d", step.name, got, want)
		}
		rest := log.String()
		if (rest == "") != (step.logged == "") || strings.Count(rest, "\n") > 1 {
			t.Errorf("%s: logged %q", step.name, rest)
		}
		for _, part := range strings.Fields(step.logged) {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("%s: logged %q, which lacks %q", step.name, rest, part)
			}
			rest = after
		}
	}
}

func TestManyUnreadableClientsAreFewLines(t *testing.T) {
	var log strings.Builder
	list := []clientcfg.Client{named("good")}
	for i := range 1000 {
		list = append(list, clientcfg.Client{ID: strconv.Itoa(i)})
	}
	store := storeOf(list...)
	source, err := clientcfg.NewSource(t.Context(), store, slog.New(slog.NewTextHandler(&log, nil)))
	requireError(t, err, "")
	if lines := strings.Count(log.String(), "\n"); lines > 25 || !strings.Contains(log.String(), "unreadable=1000") {
		t.Errorf("%d lines: %s", lines, &log)
	}
	if _, ok := source.Client("good"); !ok {
		t.Error("the one that can be read is not served")
	}
}
