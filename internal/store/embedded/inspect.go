package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Summary is what [Inspect] finds in a data file.
type Summary struct {
	Bytes  int64
	Format uint64
	// Records are the numbers of records, by bucket.
	Records map[string]int
	// Unreadable are those of them that this release cannot read, by bucket: it could not in the store
	// from which the file was copied, or they were damaged since.
	Unreadable map[string]int
	// Policies is the version of the policies: the number of the newest change of limits.
	Policies int64
	// Event is when the newest change of clients and users was made; zero if there is none.
	Event time.Time
}

// Inspect reads a whole data file that no process writes to, and changes nothing. It returns an error
// unless [Open] would take the file, all of its pages are in order, and so are the keys on them.
// Errors are those of Open.
func Inspect(ctx context.Context, path string) (sum Summary, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("embedded: inspect %s: %w", path, err)
		}
	}()
	if sum.Bytes, err = sizeOf(path); err != nil {
		return sum, err
	}
	err = readFile(path, Options{LockTimeout: DefaultLockTimeout}, func(tx *bolt.Tx) error {
		if sum.Format, err = checkFormat(tx); err != nil {
			return err
		}
		if sum.Format == blank {
			return fmt.Errorf("%w: there is nothing in it", ErrForeign)
		}
		if err := sum.walk(ctx, tx); err != nil {
			return err
		}
		for failed := range tx.Check() { // all are received, or its goroutine stays
			if err == nil {
				err = fmt.Errorf("%w: %w", ErrCorrupt, failed)
			}
		}
		return err
	})
	return sum, err
}

// Readable returns an error unless [Open] would take the file. It reads the beginning only.
func Readable(path string) error {
	if _, err := sizeOf(path); err != nil {
		return err
	}
	return readFile(path, Options{LockTimeout: DefaultLockTimeout}, func(tx *bolt.Tx) error {
		_, err := checkFormat(tx)
		return err
	})
}

// sizeOf returns the size of a file that can be a data file.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%w: it is no regular file", ErrForeign)
	case info.Size() == 0:
		return 0, fmt.Errorf("%w: it is empty", ErrForeign)
	}
	return info.Size(), nil
}

// leafElement is the least that bbolt needs on a page for a key, in bytes.
const leafElement = 16

// walk counts the records, reads each, and finds each by its key, for which it reads all of the pages above.
// It comes before bbolt's own check, because that reads the pages in a goroutine in which a fault cannot be
// recovered; and it ends where pages refer to each other in a circle.
func (sum *Summary) walk(ctx context.Context, tx *bolt.Tx) error {
	sum.Records, sum.Unreadable = map[string]int{}, map[string]int{}
	left := sum.Bytes / leafElement
	err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		read, known := readers[string(name)]
		var last []byte
		c, finder := b.Cursor(), b.Cursor()
		for key, value := c.First(); key != nil; key, value = c.Next() {
			found, _ := finder.Seek(key)
			if left--; left < 0 || last != nil && bytes.Compare(key, last) <= 0 || !bytes.Equal(found, key) {
				return fmt.Errorf("%w: the keys of %s are out of order", ErrCorrupt, name)
			}
			if left%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			last = key
			sum.Records[string(name)]++
			if known && read(key, value) != nil {
				sum.Unreadable[string(name)]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sum.Format >= verbose { // before that, all policies are behind their version
		if sum.Policies, err = policyVersion(get(tx, settings, policiesKey)); err != nil {
			return err
		}
	}
	if b := tx.Bucket(eventsBucket); b != nil {
		if key, value := b.Cursor().Last(); key != nil {
			if e, ok := clientcfg.ReadEvent(string(key), value); ok && e.Err == nil {
				sum.Event = e.At
			}
		}
	}
	return nil
}

// readers say whether a record can be read, for the buckets of which that matters.
var readers = map[string]func(key, value []byte) error{
	string(buckets[codes]): func(_, value []byte) error {
		_, err := decodeCode(secret.Digest{}, value)
		return err
	},
	string(buckets[sessions]): func(_, value []byte) error {
		_, err := decodeSession(secret.Digest{}, value)
		return err
	},
	string(buckets[refreshTokens]): func(_, value []byte) error {
		d, _, _ := open(value)
		return d.err
	},
	string(buckets[clients]): func(id, value []byte) error {
		_, err := decodeClient(id, value)
		return err
	},
	string(buckets[users]): func(name, value []byte) error {
		_, err := decodeUser(name, value)
		return err
	},
	string(buckets[signingKeys]): func(_, value []byte) error {
		_, err := decodeKey(value)
		return err
	},
	string(agreements): func(_, value []byte) error {
		_, err := decodeAgreement(value)
		return err
	},
	string(eventsBucket): func(key, value []byte) error {
		e, _ := clientcfg.ReadEvent(string(key), value)
		return e.Err
	},
	string(auditBucket): func(key, value []byte) error {
		version, err := policyVersion(key)
		if err == nil {
			_, err = clientcfg.DecodePolicyEntry(json.RawMessage(value), version)
		}
		return err
	},
}
