package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Prepare copies a backup to a new file beside the data file, and returns its path. It calls then
// to change the copy; then must not keep the store. Prepare inspects the result, so that only an
// intact file can become the data file. It does not change the backup. Errors are the errors of
// [Open] or of the operating system.
func Prepare(ctx context.Context, backup, dataFile string, tables Readers, then func(context.Context, *Store) error) (prepared string, err error) {
	f, err := os.CreateTemp(filepath.Dir(dataFile), PreparedPrefix(dataFile)+"*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // synced
	err = errors.Join(CopyFile(ctx, backup, f), keepOwner(f, dataFile), f.Sync())
	if err == nil {
		err = complete(ctx, f, tables, then)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("bolt: prepare %s: %w", f.Name(), err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// PreparedPrefix returns the prefix of the names of the files that [Prepare] makes.
func PreparedPrefix(dataFile string) string { return filepath.Base(dataFile) + ".restore-" }

// complete changes and inspects the copy. It gives bbolt the open file, so that bbolt does not open
// it by name: a restoration by root works in the directory of another account, which could make the
// name lead to another file.
func complete(ctx context.Context, f *os.File, tables Readers, then func(context.Context, *Store) error) (err error) {
	defer guard(&err, false)()
	db, _, err := openFile(f.Name(), Options{open: func(string, int, fs.FileMode) (*os.File, error) { return f, nil }}, false)
	if err != nil {
		return err
	}
	s := newStore(db)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := then(ctx, s); err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error { return new(Summary).inspect(ctx, tx, tables) })
}

// Held is a data file, or the place for one, that no other process can open.
type Held struct {
	path  string
	was   fs.FileInfo // nil: it did not exist
	store *Store      // nil: it does not have to be held
}

// Hold keeps other processes from opening a data file until it is released. It does not hold a file
// that is blank, missing, or too damaged to be opened. Errors: [ErrLocked], and [ErrForeign] for
// another program's file, which must not be replaced.
func Hold(dataFile string) (h *Held, err error) {
	h = &Held{path: dataFile}
	h.was, err = os.Stat(dataFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(dataFile); err == nil {
			return nil, fmt.Errorf("bolt: %s: %w: it is a dangling symbolic link", dataFile, ErrForeign)
		}
		return h, nil
	case err != nil:
		return nil, err
	}
	h.store, err = Open(dataFile, Options{Existing: true})
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat) && !errors.Is(err, errBlank) {
		return nil, err
	}
	return h, nil
}

// IsNew reports whether there was no data file.
func (h *Held) IsNew() bool { return h.was == nil }

// Release lets other processes open the file again.
func (h *Held) Release() error {
	if h.store == nil {
		return nil
	}
	return h.store.Close()
}

// errReplaced is returned if the name of the opened or restored file leads to another file.
var errReplaced = errors.New("the file was replaced concurrently")

// Replace is [Replace] for the held file. It fails if another file has replaced it: without a lock,
// a restoration or a starting server may have made one.
func (h *Held) Replace(prepared, kept string) error {
	now, err := os.Stat(h.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case (err == nil) == h.IsNew(), err == nil && (!os.SameFile(now, h.was) || now.Size() != h.was.Size()):
		return errReplaced
	}
	return Replace(h.path, prepared, kept)
}

// Replace puts a prepared file in the place of the data file, and keeps the old data file, if there
// is one, under another name. No process may have the data file open for writing. At every moment
// the data file is complete: first the old one, then the new one. After an error the old one is in
// place. The file system must support hard links.
func Replace(dataFile, prepared, kept string) error {
	return replace(dataFile, prepared, kept, SyncDirectory)
}

func replace(dataFile, prepared, kept string, sync func(dir string) error) error {
	dir := filepath.Dir(dataFile)
	err := os.Link(dataFile, kept)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return place(dataFile, prepared, sync)
	case err != nil:
		return fmt.Errorf("bolt: keep %s: %w", dataFile, err)
	}
	if err = sync(dir); err == nil { // the old file must have its second name on disk before it is replaced
		err = os.Rename(prepared, dataFile)
	}
	if err != nil {
		return errors.Join(err, os.Remove(kept))
	}
	if err = sync(dir); err != nil {
		err = errors.Join(err, os.Rename(kept, dataFile))
	}
	return err
}

// place makes a prepared file the data file, unless a server has made one since the caller looked.
func place(dataFile, prepared string, sync func(dir string) error) error {
	err := os.Link(prepared, dataFile)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errReplaced
	case err != nil:
		return err
	}
	if err = sync(filepath.Dir(dataFile)); err == nil {
		err = os.Remove(prepared)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(dataFile))
	}
	return err
}
