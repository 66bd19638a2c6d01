package embedded

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Versions of the layout. It grows when an older release could misread what a newer one writes.
const (
	blank  = 0 // no buckets at all
	format = 4
)

var formatKey = []byte("format")

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
	switch {
	case found < format:
		return 0, fmt.Errorf("%w: a development version wrote it, in format %d", ErrForeign, found)
	case found > format:
		return 0, fmt.Errorf("%w (format %d, this release knows %d)", ErrNewerFormat, found, format)
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return 0, fmt.Errorf("%w: its bucket %q is missing", ErrCorrupt, name)
		}
	}
	return found, nil
}

func layOut(tx *bolt.Tx) error {
	for k := users; k <= counters; k++ { // in order, so that new files are alike
		if _, err := tx.CreateBucketIfNotExists(buckets[k]); err != nil {
			return err
		}
	}
	return putFormat(tx)
}

func putFormat(tx *bolt.Tx) error {
	return tx.Bucket(buckets[settings]).Put(formatKey, binary.BigEndian.AppendUint64(nil, format))
}
