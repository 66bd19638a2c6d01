package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// atRest is one number of clients and instances that is measured at rest, on a store of its own.
type atRest struct {
	kind               string
	clients, instances int
	store              *store
	proxy              *proxy // nil for the file
	running            []*instance
}

func (a *atRest) name() string { return fmt.Sprintf("rest/%s/%dx%d/", a.kind, a.clients, a.instances) }

func (w *world) atRest() (all []*atRest) {
	for _, n := range w.sizes.restClients {
		all = append(all, &atRest{kind: embedded, clients: n, instances: 1},
			&atRest{kind: mongodb, clients: n, instances: 1}, &atRest{kind: mongodb, clients: n, instances: instances})
	}
	return all
}

// settle is how long instances run before they are at rest.
const settle = 20 * time.Second

// measureRest lets all run at once, since they have little to do, and counts what they ask of their stores.
func measureRest(ctx context.Context, w *world, r *release) (err error) {
	all := w.atRest()
	defer func() {
		for _, a := range all {
			err = errors.Join(err, a.end(ctx))
		}
	}()
	for _, a := range all {
		if err := a.begin(ctx, w, r); err != nil {
			return fmt.Errorf("%s: %w", a.name(), err)
		}
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, a := range all {
		wg.Go(func() { errs[i] = a.measure(ctx, w.sizes.rest) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (a *atRest) begin(ctx context.Context, w *world, r *release) (err error) {
	if a.store, err = w.newStore(ctx, r, a.kind); err != nil {
		return err
	}
	if _, err := a.store.fill(ctx, "-policies=1", "-clients="+strconv.Itoa(a.clients)); err != nil {
		return err
	}
	seen := *a.store
	if a.kind == mongodb {
		if a.proxy, err = newProxy(ctx, w.uri); err != nil {
			return err
		}
		seen.uri = a.proxy.URI
	}
	a.running, err = seen.serveAll(ctx, a.instances)
	return err
}

func (a *atRest) end(ctx context.Context) error {
	if a.store == nil {
		return nil
	}
	err := endAll(a.running)
	if a.proxy != nil {
		err = errors.Join(err, a.proxy.Close())
	}
	return errors.Join(err, a.store.drop(ctx))
}

// measure counts for a while, and takes what each instance does in a minute.
func (a *atRest) measure(ctx context.Context, d time.Duration) error {
	before, err := a.asked()
	if err != nil {
		return err
	}
	used, elapsed, err := spent(a.running, func() error { return pause(ctx, d) })
	if err != nil {
		return err
	}
	after, err := a.asked()
	each := elapsed / 60 * float64(a.instances)
	for what, n := range after {
		a.store.figures.set(a.name()+what, (n-before[what])/each)
	}
	a.store.figures.set(a.name()+processorRow, 1000*used/elapsed)
	return err
}

// The rows of the tables that are no commands.
const (
	commandsRow  = "commands"
	answersRow   = "answers"
	commitsRow   = "commits"
	writtenRow   = "written"
	processorRow = "processor"
)

// asked returns the totals so far of commands, commits and bytes of the store.
func (a *atRest) asked() (map[string]float64, error) {
	all := map[string]float64{}
	if a.kind == embedded {
		n, err := commits(a.store.file)
		disk, failed := written(a.running[0].PID(), toDisk)
		all[commitsRow], all[writtenRow] = float64(n), disk/1024
		return all, errors.Join(err, failed)
	}
	counts, received := a.proxy.counts()
	for command, n := range counts {
		all[command] = float64(n)
		all[commandsRow] += float64(n)
	}
	all[answersRow] = float64(received) / 1024
	return all, nil
}

// purposes say what commands at rest are for.
var purposes = map[string]string{
	"find trail":        "clients and signing keys: is there a newer entry?",
	"find bans":         "bans: which were stored lately?",
	"find clients":      "clients: those that have changed, or all",
	"find audit":        "policies: is there a newer entry?",
	"find policies":     "policies: has the set changed? Now only if there never was a change",
	"find keys":         "signing keys: which are valid?",
	"find instances":    "the other instances",
	"update instances":  "heartbeat",
	"update reports":    "its report to operators",
	"find ratelimits":   "counters",
	"update ratelimits": "counters",
	driver:              "the driver's look at its connections, and the clock of the database",
}

func restTables(w *world, old, now *figures) string {
	var files, databases []*atRest
	for _, a := range w.atRest() {
		if a.kind == embedded {
			files = append(files, a)
		} else {
			databases = append(databases, a)
		}
	}
	var b strings.Builder
	b.WriteString("\nEach cell: before → now. MongoDB, commands per instance and minute:\n\n")
	rows := [][2]string{}
	for _, command := range commandsIn(old, now) {
		purpose := purposes[command]
		rows = append(rows, [2]string{command, "`" + command + "` | " + purpose})
	}
	rows = append(rows, [2]string{commandsRow, "all commands | "}, [2]string{answersRow, "answers, KiB | "}, [2]string{processorRow, "processor time of the instance, ms per second | "})
	b.WriteString(restTable("command | for", databases, rows, old, now))
	b.WriteString("\nThe embedded file, per minute:\n\n")
	b.WriteString(restTable("what", files, [][2]string{
		{commitsRow, "commits (two fsyncs each)"}, {writtenRow, "written to disk, KiB"}, {processorRow, "processor time, ms per second"},
	}, old, now))
	return b.String()
}

// commandsIn returns, sorted, the commands that an instance sends at least once in ten minutes.
func commandsIn(all ...*figures) []string {
	found := map[string]bool{}
	for _, f := range all {
		for name, v := range f.Values {
			rest, ok := strings.CutPrefix(name, "rest/"+mongodb+"/")
			_, what, _ := strings.Cut(rest, "/")
			if ok && v >= 0.1 && !slices.Contains([]string{commandsRow, answersRow, processorRow}, what) {
				found[what] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func restTable(label string, of []*atRest, rows [][2]string, old, now *figures) string {
	var b strings.Builder
	b.WriteString("| " + label + " |")
	for _, a := range of {
		fmt.Fprintf(&b, " %s clients, %d instance%s |", commas(int64(a.clients)), a.instances, strings.Repeat("s", min(1, a.instances-1)))
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(of)+strings.Count(label, "|")+1) + "\n")
	for _, r := range rows {
		b.WriteString("| " + r[1] + " |")
		for _, a := range of {
			fmt.Fprintf(&b, " %s → %s |", rate(old, a.name(), r[0]), rate(now, a.name(), r[0]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rate shows a value; none is zero where anything was measured.
func rate(f *figures, name, what string) string {
	if _, measured := f.Values[name+processorRow]; !measured {
		return "–"
	}
	return number(f.Values[name+what])
}
