package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"oauth-server/internal/config"
	"oauth-server/internal/store/embedded"
)

// Restoration is how a backup becomes a data file.
type Restoration = embedded.Restoration

// DataFileSummary is what a whole data file holds.
type DataFileSummary = embedded.Summary

// InspectDataFile reads a whole data file that no process writes to; see [embedded.Inspect].
func InspectDataFile(ctx context.Context, path string) (DataFileSummary, error) {
	return embedded.Inspect(ctx, path)
}

// CopyDataFile writes a data file that no process has open; see [embedded.CopyFile]. ErrStoreHeld.
func CopyDataFile(path string, w io.Writer) error { return embedded.CopyFile(path, w) }

// HoldDataFile keeps servers from opening a data file; see [embedded.Hold]. ErrStoreHeld.
func HoldDataFile(path string) (release func() error, err error) { return embedded.Hold(path) }

// PrepareRestore makes the file that is to take the place of a data file; see [embedded.Prepare].
func PrepareRestore(ctx context.Context, backup, dataFile string, r Restoration) (prepared string, err error) {
	return embedded.Prepare(ctx, backup, dataFile, r)
}

// ReplaceDataFile puts a prepared file in the place of the data file, which has to be held, and returns
// where that one is kept; see [embedded.Replace].
func ReplaceDataFile(dataFile, prepared string) (kept string, err error) {
	kept = besides(dataFile, "before-restore")
	there, err := embedded.Replace(dataFile, prepared, kept)
	if !there {
		kept = ""
	}
	return kept, err
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
	*embedded.Store
	path   string
	wanted chan string // a prepared file that is to take its place; nil: that cannot be done
}

// newBackups returns that of an embedded store, and nil for any other. What prepares a store at each start
// cannot do so with one that was restored.
func newBackups(cfg *config.Config, s Store, prepares bool) *backups {
	file, ok := s.(*embedded.Store)
	if !ok {
		return nil
	}
	b := &backups{Store: file, path: DataFile(cfg.Store)}
	if !prepares {
		b.wanted = make(chan string, 1)
	}
	return b
}

// Restore implements admin.Backups.
func (b *backups) Restore(_ context.Context, name string) error {
	if filepath.Base(name) != name || !strings.HasPrefix(name, embedded.PreparedPrefix(b.path)) {
		return fmt.Errorf("%q is no name of a prepared file", name)
	}
	prepared := filepath.Join(filepath.Dir(b.path), name)
	if err := embedded.Readable(prepared); err != nil {
		return err
	}
	select {
	case b.wanted <- prepared:
		return nil
	default:
		return errors.New("it is restored already, or this is a demo")
	}
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
		case err != nil && ctx.Err() != nil:
			return nil //nolint:nilerr // stopped before the start was complete
		case err != nil && former != nil:
			if failed := former.putBack(ctx, opts.Logger, err); failed != nil {
				return errors.Join(err, failed)
			}
			former = nil
			continue
		case err != nil:
			return err
		}
		if err := server.Run(ctx); err != nil || server.prepared == "" {
			return err
		}
		cfg = server.next()
		if former, err = restoreDataFile(ctx, opts.Logger, server.base.backups.path, server.prepared); err != nil {
			opts.Logger.LogAttrs(ctx, slog.LevelError, "data file not restored; starting afresh with what is there", slog.Any("error", err))
		}
	}
}

// restoredFile is a data file that was replaced.
type restoredFile struct{ path, former string }

func restoreDataFile(ctx context.Context, log *slog.Logger, path, prepared string) (*restoredFile, error) {
	release, err := HoldDataFile(path)
	if err != nil {
		return nil, err
	}
	former, err := ReplaceDataFile(path, prepared)
	if err = errors.Join(err, release()); err != nil {
		return nil, fmt.Errorf("restore the data file: %w", err)
	}
	log.LogAttrs(ctx, slog.LevelWarn, "data file restored; starting afresh", slog.String("former", former))
	return &restoredFile{path, former}, nil
}

func (r *restoredFile) putBack(ctx context.Context, log *slog.Logger, cause error) error {
	refused := besides(r.path, "refused-restore")
	log.LogAttrs(ctx, slog.LevelError, "server does not start with the restored data file; putting the former one back",
		slog.String("restored", refused), slog.Any("error", cause))
	if _, err := embedded.Replace(r.path, r.former, refused); err != nil {
		return fmt.Errorf("put the former data file back: %w", err)
	}
	return nil
}
