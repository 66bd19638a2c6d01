package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// Summary is what [Inspect] finds in a data file.
type Summary struct {
	Bytes  int64
	Format uint64
	// Records are the numbers of records, by bucket.
	Records map[string]int
	// Unreadable are those of them that this release cannot read or serve, by bucket: it could not in the
	// store from which the file was copied, or they were damaged since.
	Unreadable map[string]int
	// Newest is the number of the newest entry of the trail, and Changed when it was made; zero if there is none.
	Newest  int64
	Changed time.Time
}

// Readers return why a record of a table cannot be used; nil if it can. With an ErrCorrupt the file is not
// in order.
type Readers map[string]func(r *store.Record) error

// Inspect reads a whole data file that no process writes to, and changes nothing. It returns an error
// unless all of its pages are in order, and so are the keys on them, and [Open] and a server that starts
// would take it. What is encrypted is checked as far as it can be without the secret.
// Errors are those of Open.
func Inspect(ctx context.Context, path string, tables Readers) (sum Summary, err error) {
	err = readFile(path, Options{checked: true}, func(tx *bbolt.Tx) error { return sum.inspect(ctx, tx, tables) })
	if err != nil {
		err = fmt.Errorf("bolt: inspect %s: %w", path, err)
	}
	return sum, err
}

// inspect needs a file that no one writes to, and its list of free pages. It counts the records and reads each. It
// looks each key up too: that reads all pages that bbolt follows then. Keys in order, which from sees to, show that
// it does not follow them in a circle.
func (sum *Summary) inspect(ctx context.Context, tx *bbolt.Tx, tables Readers) error {
	sum.Bytes, sum.Format = tx.Size(), format
	sum.Records, sum.Unreadable = map[string]int{}, map[string]int{}
	n := 0
	err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		bucket := string(name)
		if b == nil {
			return damaged("%q is no bucket", bucket)
		}
		for key, value := range from(b, "") {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if value == nil || len(b.Get(key)) != len(value) {
				return damaged("key %x of %q is not where it belongs", key, bucket)
			}
			sum.Records[bucket]++
			var unusable error
			if reader, ok := tables[bucket]; ok {
				stored, err := decodeRecord(value)
				r := stored.record(string(key), stored.value, err)
				unusable = reader(&r)
			} else if bucket == trailBucket {
				e := decodeEntry(key, value)
				sum.Newest, sum.Changed, unusable = e.Number, e.At, e.Err
			}
			switch {
			case errors.Is(unusable, ErrCorrupt):
				return unusable
			case unusable != nil:
				sum.Unreadable[bucket]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return checkPages(tx)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// checkPages returns an error unless every page is a part of one tree, or free, and never both. It needs
// [Options].checked. It is called after all records were read, because bbolt checks in a goroutine without guard.
func checkPages(tx *bbolt.Tx) (err error) {
	pages := int(tx.Size() / int64(tx.DB().Info().PageSize))
	for id := 0; id < pages; id++ {
		page, err := tx.Page(id)
		if err != nil {
			return err
		}
		if page.Type == "free" {
			continue
		}
		if id += page.OverflowCount; id >= pages {
			return damaged("page %d is longer than the file", page.ID)
		}
	}
	for found := range tx.Check() { // to the end, or its goroutine stays
		if err == nil {
			err = fmt.Errorf("%w: %w", ErrCorrupt, found)
		}
	}
	return err
}
