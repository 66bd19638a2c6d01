package clientcfg_test

import (
	"context"
	"errors"
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

func (f *fakeStore) Clients(context.Context) ([]clientcfg.Client, clientcfg.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	return f.clients, f.revision, f.err
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
	if _, err := clientcfg.NewSource(t.Context(), &fakeStore{err: errors.New("down")}); err == nil {
		t.Error("started without a store")
	}
	if _, err := clientcfg.NewSource(t.Context(), &fakeStore{clients: []clientcfg.Client{{ID: "x"}}}); err == nil {
		t.Error("started with an invalid client")
	}
}

func TestSourceReadsOnlyWhenTheRevisionMoved(t *testing.T) {
	store := &fakeStore{clients: []clientcfg.Client{named("a")}}
	source, err := clientcfg.NewSource(t.Context(), store)
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
		source, err := clientcfg.NewSource(t.Context(), store)
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
	source, err := clientcfg.NewSource(t.Context(), store)
	requireError(t, err, "")

	store.put(named("b"), clientcfg.Client{ID: "broken"})
	requireError(t, source.Refresh(t.Context()), `client "broken"`)
	if _, ok := source.Client("a"); !ok {
		t.Error("a refused update replaced the good directory")
	}
	store.put(named("b"))
	store.fail(errors.New("down"))
	requireError(t, source.Refresh(t.Context()), "down")
	store.fail(nil)
	requireError(t, source.Refresh(t.Context()), "")
	if _, ok := source.Client("a"); ok {
		t.Error("the deleted client is still there")
	}
}
