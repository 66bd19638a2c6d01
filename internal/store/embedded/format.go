package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// format is the version of the layout. It grows when an older release could
// misread what a newer one writes.
const format = 1

var (
	formatKey   = []byte("format")
	revisionKey = []byte("clients_revision")
)

// errBlank: the file has no buckets at all.
var errBlank = errors.New("embedded: the file is empty")

func checkFormat(tx *bolt.Tx) error {
	if first, _ := tx.Cursor().First(); first == nil {
		return errBlank
	}
	meta := tx.Bucket(buckets[settings])
	if meta == nil {
		return fmt.Errorf("%w: it is a bbolt file of another program", ErrForeign)
	}
	value := meta.Get(formatKey)
	if len(value) != 8 {
		return fmt.Errorf("%w: it carries no format version", ErrForeign)
	}
	if v := binary.BigEndian.Uint64(value); v != format {
		return fmt.Errorf("%w (format %d, this release knows %d)", ErrNewerFormat, v, format)
	}
	for _, name := range allBuckets() {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("%w: its bucket %q is missing", ErrCorrupt, name)
		}
	}
	return nil
}

func allBuckets() [][]byte { return slices.AppendSeq(journals[:], maps.Values(buckets)) }

func layOut(tx *bolt.Tx) error {
	for _, name := range allBuckets() {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(buckets[settings])
	return errors.Join(
		meta.Put(formatKey, binary.BigEndian.AppendUint64(nil, format)),
		meta.Put(revisionKey, binary.BigEndian.AppendUint64(nil, 0)),
	)
}
