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

	"oauth-server/internal/app/repositories"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/keys"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

// Restoration says how a backup is turned into a data file.
type Restoration struct {
	// KeepSignIns keeps codes, sign-ins, sessions and consents as they are in the backup, and
	// everything issued before the restoration stays valid. Otherwise all of them end.
	KeepSignIns bool
	Event       clientcfg.Event // recorded in the audit trail
}

// DataFileSummary summarizes the contents of a data file.
type DataFileSummary = bolt.Summary

// readers check the tables of a data file. Signing keys must be readable because a server does not
// start without them.
var readers = func() bolt.Readers {
	all := bolt.Readers{}
	for t, check := range repositories.Tables {
		all[t.Name] = check
	}
	for _, t := range []store.Table{keys.KeysTable, keys.SecretsTable} {
		all[t.Name] = func(r *store.Record) error {
			if err := repositories.Tables[t](r); err != nil {
				return fmt.Errorf("%w: %s %q: %w", bolt.ErrCorrupt, t.Name, r.Key, err)
			}
			return nil
		}
	}
	return all
}()

// InspectDataFile reads a whole data file that no process writes to, see [bolt.Inspect].
func InspectDataFile(ctx context.Context, path string) (DataFileSummary, error) {
	return bolt.Inspect(ctx, path, readers)
}

// CopyDataFile copies a data file to w, see [bolt.CopyFile]. It returns ErrStoreHeld if a process
// has the file open.
func CopyDataFile(ctx context.Context, path string, w io.Writer) error {
	return bolt.CopyFile(ctx, path, w)
}

// HeldDataFile is a data file that servers cannot open, see [bolt.Held].
type HeldDataFile struct {
	*bolt.Held
	path string
}

// ErrNoDataFile is returned by [HoldDataFile] for a file that is not a data file.
var ErrNoDataFile = bolt.ErrForeign

// HoldDataFile prevents servers from opening a data file, see [bolt.Hold]. It may return
// ErrStoreHeld or ErrNoDataFile.
func HoldDataFile(path string) (*HeldDataFile, error) {
	held, err := bolt.Hold(path)
	return &HeldDataFile{held, path}, err
}

// Restore replaces the data file with a prepared file, and returns the path where it keeps the old
// one. If that fails, it removes the prepared file and changes nothing.
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

// PrepareRestore creates the file that will replace a data file, see [bolt.Prepare].
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

// besides returns the path of another file next to the data file.
func besides(dataFile, what string) string {
	return dataFile + "." + what + "-" + time.Now().UTC().Format("20060102T150405.000Z")
}

// DataFile returns the path of the data file, with symbolic links resolved if it exists. It returns
// an empty string if the store is not a file.
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
	wanted chan string // prepared file to restore; nil: not supported
	mu     sync.Mutex
	closed bool // a restoration was accepted, or the server stops
}

// newBackups returns the backups of an embedded store, or nil for another store. A server that
// prepares its store at each start does not support restoring.
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

// Restore implements admin.Backups. The command that prepared the file can cancel the restoration
// by removing the file.
func (b *backups) Restore(_ context.Context, name string) error {
	if filepath.Base(name) != name || !strings.HasPrefix(name, bolt.PreparedPrefix(b.path)) {
		return fmt.Errorf("%q is not the name of a prepared file", name)
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
		return errors.New("another restore is running, or the server is stopping")
	}
	b.closed = true
	b.wanted <- prepared // the channel has a buffer of one
	return nil
}

// close refuses further restorations. It returns the prepared file of an accepted one, or an empty
// string.
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

// requests returns the channel of prepared files to restore.
func (b *backups) requests() <-chan string {
	if b == nil {
		return nil
	}
	return b.wanted
}

// Serve creates a server and runs it until ctx ends, see [New] and [Server.Run]. If an operator
// restores the data file, the server stops, the file is replaced, and a new server starts in this
// process. If that server cannot start, Serve puts the old file back and starts a server with it.
func Serve(ctx context.Context, cfg *config.Config, opts Options) error {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	var former *restoredFile // set if the next server is the first with a restored file
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
			opts.Logger.LogAttrs(ctx, slog.LevelError, "stopped with an error; restoring the data file anyway", slog.Any("error", err))
		}
		cfg = server.next()
		if former, err = restoreDataFile(ctx, opts.Logger, server.base.backups.path, server.prepared); err != nil {
			opts.Logger.LogAttrs(ctx, slog.LevelError, "data file not restored; restarting with the current one", slog.Any("error", err))
		}
	}
}

// dropRestore cancels an accepted restoration because the server stops for another reason and could
// not check that it starts with the restored file. The files tell the waiting command.
func dropRestore(ctx context.Context, log *slog.Logger, prepared string) {
	if prepared == "" {
		return
	}
	log.LogAttrs(ctx, slog.LevelWarn, "data file not restored because the server is stopping", slog.String("from", prepared))
	if err := removeIfThere(prepared); err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "prepared file not removed; it contains keys", slog.Any("error", err))
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
	log.LogAttrs(ctx, slog.LevelWarn, "data file restored; restarting", slog.String("former", former))
	return &restoredFile{path, former}, nil
}

func (r *restoredFile) putBack(ctx context.Context, log *slog.Logger, cause error) error {
	refused := besides(r.path, "refused-restore")
	log.LogAttrs(ctx, slog.LevelError, "server does not start with the restored data file; returning to the old one",
		slog.String("restored", refused), slog.Any("error", cause))
	if err := bolt.Replace(r.path, r.former, refused); err != nil {
		return fmt.Errorf("return to the old data file: %w", err)
	}
	return nil
}
