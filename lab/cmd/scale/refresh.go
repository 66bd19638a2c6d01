package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	signIns  = 64 // sign-ins to refresh repeatedly
	atOnce   = 16 // refreshes that are under way while none is timed
	userName = "ada"
	password = "a quiet harbour at four in the morning"
)

func measureRefresh(ctx context.Context, w *world, r *release) error {
	for _, kind := range kinds() {
		began := time.Now()
		if err := w.measureRefreshOn(ctx, r, kind, "refresh/"+kind+"/"); err != nil {
			return err
		}
		fmt.Printf("  %s refresh %s: %s\n", r.name, kind, time.Since(began).Round(time.Second))
	}
	return nil
}

func (w *world) measureRefreshOn(ctx context.Context, r *release, kind, name string) (err error) {
	s, err := w.newStore(ctx, r, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop(ctx)) }()
	as, err := s.register(ctx, "scale", "--grant=password", "--grant=refresh_token")
	if err != nil {
		return err
	}
	if _, err := s.command(ctx, password, "user", "create", userName, "--password-stdin"); err != nil {
		return err
	}
	f := &refresher{as: as, free: make(chan string, signIns)}
	if err := s.serving(ctx, f.signIn); err != nil {
		return err
	}
	first, err := s.size(ctx)
	if err != nil {
		return err
	}
	made := 0
	for _, n := range w.sizes.refreshes {
		at := fmt.Sprintf("%s%d/", name, n)
		if r == w.before && kind == mongodb && n > w.sizes.refreshesBefore {
			r.figures.note(at, "not measured")
			continue
		}
		if err := s.serving(ctx, func(ctx context.Context, i *instance) error { return s.measureBulk(ctx, i, f, n-made, at) }); err != nil {
			return err
		}
		size, err := s.size(ctx)
		if err != nil {
			return err
		}
		r.figures.set(at+"bytes", float64(size.bytes-first.bytes)/float64(n))
		r.figures.set(at+"records", float64(size.records-first.records)/float64(n))
		if err := s.serving(ctx, func(ctx context.Context, i *instance) error { return w.measureSample(ctx, s, i, f, at) }); err != nil {
			return err
		}
		made = n + w.sizes.sample
	}
	return nil
}

// serving runs do while a server runs on the store. The server is stopped afterwards, so that the file can be read.
func (s *store) serving(ctx context.Context, do func(ctx context.Context, i *instance) error) error {
	i, err := s.serve(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, i), i.end())
}

// measureBulk refreshes many times at once, and takes the processor time.
func (s *store) measureBulk(ctx context.Context, i *instance, f *refresher, n int, name string) error {
	used, elapsed, err := spent([]*instance{i}, func() error { return f.refreshAll(ctx, i, n) })
	s.figures.set(name+"processor", 1e6*used/float64(n))
	s.figures.set(name+"persecond", float64(n)/elapsed)
	return err
}

// measureSample refreshes one at a time.
func (w *world) measureSample(ctx context.Context, s *store, i *instance, f *refresher, name string) error {
	took := make([]float64, 0, w.sizes.sample)
	for range w.sizes.sample {
		began := time.Now()
		if err := f.refresh(ctx, i); err != nil {
			return err
		}
		took = append(took, float64(time.Since(began).Microseconds()))
	}
	slices.Sort(took)
	s.figures.set(name+"p50", took[len(took)/2])
	s.figures.set(name+"p99", took[len(took)*99/100])
	return nil
}

// refresher refreshes tokens. Each is used by one request at a time.
type refresher struct {
	as   credentials
	free chan string
}

var errAnswer = errors.New("unexpected answer")

func (f *refresher) signIn(ctx context.Context, i *instance) error {
	for range signIns {
		t, status, err := i.token(ctx, f.as, url.Values{"grant_type": {"password"}, "username": {userName}, "password": {password}})
		if err != nil || status != http.StatusOK || t.Refresh == "" {
			return fmt.Errorf("%w to a sign-in: %d: %w", errAnswer, status, err)
		}
		f.free <- t.Refresh
	}
	return nil
}

func (f *refresher) refresh(ctx context.Context, i *instance) error {
	token := <-f.free
	t, status, err := i.token(ctx, f.as, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("%w to a refresh: %d: %w", errAnswer, status, err)
	}
	f.free <- t.Refresh
	return nil
}

func (f *refresher) refreshAll(ctx context.Context, i *instance, n int) error {
	var next atomic.Int64
	errs := make([]error, atOnce)
	var wg sync.WaitGroup
	for worker := range atOnce {
		wg.Go(func() {
			for next.Add(1) <= int64(n) && errs[worker] == nil {
				errs[worker] = f.refresh(ctx, i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func refreshTables(w *world, old, now *figures) string {
	columns := []column{
		{"bytes stored for each", "bytes", unit("B")},
		{"records for each", "records", number},
		{"p50", "p50", unit("µs")},
		{"p99", "p99", unit("µs")},
		{"processor time of the server", "processor", unit("µs")},
	}
	var b strings.Builder
	for _, kind := range kinds() {
		var rows []row
		for _, n := range w.sizes.refreshes {
			rows = append(rows, both(commas(int64(n)), fmt.Sprintf("refresh/%s/%d/", kind, n), old, now)...)
		}
		b.WriteString("\n" + strings.Replace(titles[kind], ", three instances", "", 1) + "\n\n" + table([]string{"after refreshes", "release"}, columns, rows))
	}
	return b.String() + computed(old, w.sizes)
}

// computed says what many refreshes of the release before leave, by the most that were measured.
func computed(old *figures, all sizes) string {
	file, measured := old.Values[fmt.Sprintf("refresh/%s/%d/bytes", embedded, slices.Max(all.refreshes))]
	documents := old.Values[fmt.Sprintf("refresh/%s/%d/bytes", mongodb, all.refreshesBefore)]
	if !measured {
		return ""
	}
	return fmt.Sprintf("\nComputed from that, not measured: ten million refreshes of the release before leave %.1f GB in the file, "+
		"or documents of %.1f GB, for 30 days.\n", file/100, documents/100)
}
