package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"oauth-server/lab/benchmark"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

func measureClients(ctx context.Context, w *world) error {
	return w.measureEach(ctx, "clients", w.sizes.clients, w.measureClientsOf)
}

func (w *world) measureClientsOf(ctx context.Context, s *servers.Store, n int, name string) (err error) {
	if err := fill(ctx, s, n, 0); err != nil {
		return err
	}
	all, err := w.measureStart(ctx, s, name)
	if err == nil && s.File == "" {
		err = w.measureRegistrations(ctx, s, all, name)
	}
	return errors.Join(err, stopAll(all))
}

// measureStart starts servers, three on MongoDB, and notes the cost of the first start.
func (w *world) measureStart(ctx context.Context, s *servers.Store, name string) (all []*servers.Server, err error) {
	if all, err = serve(ctx, s, 1); err != nil {
		return nil, err
	}
	used, err := all[0].Processor()
	memory, failed := process.Memory(all[0].PID())
	w.figures[name+"start"] = all[0].Took.Seconds()
	w.figures[name+"startProcessor"] = used.Seconds()
	w.figures[name+"peak"] = float64(memory.Peak)
	if err = errors.Join(err, failed); err != nil || s.File != "" {
		return all, err
	}
	more, err := serve(ctx, s, instances-1)
	return append(all, more...), err
}

// pollEvery is the interval at which each instance is asked whether it applies a change.
const pollEvery = 25 * time.Millisecond

// measureRegistrations registers clients, and asks all instances for tokens of each until they know it.
func (w *world) measureRegistrations(ctx context.Context, s *servers.Store, all []*servers.Server, name string) error {
	id := func(n int) string { return fmt.Sprint("polled-", n) }
	return w.measureUsable(ctx, all, name,
		func(n int) error { return s.CreateClient(ctx, id(n)) },
		func(i *servers.Server, n int) (bool, error) {
			a, err := i.Post(ctx, "/token", id(n), servers.Own())
			return a.Status == http.StatusOK, err
		})
}

// measureUsable makes changes, one after the other, and asks all instances for each until it is in force.
func (w *world) measureUsable(ctx context.Context, all []*servers.Server, name string,
	change func(n int) error, inForce func(i *servers.Server, n int) (bool, error),
) error {
	var answered, took []float64
	for n := range w.sizes.registrations {
		began := time.Now()
		if err := change(n); err != nil {
			return err
		}
		changed := time.Now()
		answered = append(answered, changed.Sub(began).Seconds())
		errs := make([]error, len(all))
		var asking sync.WaitGroup
		for at, i := range all {
			asking.Go(func() {
				errs[at] = servers.Until(ctx, pollEvery, func() (bool, error) { return inForce(i, n) })
			})
		}
		asking.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		took = append(took, time.Since(changed).Seconds())
	}
	w.figures[name+"answered"] = benchmark.Median(answered)
	sum := 0.0
	for _, v := range took {
		sum += v
	}
	w.figures[name+"usable"], w.figures[name+"usableWorst"] = sum/float64(len(took)), slices.Max(took)
	return nil
}

func clientTables(w *world) string {
	return w.tables("clients", w.sizes.clients, func(kind string) []column {
		columns := costOfStart()
		if kind == mongodb {
			columns = append(columns, column{"usable after", "usable", seconds}, column{"at most", "usableWorst", seconds})
		}
		return columns
	})
}
