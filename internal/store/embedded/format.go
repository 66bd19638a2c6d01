package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Versions of the layout. It grows when an older release could misread what a newer one writes.
const (
	blank     = 0 // no buckets at all
	journaled = 1 // expiring records could be in a journal, see [foldJournals]
	whole     = 2 // all policies are in one value, see [splitPolicies]
	verbose   = 3 // clients are JSON, which [decodeClient] still reads: nothing has to be converted
	format    = 4
)

var (
	formatKey   = []byte("format")
	revisionKey = []byte("clients_revision")
)

// checkFormat returns the version of the layout. Errors: [ErrForeign], [ErrNewerFormat], and
// [ErrCorrupt] if a bucket is missing.
func checkFormat(tx *bolt.Tx) (found uint64, err error) {
	if first, _ := tx.Cursor().First(); first == nil {
		return blank, nil
	}
	meta := tx.Bucket(buckets[settings])
	if meta == nil {
		return 0, fmt.Errorf("%w: it is a bbolt file of another program", ErrForeign)
	}
	value := meta.Get(formatKey)
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: it carries no format version", ErrForeign)
	}
	found = binary.BigEndian.Uint64(value)
	names := slices.Collect(maps.Values(buckets))
	switch found {
	case format, verbose, whole:
	case journaled:
		names = append(names, journals...)
	default:
		return 0, fmt.Errorf("%w (format %d, this release knows %d)", ErrNewerFormat, found, format)
	}
	for _, name := range names {
		if tx.Bucket(name) == nil {
			return 0, fmt.Errorf("%w: its bucket %q is missing", ErrCorrupt, name)
		}
	}
	return found, nil
}

// convert brings a file of an earlier format to this one, step by step, in one transaction.
func convert(tx *bolt.Tx, found uint64) error {
	if found <= journaled {
		if err := foldJournals(tx); err != nil {
			return err
		}
	}
	if found <= whole {
		if err := splitPolicies(tx); err != nil {
			return err
		}
	}
	return putFormat(tx)
}

// keepCopy copies the file, as it is before it is converted, to where its name ends in its format.
func keepCopy(db *bolt.DB, path string, found uint64) error {
	name := fmt.Sprintf("%s.format%d", path, found)
	part := name + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // beside the data file
	if err != nil {
		return err
	}
	err = db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(f)
		return err
	})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return errors.Join(os.Rename(part, name), SyncDirectory(filepath.Dir(path)))
}

func layOut(tx *bolt.Tx) error {
	for k := codes; k <= counters; k++ { // in order, so that new files are alike
		if _, err := tx.CreateBucketIfNotExists(buckets[k]); err != nil {
			return err
		}
	}
	return errors.Join(
		putFormat(tx),
		tx.Bucket(buckets[settings]).Put(revisionKey, binary.BigEndian.AppendUint64(nil, 0)),
	)
}

func putFormat(tx *bolt.Tx) error {
	return tx.Bucket(buckets[settings]).Put(formatKey, binary.BigEndian.AppendUint64(nil, format))
}

// journals are two buckets of format 1. Expiring records were first added to one of them, under
// ascending numbers of 8 bytes, and later moved to the bucket of their kind. An entry is the kind in 1
// byte, the digest and the value; without a value, the record was removed.
var journals = [][]byte{[]byte("journal_a"), []byte("journal_b")}

// foldJournals makes a file of format 1 one of format 2: what the journals hold goes to the buckets of
// its kind, in the order in which it was written.
func foldJournals(tx *bolt.Tx) error {
	entries := map[string][]byte{} // by number; no journal held many more than 4096
	for _, name := range journals {
		err := tx.Bucket(name).ForEach(func(number, entry []byte) error {
			entries[string(number)] = entry
			return nil
		})
		if err != nil {
			return fmt.Errorf("embedded: read %s: %w", name, err)
		}
	}
	w := &writeTx{tx: tx}
	for _, number := range slices.Sorted(maps.Keys(entries)) {
		p, value, err := parseEntry(entries[number])
		if err != nil {
			return err
		}
		if err := w.set(p, value); err != nil {
			return err
		}
	}
	return errors.Join(tx.DeleteBucket(journals[0]), tx.DeleteBucket(journals[1]))
}

func parseEntry(entry []byte) (p place, value []byte, err error) {
	if len(entry) < 1+len(p.digest) || !expires(kind(entry[0])) {
		return p, nil, fmt.Errorf("%w: malformed entry %x in a journal", ErrCorrupt, entry)
	}
	p.kind = kind(entry[0])
	rest := entry[1+copy(p.digest[:], entry[1:]):]
	if len(rest) == 0 {
		return p, nil, nil
	}
	return p, rest, nil
}
