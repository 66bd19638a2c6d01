package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"oauth-server/lab/benchmark"
	"oauth-server/lab/servers"
)

func measureClients(ctx context.Context, w *world) error {
	return w.measureEach(ctx, "clients", w.sizes.clients, w.measureClientsOf)
}

func (w *world) measureClientsOf(ctx context.Context, s *servers.Store, n int, name string) (err error) {
	if err := fill(ctx, s, n, 0); err != nil {
		return err
	}
	all, idle, err := w.measureStart(ctx, s, name)
	if err == nil && s.File == "" {
		err = w.measureRegistrations(ctx, s, all, idle, name)
		w.figures[name+"peakOfChange"] = float64(peakOf(all).Peak)
	}
	if err = errors.Join(err, endAll(all)); err != nil || s.File == "" {
		return err
	}
	took, err := registerInFile(ctx, s, w.sizes.registrations) // the file has one process
	w.setUsable(name, took)
	return err
}

// measureStart starts servers, three on MongoDB, and takes what the first start costs, and what instances cost that have
// nothing to do, in seconds of processor time per second.
func (w *world) measureStart(ctx context.Context, s *servers.Store, name string) (all []*instance, idle float64, err error) {
	if all, err = serve(ctx, s, 1); err != nil {
		return nil, 0, err
	}
	used, err := all[0].Processor()
	if err != nil {
		return all, 0, err
	}
	w.figures[name+"start"] = all[0].Took.Seconds()
	w.figures[name+"startProcessor"] = used.Seconds()
	if s.File == "" {
		more, err := serve(ctx, s, instances-1)
		if err != nil {
			return all, 0, err
		}
		all = append(all, more...)
	}
	if err := servers.Pause(ctx, w.sizes.idle/2); err != nil {
		return all, 0, err
	}
	processor, elapsed, err := spent(all, func() error { return servers.Pause(ctx, w.sizes.idle) })
	idle = processor / elapsed
	peak := peakOf(all[:1])
	w.figures[name+"idle"] = 1000 * idle
	w.figures[name+"peak"] = float64(peak.Peak)
	w.figures[name+"peakFile"] = float64(peak.File)
	return all, idle, err
}

// pollEvery is how often an instance is asked for what it does not have yet.
const pollEvery = 25 * time.Millisecond

// measureRegistrations registers clients: first some that all instances are asked for until they have them, then some
// that none is asked for, for the processor time.
func (w *world) measureRegistrations(ctx context.Context, s *servers.Store, all []*instance, idle float64, name string) error {
	polled := func(n int) string { return fmt.Sprint("polled-", n) }
	err := w.measureUsable(ctx, all, name,
		func(n int) error { return s.CreateClient(ctx, polled(n)) },
		func(i *instance, n int) (bool, error) {
			a, err := i.Post(ctx, "/token", polled(n), servers.Own())
			return a.Status == http.StatusOK, err
		})
	if err != nil {
		return err
	}
	return w.measureQuiet(ctx, all, idle, name, func(n int) error { return s.CreateClient(ctx, fmt.Sprint("quiet-", n)) })
}

// measureUsable makes changes, one after the other, and asks all instances for each until it is in force.
func (w *world) measureUsable(ctx context.Context, all []*instance, name string,
	change func(n int) error, inForce func(i *instance, n int) (bool, error),
) error {
	var answered, took []float64
	for n := range w.sizes.registrations {
		began := time.Now()
		if err := change(n); err != nil {
			return err
		}
		changed := time.Now()
		answered = append(answered, changed.Sub(began).Seconds())
		err := onAll(all, func(i *instance) error {
			return servers.Until(ctx, pollEvery, func() (bool, error) { return inForce(i, n) })
		})
		if err != nil {
			return err
		}
		took = append(took, time.Since(changed).Seconds())
	}
	w.figures[name+"answered"] = benchmark.Median(answered)
	w.setUsable(name, took)
	return nil
}

// setUsable sets how soon changes could be used, in seconds.
func (w *world) setUsable(name string, took []float64) {
	sum := 0.0
	for _, v := range took {
		sum += v
	}
	w.figures[name+"usable"] = sum / float64(max(len(took), 1))
	w.figures[name+"usableWorst"] = slices.Max(append(took, 0))
}

// measureQuiet makes changes so far apart that instances have read each before the next, and takes the processor time that
// each instance has spent for each, without what it spends at rest.
func (w *world) measureQuiet(ctx context.Context, all []*instance, idle float64, name string, change func(i int) error) error {
	apart := time.Duration(max(2.5, 2*w.figures[name+"usableWorst"]) * float64(time.Second))
	used, elapsed, err := spent(all, func() error {
		for i := range w.sizes.quiet {
			if err := errors.Join(change(i), servers.Pause(ctx, apart)); err != nil {
				return err
			}
		}
		return nil
	})
	w.figures[name+"change"] = 1000 * (used - idle*elapsed) / float64(w.sizes.quiet)
	return err
}

func clientTables(w *world) string {
	var b strings.Builder
	for _, kind := range kinds() {
		columns := costOfStart()
		if kind == mongodb {
			columns = append(columns, column{"peak after the changes", "peakOfChange", mebi})
		}
		columns = append(columns, column{"usable after", "usable", seconds}, column{"at most", "usableWorst", seconds})
		if kind == mongodb {
			columns = append(columns, column{"processor time per registration", "change", aboutMilliseconds})
		}
		b.WriteString("\n" + titles[kind] + "\n\n" + w.figures.table("clients", columns, rowsOf(w.sizes.clients, "clients/"+kind+"/%d/")))
	}
	return b.String()
}
