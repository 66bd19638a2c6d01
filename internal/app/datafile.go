package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/keys"
	"oauth-server/internal/repositories"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

// Restoration is how a backup becomes a data file.
type Restoration struct {
	// KeepSignIns leaves codes, sign-ins, sessions and consents as they are in the backup, and what was
	// issued before the restoration as good as the backup has it. Otherwise all of that ends.
	KeepSignIns bool
	Event       clientcfg.Event // goes into the trail
}

// DataFileSummary is what a whole data file holds.
type DataFileSummary = bolt.Summary

// readers are the tables of a data file. A server does not start without its signing keys.
var readers = func() bolt.Readers {
	all := bolt.Readers{}
	for t, check := range tables {
		all[t.Name] = check
	}
	for _, t := range []store.Table{keys.KeysTable, keys.SecretsTable} {
		all[t.Name] = func(r *store.Record) error {
			if err := tables[t](r); err != nil {
				return fmt.Errorf("%w: %s %q: %w", bolt.ErrCorrupt, t.Name, r.Key, err)
			}
			return nil
		}
	}
	return all
}()

// InspectDataFile reads a whole data file that no process writes to; see [bolt.Inspect].
func InspectDataFile(ctx context.Context, path string) (DataFileSummary, error) {
	return bolt.Inspect(ctx, path, readers)
}

// CopyDataFile writes a data file that no process has open; see [bolt.CopyFile]. ErrStoreHeld.
func CopyDataFile(ctx context.Context, path string, w io.Writer) error {
	return bolt.CopyFile(ctx, path, w)
}

// HeldDataFile is a data file that no server opens; see [bolt.Held].
type HeldDataFile struct {
	*bolt.Held
	path string
}

// ErrNoDataFile is returned by [HoldDataFile] for what is no data file.
var ErrNoDataFile = bolt.ErrForeign

// HoldDataFile keeps servers from opening a data file; see [bolt.Hold]. ErrStoreHeld, ErrNoDataFile.
func HoldDataFile(path string) (*HeldDataFile, error) {
	held, err := bolt.Hold(path)
	return &HeldDataFile{held, path}, err
}

// Restore puts a prepared file in the place of the data file, and returns where that one is kept. If that
// fails, nothing has changed and the prepared file is removed.
func (h *HeldDataFile) Restore(prepared string) (kept string, err error) {
	kept = besides(h.path, "before-restore")
	if err := h.Replace(prepared, kept); err != nil {
		return "", errors.Join(err, removeIfThere(prepared))
	}
	if h.IsNew() {
		return "", nil
	}
	return kept, nil
}

func removeIfThere(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncDirectory makes the name of a new file durable.
func SyncDirectory(dir string) error { return bolt.SyncDirectory(dir) }

// PrepareRestore makes the file that is to take the place of a data file; see [bolt.Prepare].
func PrepareRestore(ctx context.Context, backup, dataFile string, r Restoration) (prepared string, err error) {
	return bolt.Prepare(ctx, backup, dataFile, readers, func(ctx context.Context, s *bolt.Store) error {
		repositories, err := repositories.On(ctx, s)
		if err == nil && !r.KeepSignIns {
			err = errors.Join(repositories.EndSignIns(ctx), repositories.RestampClients(ctx), repositories.RestampUsers(ctx))
		}
		if err != nil {
			return err
		}
		return repositories.AddEvent(ctx, r.Event)
	})
}

// besides names another file beside the data file.
func besides(dataFile, what string) string {
	return dataFile + "." + what + "-" + time.Now().UTC().Format("20060102T150405.000Z")
}

// DataFile returns the path of the data file, without symbolic links if it is there; empty if the store
// is none.
func DataFile(cfg config.Store) string {
	if cfg.MongoDB != nil || cfg.Embedded == nil {
		return ""
	}
	if whole, err := filepath.EvalSymlinks(cfg.Embedded.Path); err == nil {
		return whole
	}
	return cfg.Embedded.Path
}

// backups backs up and restores the data file of a running server.
type backups struct {
	*bolt.Store
	path   string
	wanted chan string // a prepared file that is to take its place; nil: that cannot be done
	mu     sync.Mutex
	closed bool // there is one, or none is taken any more
}

// newBackups returns that of an embedded store, and nil for any other. What prepares a store at each start
// cannot do so with one that was restored.
func newBackups(cfg *config.Config, s store.Backend, prepares bool) *backups {
	file, ok := s.(*bolt.Store)
	if !ok {
		return nil
	}
	b := &backups{Store: file, path: DataFile(cfg.Store)}
	if !prepares {
		b.wanted = make(chan string, 1)
	}
	return b
}

// Restore implements admin.Backups. The command that has prepared the file may withdraw it by its removal.
func (b *backups) Restore(_ context.Context, name string) error {
	if filepath.Base(name) != name || !strings.HasPrefix(name, bolt.PreparedPrefix(b.path)) {
		return fmt.Errorf("%q is no name of a prepared file", name)
	}
	prepared := filepath.Join(filepath.Dir(b.path), name)
	s, err := bolt.Open(prepared, bolt.Options{Existing: true})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.wanted == nil:
		return errors.New("this is a demo")
	case b.closed:
		return errors.New("another restoration is under way, or the server stops")
	}
	b.closed = true
	b.wanted <- prepared // there is room for one
	return nil
}

// close refuses what is not accepted yet, and returns the prepared file of what is; empty: there is none.
func (b *backups) close() (prepared string) {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	select {
	case prepared = <-b.wanted:
	default:
	}
	return prepared
}

// requests returns the prepared files that are to take the place of the data file.
func (b *backups) requests() <-chan string {
	if b == nil {
		return nil
	}
	return b.wanted
}

// Serve builds a server and runs it until ctx ends; see [New] and [Server.Run]. If an operator restores
// the data file, the server stops, the file is replaced and a new server starts in this process. If it
// cannot start, the former file is put back, and a server starts with that.
func Serve(ctx context.Context, cfg *config.Config, opts Options) error {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	var former *restoredFile // if the next server is the first with a restored one
	for {
		server, err := New(ctx, cfg, opts)
		switch {
		case err != nil && former != nil:
			if failed := former.putBack(ctx, opts.Logger, err); failed != nil {
				return errors.Join(err, failed)
			}
			former = nil
			continue
		case err != nil && ctx.Err() != nil:
			return nil //nolint:nilerr // stopped before the start was complete
		case err != nil:
			return err
		}
		err = server.Run(ctx)
		switch {
		case server.prepared == "":
			return err
		case ctx.Err() != nil:
			dropRestore(ctx, opts.Logger, server.prepared)
			return err
		case err != nil:
			opts.Logger.LogAttrs(ctx, slog.LevelError, "stopped with an error; restoring the data file all the same", slog.Any("error", err))
		}
		cfg = server.next()
		if former, err = restoreDataFile(ctx, opts.Logger, server.base.backups.path, server.prepared); err != nil {
			opts.Logger.LogAttrs(ctx, slog.LevelError, "data file not restored; starting afresh with what is there", slog.Any("error", err))
		}
	}
}

// dropRestore gives up a restoration that was accepted, because the server stops for another reason: it could
// not see whether it starts with the restored file. The command that waits for it finds out by the files.
func dropRestore(ctx context.Context, log *slog.Logger, prepared string) {
	if prepared == "" {
		return
	}
	log.LogAttrs(ctx, slog.LevelWarn, "data file not restored, because the server stops", slog.String("from", prepared))
	if err := removeIfThere(prepared); err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "prepared file not removed; it holds keys", slog.Any("error", err))
	}
}

// restoredFile is a data file that was replaced.
type restoredFile struct{ path, former string }

func restoreDataFile(ctx context.Context, log *slog.Logger, path, prepared string) (*restoredFile, error) {
	held, err := HoldDataFile(path)
	if err != nil {
		return nil, errors.Join(err, removeIfThere(prepared))
	}
	former, err := held.Restore(prepared)
	if released := held.Release(); err != nil {
		return nil, fmt.Errorf("restore the data file: %w", errors.Join(err, released))
	}
	log.LogAttrs(ctx, slog.LevelWarn, "data file restored; starting afresh", slog.String("former", former))
	return &restoredFile{path, former}, nil
}

func (r *restoredFile) putBack(ctx context.Context, log *slog.Logger, cause error) error {
	refused := besides(r.path, "refused-restore")
	log.LogAttrs(ctx, slog.LevelError, "server does not start with the restored data file; putting the former one back",
		slog.String("restored", refused), slog.Any("error", cause))
	if err := bolt.Replace(r.path, r.former, refused); err != nil {
		return fmt.Errorf("put the former data file back: %w", err)
	}
	return nil
}
