package clientcfg_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/clientcfg"
)

// fakeStore serves what the test puts in.
type fakeStore struct {
	mu       sync.Mutex
	clients  []clientcfg.Client
	revision clientcfg.Revision
	err      error
	reads    int
}

func (f *fakeStore) Clients(_ context.Context, each func(clientcfg.Record)) (clientcfg.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	for _, c := range f.clients {
		each(clientcfg.Record{ID: c.ID, Client: c})
	}
	return f.revision, f.err
}

func (f *fakeStore) Client(context.Context, string) (clientcfg.Client, error) {
	return clientcfg.Client{}, errors.ErrUnsupported
}

func (f *fakeStore) Revision(context.Context) (clientcfg.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision, f.err
}

func (f *fakeStore) put(c ...clientcfg.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients = c
	f.revision++
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

func TestSourceReadsOnlyWhenTheRevisionMoved(t *testing.T) {
	store := &fakeStore{clients: []clientcfg.Client{named("a")}}
	source, err := clientcfg.NewSource(t.Context(), store, nil)
	requireError(t, err, "")
	requireError(t, source.Refresh(t.Context()), "")
	if store.reads != 1 {
		t.Fatalf("%d reads of all clients, want 1", store.reads)
	}
	store.put(named("a"), named("b"))
	requireError(t, source.Refresh(t.Context()), "")
	if _, ok := source.Client("b"); !ok {
		t.Error("the new client is not seen")
	}
}

func TestSourceKnowsHowFreshItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{clients: []clientcfg.Client{named("a")}, revision: 7}
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
		if got := source.Directory().Revision(); got != 7 {
			t.Errorf("revision %d, want 7", got)
		}
	})
}

func TestSourceKeepsTheLastGoodDirectory(t *testing.T) {
	store := &fakeStore{clients: []clientcfg.Client{named("a")}}
	source, err := clientcfg.NewSource(t.Context(), store, nil)
	requireError(t, err, "")

	store.put(named("b"))
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
	store := &fakeStore{clients: []clientcfg.Client{broken, named("a")}}
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
		store.put(step.put...)
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
	store := &fakeStore{clients: []clientcfg.Client{named("good")}}
	for i := range 1000 {
		store.clients = append(store.clients, clientcfg.Client{ID: strconv.Itoa(i)})
	}
	source, err := clientcfg.NewSource(t.Context(), store, slog.New(slog.NewTextHandler(&log, nil)))
	requireError(t, err, "")
	if lines := strings.Count(log.String(), "\n"); lines > 25 || !strings.Contains(log.String(), "unreadable=1000") {
		t.Errorf("%d lines: %s", lines, &log)
	}
	if _, ok := source.Client("good"); !ok {
		t.Error("the one that can be read is not served")
	}
}
