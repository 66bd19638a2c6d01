package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/secret"
)

// Restoration is how a backup becomes a data file.
type Restoration struct {
	// KeepSignIns leaves the stamps of users as they are in the backup.
	KeepSignIns bool
	Tables      Readers // of the records in the result
	// Then changes the copy after that. It must not keep the store.
	Then func(ctx context.Context, s *Store) error
}

// Prepare writes what is to take the place of the data file to a new file beside it, and returns its path.
// It inspects the result, so that only a whole file ever takes that place. The backup stays as it is.
// Errors are those of [Open], or of the operating system.
func Prepare(ctx context.Context, backup, dataFile string, r Restoration) (prepared string, err error) {
	f, err := os.CreateTemp(filepath.Dir(dataFile), PreparedPrefix(dataFile)+"*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // synced
	err = errors.Join(CopyFile(ctx, backup, f), keepOwner(f, dataFile), f.Sync())
	if err == nil {
		err = r.apply(ctx, f)
	}
	if err == nil {
		_, err = inspectFile(ctx, f.Name(), r.Tables, Options{LockTimeout: DefaultLockTimeout, open: again(f)})
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("embedded: prepare %s: %w", f.Name(), err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// again returns how bbolt opens a file that is open here, and no other one: a restoration by root works in the
// directory of another account, which can give that name to another file meanwhile.
func again(f *os.File) func(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return func(name string, flag int, mode fs.FileMode) (*os.File, error) {
		dir, err := os.OpenRoot(filepath.Dir(name)) // no link leads out of it
		if err != nil {
			return nil, err
		}
		defer func() { _ = dir.Close() }()
		opened, err := dir.OpenFile(filepath.Base(name), flag&^os.O_CREATE, mode)
		if err != nil {
			return nil, err
		}
		was, err := f.Stat()
		if err == nil {
			var is fs.FileInfo
			if is, err = opened.Stat(); err == nil && !os.SameFile(was, is) {
				err = &fs.PathError{Op: "open", Path: name, Err: errReplaced}
			}
		}
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		return opened, nil
	}
}

// PreparedPrefix begins the names of the files that [Prepare] makes.
func PreparedPrefix(dataFile string) string { return filepath.Base(dataFile) + ".restore-" }

// apply changes the copy.
func (r *Restoration) apply(ctx context.Context, f *os.File) (err error) {
	db, err := openFile(f.Name(), Options{LockTimeout: DefaultLockTimeout, open: again(f)}, false)
	if err != nil {
		return err
	}
	s := newStore(db)
	defer func() { err = errors.Join(err, s.Close()) }()
	defer guardFile(&err)()
	err = db.Update(func(tx *bolt.Tx) error {
		if _, err := checkFormat(tx); err != nil || r.KeepSignIns {
			return err
		}
		return (&writeTx{tx: tx}).restamp(users, restampUser)
	})
	if err != nil {
		return err
	}
	return r.Then(ctx, s)
}

// restamp replaces the values of a bucket by those that change returns, those apart that cannot be read:
// nothing is accepted for them.
func (w *writeTx) restamp(k kind, change func(key, value []byte) ([]byte, error)) error {
	type record struct{ key, value []byte }
	var next []record // a bucket may not be changed while it is read
	flush := func() error {
		for _, r := range next {
			if err := w.put(k, r.key, r.value); err != nil {
				return err
			}
		}
		next = next[:0]
		return nil
	}
	c := w.tx.Bucket(buckets[k]).Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		changed, err := change(key, value)
		if err != nil {
			continue // unreadable
		}
		key = bytes.Clone(key)
		if next = append(next, record{key, changed}); len(next) < sweepStep {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		c = w.tx.Bucket(buckets[k]).Cursor()
		c.Seek(key)
	}
	return flush()
}

func restampUser(name, value []byte) ([]byte, error) {
	u, err := decodeUser(name, value)
	if err != nil {
		return nil, err
	}
	u.Stamp = secret.NewStamp()
	return encodeUser(&u)
}

// keepAs gives a file a second name or, where the file system has no such names, makes a copy.
func keepAs(file, name string) (err error) {
	if err := os.Link(file, name); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	from, err := os.Open(file) //nolint:gosec // the operator names the data file
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // beside the data file
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
