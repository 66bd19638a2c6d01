package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"oauth-server/lab/page"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

// atRest is one number of clients and instances that is measured at rest, on a store of its own.
type atRest struct {
	kind               string
	clients, instances int
	store              *servers.Store
	proxy              *servers.Proxy // nil for the file
	running            []*servers.Server
}

func (a *atRest) name() string { return fmt.Sprintf("rest/%s/%dx%d/", a.kind, a.clients, a.instances) }

// title is what the tables call it.
func (a *atRest) title() string {
	return fmt.Sprintf("%s clients, %d instance%s", page.Number(float64(a.clients)), a.instances, strings.Repeat("s", min(1, a.instances-1)))
}

func (w *world) atRest() (files, databases []*atRest) {
	for _, n := range w.sizes.restClients {
		files = append(files, &atRest{kind: embedded, clients: n, instances: 1})
		databases = append(databases, &atRest{kind: mongodb, clients: n, instances: 1}, &atRest{kind: mongodb, clients: n, instances: instances})
	}
	return files, databases
}

// settle is how long instances run before they are at rest.
const settle = 20 * time.Second

// measureRest lets all run at once, since they have little to do, and counts what they ask of their stores.
func measureRest(ctx context.Context, w *world) (err error) {
	all := slices.Concat(w.atRest())
	defer func() {
		for _, a := range all {
			err = errors.Join(err, a.end(ctx))
		}
	}()
	for _, a := range all {
		if err := a.begin(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", a.name(), err)
		}
	}
	if err := servers.Pause(ctx, settle); err != nil {
		return err
	}
	found, errs := make([]figures, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, a := range all {
		wg.Go(func() { found[i], errs[i] = a.measure(ctx, w.sizes.rest) })
	}
	wg.Wait()
	for _, f := range found {
		maps.Copy(w.figures, f)
	}
	return errors.Join(errs...)
}

func (a *atRest) begin(ctx context.Context, w *world) (err error) {
	if a.store, err = w.newStore(ctx, a.kind); err != nil {
		return err
	}
	if err := fill(ctx, a.store, a.clients, 1); err != nil {
		return err
	}
	seen := *a.store
	if a.kind == mongodb {
		if a.proxy, err = servers.NewProxy(ctx, w.uri); err != nil {
			return err
		}
		seen.URI = a.proxy.URI
	}
	a.running, err = serve(ctx, &seen, a.instances)
	return err
}

func (a *atRest) end(ctx context.Context) error {
	if a.store == nil {
		return nil
	}
	err := stopAll(a.running)
	if a.proxy != nil {
		err = errors.Join(err, a.proxy.Close())
	}
	return errors.Join(err, a.store.Drop(ctx))
}

// measure counts for a while, and returns what each instance does in a minute.
func (a *atRest) measure(ctx context.Context, d time.Duration) (figures, error) {
	before, err := a.asked()
	if err != nil {
		return nil, err
	}
	used, elapsed, err := servers.Spent(func() error { return servers.Pause(ctx, d) }, a.running...)
	if err != nil {
		return nil, err
	}
	after, err := a.asked()
	each := elapsed / 60 * float64(a.instances)
	f := figures{a.name() + processorRow: 1000 * used / elapsed}
	for what, n := range after {
		f[a.name()+what] = (n - before[what]) / each
	}
	return f, err
}

// The rows of the tables that are no commands.
const (
	commandsRow  = "commands"
	answersRow   = "answers"
	writtenRow   = "written"
	processorRow = "processor"
)

// asked returns the totals so far of commands and bytes of the store.
func (a *atRest) asked() (figures, error) {
	if a.kind == embedded {
		disk, err := process.Written(a.running[0].PID())
		return figures{writtenRow: disk / 1024}, err
	}
	all := figures{}
	for command, t := range a.proxy.Traffic() {
		all[command] = float64(t.Commands)
		all[commandsRow] += float64(t.Commands)
		all[answersRow] += float64(t.Received) / 1024
	}
	return all, nil
}

// purposes say what commands at rest are for.
var purposes = map[string]string{
	"find trail":        "new entries: clients, policies and signing keys",
	"find bans":         "new bans",
	"find instances":    "the other instances",
	"find keys":         "signing keys",
	"update instances":  "heartbeat, with the report to operators",
	"find ratelimits":   "counters",
	"update ratelimits": "counters",
	servers.Driver:      "checks of connections",
}

func restTables(w *world) string {
	files, databases := w.atRest()
	var commands [][2]string
	for _, command := range w.figures.commands() {
		commands = append(commands, [2]string{command, command + " | " + purposes[command]})
	}
	commands = append(commands, [2]string{commandsRow, "all commands | "}, [2]string{answersRow, "answers, KiB | "},
		[2]string{processorRow, "processor time of the instance, ms per second | "})
	return "\nMongoDB, commands per instance and minute:\n\n" + w.figures.rest("command | for", databases, commands) +
		"\nThe embedded file, per minute:\n\n" + w.figures.rest("what", files, [][2]string{
		{writtenRow, "written to disk, KiB"}, {processorRow, "processor time, ms per second"},
	})
}

// commands returns, sorted, the commands that an instance sends at least once in ten minutes.
func (f figures) commands() []string {
	found := map[string]bool{}
	for name, v := range f {
		rest, ok := strings.CutPrefix(name, "rest/"+mongodb+"/")
		_, what, _ := strings.Cut(rest, "/")
		if ok && v >= 0.1 && !slices.Contains([]string{commandsRow, answersRow, processorRow}, what) {
			found[what] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// rest returns a table with a column for each of those at rest.
func (f figures) rest(label string, of []*atRest, rows [][2]string) string {
	heads := strings.Split(label, " | ")
	for _, a := range of {
		heads = append(heads, a.title())
	}
	lines := [][]string{heads}
	for _, r := range rows {
		cells := strings.Split(r[1], " | ")
		for _, a := range of {
			cells = append(cells, page.Number(f[a.name()+r[0]]))
		}
		lines = append(lines, cells)
	}
	return page.Table(lines)
}
