package clientcfg_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

// clientStore is a store on a file, with the view of another instance that follows it.
type clientStore struct {
	*clientcfg.Registrations
	tb      testing.TB
	file    *bolt.Store
	reads   *reads
	now     map[string]clientcfg.Client // with their versions
	another *store.Follower
}

// reads is a store as another instance reads it.
type reads struct {
	store.Backend
	mu    sync.Mutex
	err   error
	took  time.Duration // of the trail
	trail int
	lists int
}

func (r *reads) Trail(ctx context.Context, after store.Mark, limit int) ([]store.Entry, store.Mark, error) {
	r.mu.Lock()
	took, err := r.took, r.err
	r.trail++
	r.mu.Unlock()
	if took > 0 {
		<-time.After(took)
	}
	if err != nil {
		return nil, store.Mark{}, err
	}
	return r.Backend.Trail(ctx, after, limit)
}

func (r *reads) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	r.mu.Lock()
	r.lists++
	r.mu.Unlock()
	return r.Backend.List(ctx, t, q, each)
}

// openFile opens a new data file and closes it when the test ends.
func openFile(tb testing.TB) *bolt.Store {
	tb.Helper()
	file, err := bolt.Open(filepath.Join(tb.TempDir(), "test.db"), bolt.Options{})
	check.OK(tb, err)
	tb.Cleanup(func() { _ = file.Close() }) // a test may have closed it
	return file
}

func followerOf(tb testing.TB, b store.Backend) *store.Follower {
	tb.Helper()
	f, err := store.NewFollower(context.Background(), b)
	check.OK(tb, err)
	return f
}

func storeOf(tb testing.TB, list ...clientcfg.Client) *clientStore {
	tb.Helper()
	file := openFile(tb)
	s := &clientStore{clientcfg.NewRegistrations(followerOf(tb, file)), tb, file, &reads{Backend: file}, map[string]clientcfg.Client{}, nil}
	s.put(list...)
	return s
}

// source returns the source of the other instance.
func (s *clientStore) source(log *slog.Logger) *clientcfg.Source {
	s.tb.Helper()
	s.another = followerOf(s.tb, s.reads)
	source, err := clientcfg.NewSource(s.tb.Context(), s.another, log)
	check.OK(s.tb, err)
	return source
}

func (s *clientStore) refresh() {
	s.tb.Helper()
	check.OK(s.tb, s.another.Refresh(s.tb.Context()))
}

func (s *clientStore) fail(err error) {
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	s.reads.err = err
}

func (s *clientStore) slow(took time.Duration) {
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	s.reads.took = took
}

// put replaces all clients with these.
func (s *clientStore) put(list ...clientcfg.Client) {
	s.tb.Helper()
	ctx, gone := s.tb.Context(), map[string]bool{}
	for id := range s.now {
		gone[id] = true
	}
	for _, c := range list {
		before, there := s.now[c.ID]
		delete(gone, c.ID)
		switch c.Version = before.Version; {
		case !there:
			check.OK(s.tb, s.CreateClient(ctx, c, clientcfg.Event{}))
		case reflect.DeepEqual(before, c):
			continue
		default:
			err := s.UpdateClient(ctx, c, clientcfg.Event{})
			if errors.Is(err, clientcfg.ErrUnreadableClient) {
				c.Version = 0
				err = errors.Join(s.DeleteClient(ctx, c.ID, clientcfg.Event{}), s.CreateClient(ctx, c, clientcfg.Event{}))
			}
			check.OK(s.tb, err)
		}
		c.Version++
		s.now[c.ID] = c
	}
	for id := range gone {
		check.OK(s.tb, s.DeleteClient(ctx, id, clientcfg.Event{}))
		delete(s.now, id)
	}
}

func named(id string) clientcfg.Client {
	return webClient(func(c *clientcfg.Client) { c.ID = id })
}

func ids(d *clientcfg.Directory) (list []string) {
	for c := range d.After("") {
		list = append(list, c.ID)
	}
	return list
}
