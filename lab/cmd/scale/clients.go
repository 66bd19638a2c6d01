package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/overload/proctime"
)

const instances = 3 // that share MongoDB

// attempt measures one size. That the release before cannot do it is a result; of this one it is a failure.
func (r *release) attempt(name string, err error) error {
	if err == nil || r.name == "new" || errors.Is(err, context.Canceled) {
		return err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	r.figures.note(name, "fails: "+strings.TrimSpace(line[strings.LastIndex(line, ":")+1:]))
	return nil
}

func measureClients(ctx context.Context, w *world, r *release) error {
	return measureEach(ctx, r, "clients", w.sizes.clients, w.measureClientsOf)
}

// measureEach measures a part with each number, on both stores.
func measureEach(ctx context.Context, r *release, part string, numbers []int,
	measure func(ctx context.Context, r *release, kind string, n int, name string) error,
) error {
	for _, kind := range kinds() {
		for _, n := range numbers {
			name := fmt.Sprintf("%s/%s/%d/", part, kind, n)
			began := time.Now()
			if err := r.attempt(name, measure(ctx, r, kind, n, name)); err != nil {
				return err
			}
			fmt.Printf("  %s %s: %s\n", r.name, name, time.Since(began).Round(time.Second))
		}
	}
	return nil
}

func (w *world) measureClientsOf(ctx context.Context, r *release, kind string, n int, name string) (err error) {
	s, err := w.newStore(ctx, r, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop(ctx)) }()
	if _, err := s.fill(ctx, "-clients="+strconv.Itoa(n)); err != nil {
		return err
	}
	first, err := w.measureStart(ctx, s, name)
	if err != nil {
		return err
	}
	all := []*instance{first}
	defer func() { err = errors.Join(err, endAll(all)) }()
	if r == w.before && n > w.sizes.clientsBefore {
		_, err := w.measureIdle(ctx, r, all, name)
		return err
	}
	if kind == mongodb {
		more, err := s.serveAll(ctx, instances-1)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	idle, err := w.measureIdle(ctx, r, all, name)
	if err != nil {
		return err
	}
	if kind == mongodb {
		err = w.measureRegistrations(ctx, s, all, idle, name)
		r.figures.set(name+"peakOfChange", mebi(peakOf(all).peak))
		return err
	}
	err, all = endAll(all), nil // the file has one process
	return errors.Join(err, w.measureRegistrationsInFile(ctx, s, name))
}

// measureStart starts a server, and takes what that costs.
func (w *world) measureStart(ctx context.Context, s *store, name string) (*instance, error) {
	i, err := s.serve(ctx)
	if err != nil {
		return nil, err
	}
	used, err := proctime.Of(i.PID())
	if err != nil {
		return i, err
	}
	s.figures.set(name+"start", i.took.Seconds())
	s.figures.set(name+"startProcessor", used.Ran.Seconds())
	return i, nil
}

// measureIdle takes what instances cost that have nothing to do, in processor time per second.
func (w *world) measureIdle(ctx context.Context, r *release, all []*instance, name string) (idle float64, err error) {
	if err := pause(ctx, w.sizes.idle/2); err != nil {
		return 0, err
	}
	used, elapsed, err := spent(all, func() error { return pause(ctx, w.sizes.idle) })
	idle = used / elapsed
	r.figures.set(name+"idle", 1000*idle)
	peak, now := peakOf(all[:1]), resident{}
	if err == nil {
		now, err = readResident(all[0].PID())
	}
	r.figures.set(name+"peak", mebi(peak.peak))
	r.figures.set(name+"peakFile", mebi(peak.file))
	r.figures.set(name+"rest", mebi(now.now))
	r.figures.set(name+"restFile", mebi(now.file))
	return idle, err
}

// peakOf returns the memory of the instance that had most.
func peakOf(all []*instance) (most resident) {
	for _, i := range all {
		r, err := readResident(i.PID())
		if err == nil && r.peak > most.peak {
			most = resident{peak: r.peak, file: i.peak.file, anon: i.peak.anon}
		}
	}
	return most
}

func mebi(kib int64) float64 { return float64(kib) / (1 << 10) }

// pollEvery is how often an instance is asked for what it does not have yet.
const pollEvery = 25 * time.Millisecond

// measureRegistrations registers clients, one after the other: first some that all instances are asked for
// until they have them, then some that none is asked for, for the processor time.
func (w *world) measureRegistrations(ctx context.Context, s *store, all []*instance, idle float64, name string) error {
	var took []float64
	for i := range w.sizes.registrations {
		made, err := s.register(ctx, fmt.Sprint("polled-", i))
		if err != nil {
			return err
		}
		registered := time.Now()
		err = onAll(all, func(i *instance) error {
			return until(ctx, func() (bool, error) {
				_, status, err := i.token(ctx, made, ownToken)
				return status == http.StatusOK, err
			})
		})
		if err != nil {
			return err
		}
		took = append(took, time.Since(registered).Seconds())
	}
	s.figures.set(name+"usable", mean(took))
	s.figures.set(name+"usableWorst", slices.Max(took))
	return s.measureQuiet(ctx, all, w.sizes.quiet, idle, name, func(i int) error {
		_, err := s.register(ctx, fmt.Sprint("quiet-", i))
		return err
	})
}

// measureQuiet makes changes so far apart that instances have read each before the next, and takes the processor time that
// each instance has spent for each, without what it spends at rest.
func (s *store) measureQuiet(ctx context.Context, all []*instance, n int, idle float64, name string, change func(i int) error) error {
	apart := time.Duration(max(2.5, 2*s.figures.Values[name+"usableWorst"]) * float64(time.Second))
	used, elapsed, err := spent(all, func() error {
		for i := range n {
			if err := errors.Join(change(i), pause(ctx, apart)); err != nil {
				return err
			}
		}
		return nil
	})
	s.figures.set(name+"change", 1000*(used-idle*elapsed)/float64(n))
	return err
}

// aboutMilliseconds shows a difference of two measurements, which says nothing about less than a millisecond.
func aboutMilliseconds(v float64) string {
	if v < 1 {
		return "below 1 ms"
	}
	return number(v) + " ms"
}

// onAll runs do for each instance at once.
func onAll(all []*instance, do func(i *instance) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for at, i := range all {
		wg.Go(func() { errs[at] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

var errNever = errors.New("a change is not in force after a minute")

// until asks until the answer is yes.
func until(ctx context.Context, ask func() (bool, error)) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
	return errNever
}

// measureRegistrationsInFile has the filler register clients, in a process that has the directory.
func (w *world) measureRegistrationsInFile(ctx context.Context, s *store, name string) error {
	out, err := s.fill(ctx, "-register="+strconv.Itoa(w.sizes.registrations))
	if err != nil {
		return err
	}
	var took []float64 // microseconds
	if err := json.Unmarshal(out, &took); err != nil {
		return err
	}
	s.figures.set(name+"usable", mean(took)/1e6)
	s.figures.set(name+"usableWorst", slices.Max(took)/1e6)
	return nil
}

func mean(all []float64) (m float64) {
	for _, v := range all {
		m += v / float64(len(all))
	}
	return m
}

func clientTables(w *world, old, now *figures) string {
	var b strings.Builder
	for _, kind := range kinds() {
		var rows []row
		for _, n := range w.sizes.clients {
			rows = append(rows, both(commas(int64(n)), fmt.Sprintf("clients/%s/%d/", kind, n), old, now)...)
		}
		columns := costOfStart()
		if kind == mongodb {
			columns = append(columns, column{"peak after the changes", "peakOfChange", unit("MiB")}, column{"usable after", "usable", seconds},
				column{"at most", "usableWorst", seconds}, column{"processor, for each", "change", aboutMilliseconds})
		} else {
			columns = append(columns, column{"usable after", "usable", seconds}, column{"at most", "usableWorst", seconds})
		}
		b.WriteString("\n" + titles[kind] + "\n\n" + table([]string{"clients", "release"}, columns, rows))
	}
	return b.String()
}

// costOfStart are the columns of what a start costs.
func costOfStart() []column {
	return []column{
		{"start", "start", seconds},
		{"processor", "startProcessor", seconds},
		{"peak", "peak", unit("MiB")},
		{"of it the file", "peakFile", unit("MiB")},
		{"at rest", "idle", unit("ms/s")},
	}
}

var titles = map[string]string{embedded: "The embedded file:", mongodb: "MongoDB's stand-in, three instances:"}

// seconds shows times below a tenth of a second in milliseconds.
func seconds(v float64) string {
	switch {
	case v < 0.1:
		return number(1000*v) + " ms"
	case v < 1:
		return strconv.FormatFloat(v, 'f', 2, 64) + " s"
	case v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64) + " s"
	}
	return number(v) + " s"
}
