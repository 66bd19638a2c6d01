package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// Held is a data file, or the place for one, that no other process opens for writing.
type Held struct {
	path string
	was  fs.FileInfo // nil: it was not there
	db   *bolt.DB    // nil: it need not be held
}

// Hold keeps other processes from opening a data file for writing until it is released. A file that is
// damaged, so that none can open it, empty or not there, needs no holding. Errors: [ErrLocked], and
// [ErrForeign] for what must not be replaced, because it is no data file.
func Hold(dataFile string) (*Held, error) {
	h := &Held{path: dataFile}
	if err := h.hold(); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
		return nil, errors.Join(fmt.Errorf("embedded: %s: %w", dataFile, err), h.Release())
	}
	return h, nil
}

func (h *Held) hold() (err error) {
	h.was, err = os.Stat(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(h.path); err == nil {
			return fmt.Errorf("%w: it is a symbolic link to a file that is not there", ErrForeign)
		}
		return nil
	case err != nil:
		return err
	case !h.was.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file", ErrForeign)
	case h.was.Size() == 0: // bbolt would lay it out
		return nil
	}
	if h.db, err = openFile(h.path, Options{}, true); err != nil {
		return err
	}
	defer guardFile(&err)()
	return h.db.View(func(tx *bolt.Tx) error {
		_, err := checkFormat(tx)
		return err
	})
}

// IsNew reports whether there was no data file.
func (h *Held) IsNew() bool { return h.was == nil }

// Release ends the holding.
func (h *Held) Release() error {
	if h.db == nil {
		return nil
	}
	return h.db.Close()
}

// errReplaced is returned if another file has the name of one that is restored.
var errReplaced = errors.New("the file was replaced meanwhile")

// Replace is [Replace] for the file that is held. It fails if another one has its place by now: several
// restorations can hold a file at once, and a server may have started after the first of them.
func (h *Held) Replace(prepared, kept string) (there bool, err error) {
	now, err := os.Stat(h.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case (err == nil) != (h.was != nil), err == nil && !os.SameFile(now, h.was):
		return false, errReplaced
	case err == nil && h.was.Size() == 0 && now.Size() != 0: // a server has started with it
		return false, errReplaced
	}
	return Replace(h.path, prepared, kept)
}

// Replace puts a prepared file in the place of the data file, which no process may have open for writing,
// and keeps that one, if it is there, under another name. There is a whole data file at every moment: the
// former one, then the new one. After an error the former one has its place.
func Replace(dataFile, prepared, kept string) (there bool, err error) {
	return replace(dataFile, prepared, kept, SyncDirectory)
}

func replace(dataFile, prepared, kept string, sync func(dir string) error) (there bool, err error) {
	dir := filepath.Dir(dataFile)
	err = keepAs(dataFile, kept)
	if there = !errors.Is(err, fs.ErrNotExist); there && err != nil {
		return there, fmt.Errorf("embedded: keep %s: %w", dataFile, err)
	}
	undo := func() error { return nil }
	if there {
		undo = func() error { return os.Remove(kept) }
	}
	if err = sync(dir); err == nil { // the kept one is there before it is replaced
		err = move(prepared, dataFile, there)
	}
	if err == nil {
		undo = func() error { return os.Rename(dataFile, prepared) }
		if there {
			undo = func() error { return os.Rename(kept, dataFile) }
		}
		err = sync(dir)
	}
	if err != nil {
		err = errors.Join(err, undo())
	}
	return there, err
}

// move gives the prepared file the name of the data file. If that was not there, it does not take the name
// from a file that a server has made since.
func move(prepared, dataFile string, there bool) error {
	if there {
		return os.Rename(prepared, dataFile)
	}
	err := os.Link(prepared, dataFile)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errReplaced
	case err != nil: // the file system has no links
		return os.Rename(prepared, dataFile)
	}
	if err = os.Remove(prepared); err != nil {
		return errors.Join(err, os.Remove(dataFile))
	}
	return nil
}

// SyncDirectory makes the name of a new file durable; bbolt syncs its content only.
func SyncDirectory(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	// Some systems cannot sync a directory, and need not.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}
