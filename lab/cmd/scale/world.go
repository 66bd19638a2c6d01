package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"oauth-server/lab/process"
)

// world is what all parts use.
type world struct {
	settings
	dir    string // for data, logs and binaries
	sizes  sizes
	old    *figures
	now    *release
	before *release // nil: it is not measured
	uri    string   // of MongoDB's stand-in
}

// release is one build of the server, with the program that fills its stores.
type release struct {
	name           string // new or old
	commit         string
	binary, filler string
	figures        *figures
}

// build builds the releases.
func (w *world) build(ctx context.Context) (err error) {
	root, err := filepath.Abs(w.root)
	if err != nil {
		return err
	}
	w.root = root
	if w.now, err = w.buildTree(ctx, "new", root); err != nil || w.settings.old == "" {
		return err
	}
	tree := filepath.Join(w.dir, "old-tree")
	if err := w.checkOut(ctx, tree); err != nil {
		return err
	}
	if w.before, err = w.buildTree(ctx, "old", tree); err != nil {
		return err
	}
	w.before.commit = w.settings.old
	return nil
}

func (w *world) buildTree(ctx context.Context, name, tree string) (*release, error) {
	r := &release{name: name, binary: filepath.Join(w.dir, "oauth-server-"+name), filler: filepath.Join(w.dir, "filler-"+name)}
	return r, errors.Join(
		process.Execute(ctx, tree, "go", "build", "-o", r.binary, "./cmd/oauth-server"),
		process.Execute(ctx, tree, "go", "-C", "lab", "build", "-mod=mod", "-o", r.filler, "./cmd/scale/filler"))
}

// checkOut writes the tree of the release before, and puts the filler into it.
func (w *world) checkOut(ctx context.Context, tree string) error {
	filler := filepath.Join(tree, "lab/cmd/scale/filler")
	if err := errors.Join(
		os.Mkdir(tree, 0o700),
		process.Execute(ctx, w.root, "git", "archive", "-o", tree+".tar", w.settings.old),
		process.Execute(ctx, w.dir, "tar", "-xf", tree+".tar", "-C", tree),
		os.MkdirAll(filler, 0o700)); err != nil {
		return err
	}
	for from, to := range map[string]string{"main.go": "main.go", "clients.go": "clients.go", "old/policies.go.txt": "policies.go"} {
		text, err := os.ReadFile(filepath.Join(w.root, "lab/cmd/scale/filler", from)) //nolint:gosec // G304: a file of the project
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(filler, to), text, 0o600); err != nil { //nolint:gosec // G703: below a directory of its own
			return err
		}
	}
	return nil
}

// standInOptions are the options that let MongoDB's stand-in hold millions of documents. The heap
// starts at full size, to avoid a full collection each time it grows. By default, the TTL monitor
// would scan all documents every second, and a cursor would copy all documents it has not returned
// yet, or return them all at once.
const standInOptions = "-Xms%[1]s -Xmx%[1]s -Xmn1g -XX:TieredStopAtLevel=4 -DttlMonitorSeconds=60 -DcursorsShare=true"

// with runs do while MongoDB's stand-in runs. Each part has one of its own, with an empty heap.
func (w *world) with(ctx context.Context, do func() error) (err error) {
	env := []string{"MONGO_TEST_SERVER_OPTIONS=" + fmt.Sprintf(standInOptions, w.heap)}
	p, err := process.Start(w.dir, "mongodb", env, filepath.Join(w.root, "internal/store/mongo/testserver/run.sh"), "0")
	if err != nil {
		return err
	}
	defer func() {
		const terminated = 143
		ended, failed := p.Stop(), (*exec.ExitError)(nil)
		if !errors.As(ended, &failed) || failed.ExitCode() != terminated {
			err = errors.Join(err, ended)
		}
	}()
	for range 600 {
		if w.uri = uriIn(p.Log()); w.uri != "" {
			return do()
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("MongoDB's stand-in does not answer; see %s", p.Log())
}

func uriIn(log string) string {
	f, err := os.Open(log) //nolint:gosec // G304: the log of a process that this one started
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "mongodb://") {
			return lines.Text()
		}
	}
	return ""
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// The kinds of store.
const (
	embedded = "embedded"
	mongodb  = "mongodb"
)

func kinds() []string { return []string{embedded, mongodb} }

// store is a store of one release.
type store struct {
	*release
	kind, dir, file, uri, database string
}

// flags returns the store flags for the server, its commands and the filler.
func (s *store) flags() []string {
	if s.kind == embedded {
		return []string{"--data=" + s.file}
	}
	return []string{"--mongodb-uri=" + s.uri, "--mongodb-database=" + s.database}
}

// newStore makes an empty store.
func (w *world) newStore(ctx context.Context, r *release, kind string) (*store, error) {
	dir, err := os.MkdirTemp(w.dir, "store-*")
	if err != nil {
		return nil, err
	}
	s := &store{release: r, kind: kind, dir: dir, file: filepath.Join(dir, "data.db"), uri: w.uri, database: "scale_" + strings.ToLower(rand.Text())}
	if kind == mongodb {
		_, err = s.command(ctx, "", "migrate", "up")
	}
	return s, err
}

// command runs a command of the server's binary on the store, with that input, and returns its output.
func (s *store) command(ctx context.Context, input string, args ...string) ([]byte, error) {
	return output(ctx, input, s.binary, append(args, s.flags()...)...)
}

// fill runs the filler.
func (s *store) fill(ctx context.Context, args ...string) ([]byte, error) {
	return output(ctx, "", s.filler, append(args, s.flags()...)...)
}

func output(ctx context.Context, input, binary string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // G204: what this program has built
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(binary), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
