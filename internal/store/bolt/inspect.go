package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/store"
)

// Summary is the result of [Inspect].
type Summary struct {
	Bytes  int64
	Format uint64
	// Records has the number of records, by bucket.
	Records map[string]int
	// Unreadable has the number of records that this release cannot read or serve, by bucket. They
	// were already unreadable in the store that the file was copied from, or were damaged since.
	Unreadable map[string]int
	// Newest is the number of the newest entry of the trail, and Changed its time; zero if the trail is empty.
	Newest  int64
	Changed time.Time
}

// Readers has a function per table that returns why a record cannot be used; nil if it can. An
// ErrCorrupt means that the file is damaged.
type Readers map[string]func(r *store.Record) error

// Inspect reads a whole data file without changing it. No process may write to the file. Inspect
// returns an error unless all pages and their keys are in order, and [Open] and a starting server
// accept the file. It checks encrypted values as far as possible without the secret. It returns the
// same errors as Open.
func Inspect(ctx context.Context, path string, tables Readers) (sum Summary, err error) {
	err = readFile(path, Options{checked: true}, func(tx *bbolt.Tx) error { return sum.inspect(ctx, tx, tables) })
	if err != nil {
		err = fmt.Errorf("bolt: inspect %s: %w", path, withoutPath(err))
	}
	return sum, err
}

// inspect counts and reads all records. The file must have no writer, and its list of free pages
// must be loaded. inspect also looks up each key, which reads the same pages as [bbolt.Tx.Check]
// will. If the keys are in order, bbolt does not follow pages in a circle.
func (sum *Summary) inspect(ctx context.Context, tx *bbolt.Tx, tables Readers) error {
	sum.Bytes, sum.Format = tx.Size(), format
	sum.Records, sum.Unreadable = map[string]int{}, map[string]int{}
	n := 0
	err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		bucket := string(name)
		if b == nil {
			return damaged("%q is not a bucket", bucket)
		}
		for key, value := range from(b, "") {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if value == nil || len(b.Get(key)) != len(value) {
				return damaged("key %x of %q is out of order", key, bucket)
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

// checkPages returns an error unless every page is either part of one tree or free, but not both.
// It needs [Options].checked. Call it after all records were read: bbolt checks in a goroutine,
// where a panic cannot be recovered.
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
	for found := range tx.Check() { // read to the end: its goroutine would leak otherwise
		if err == nil {
			err = fmt.Errorf("%w: %w", ErrCorrupt, found)
		}
	}
	return err
}
