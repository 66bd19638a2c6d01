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
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Restoration is how a backup becomes a data file.
type Restoration struct {
	// KeepSignIns leaves codes, sign-ins, sessions and consents as they are in the backup, and what was
	// issued before the restoration as good as the backup has it. Otherwise all of that ends.
	KeepSignIns bool
	Event       clientcfg.Event // goes into the trail
}

// Prepare writes what is to take the place of the data file to a new file beside it, and returns its path.
// It inspects the result, so that only a whole file ever takes that place. The backup stays as it is.
// Errors are those of [Open], or of the operating system.
func Prepare(ctx context.Context, backup, dataFile string, r Restoration) (prepared string, err error) {
	f, err := os.CreateTemp(filepath.Dir(dataFile), PreparedPrefix(dataFile)+"*") // mode 0600
	if err != nil {
		return "", err
	}
	err = errors.Join(CopyFile(backup, f), keepOwner(f, dataFile), f.Sync(), f.Close())
	if err == nil {
		err = r.apply(f.Name())
	}
	if err == nil {
		_, err = Inspect(ctx, f.Name())
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("embedded: prepare %s: %w", f.Name(), err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// PreparedPrefix begins the names of the files that [Prepare] makes.
func PreparedPrefix(dataFile string) string { return filepath.Base(dataFile) + ".restore-" }

// apply converts the copy to the format of this release and changes it, in one transaction.
func (r *Restoration) apply(path string) (err error) {
	db, err := openFile(path, Options{LockTimeout: DefaultLockTimeout}, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer guard(&err)()
	return db.Update(func(tx *bolt.Tx) error {
		found, err := checkFormat(tx)
		if err == nil && found < format {
			err = convert(tx, found)
		}
		if err != nil {
			return err
		}
		w := &writeTx{tx: tx}
		if !r.KeepSignIns {
			if err := w.endSignIns(r.Event.At); err != nil {
				return err
			}
		}
		events, err := tx.CreateBucketIfNotExists(eventsBucket)
		if err != nil {
			return fmt.Errorf("embedded: make the events: %w", err)
		}
		return w.putEvent(events, r.Event.Key(), &r.Event)
	})
}

// endSignIns removes what people are signed in with, and gives all clients and users another stamp: what
// was issued to them before is worthless, also what the backup does not know of. Consents are removed,
// because some may have been withdrawn since. Revocations stay.
func (w *writeTx) endSignIns(now time.Time) error {
	for _, name := range [][]byte{userSessions, agreements} {
		if w.tx.Bucket(name) != nil {
			if err := w.tx.DeleteBucket(name); err != nil {
				return err
			}
		}
	}
	for _, k := range []kind{codes, refreshTokens, sessions, expiries} {
		err := w.tx.DeleteBucket(buckets[k])
		if err == nil {
			_, err = w.tx.CreateBucket(buckets[k])
		}
		if err != nil {
			return err
		}
	}
	err := w.tx.Bucket(buckets[revocations]).ForEach(func(digest, value []byte) error {
		return w.put(expiries, expiryKey(place{revocations, secret.Digest(digest)}, expiryOf(value)), nil)
	})
	if err != nil {
		return err
	}
	return errors.Join(w.restamp(clients, now, restampClient), w.restamp(users, now, restampUser))
}

// restamp replaces the values of a bucket by those that change returns, those apart that cannot be read:
// nothing is accepted for them.
func (w *writeTx) restamp(k kind, now time.Time, change func(key, value []byte, now time.Time) ([]byte, error)) error {
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
		changed, err := change(key, value, now)
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

func restampClient(id, value []byte, now time.Time) ([]byte, error) {
	c, err := decodeClient(id, value)
	if err != nil {
		return nil, err
	}
	c.Stamp, c.NotBefore = secret.NewStamp(), afterAll(now)
	return encodeClient(&c, c.Version+1), nil
}

func restampUser(name, value []byte, now time.Time) ([]byte, error) {
	u, err := decodeUser(name, value)
	if err != nil {
		return nil, err
	}
	u.Stamp, u.NotBefore = secret.NewStamp(), afterAll(now)
	return encodeUser(&u)
}

// afterAll returns a time after which nothing is issued without a stamp: the next second, because the times in
// tokens are whole ones.
func afterAll(now time.Time) time.Time { return now.UTC().Add(time.Second).Truncate(time.Second) }

// Hold keeps other processes from opening a data file for writing until release is called. A file that is
// damaged, so that none can open it, or not there, needs no holding. Errors: [ErrLocked].
func Hold(dataFile string) (release func() error, err error) {
	db, err := openFile(dataFile, Options{LockTimeout: DefaultLockTimeout}, true)
	switch {
	case err == nil:
		return db.Close, nil
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrForeign), errors.Is(err, fs.ErrNotExist):
		return func() error { return nil }, nil
	}
	return nil, fmt.Errorf("embedded: %s: %w", dataFile, err)
}

// Replace puts a prepared file in the place of the data file, which no process may have open for writing,
// and keeps that one, if it is there, under another name. There is a whole data file at every moment: the
// former one, then the new one.
func Replace(dataFile, prepared, kept string) (there bool, err error) {
	switch _, err := os.Stat(dataFile); {
	case err == nil:
		there = true
		if err := keepAs(dataFile, kept); err != nil {
			return there, fmt.Errorf("embedded: keep %s: %w", dataFile, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if err := syncDirectory(filepath.Dir(dataFile)); err != nil { // the kept one is there before it is replaced
		return there, err
	}
	if err := os.Rename(prepared, dataFile); err != nil {
		return there, err
	}
	return there, syncDirectory(filepath.Dir(dataFile))
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
	return errors.Join(err, to.Sync(), to.Close())
}
