package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

// boltFile is a store with its file, which can be changed while the store is closed.
type boltFile struct {
	*bolt.Store
	path string
}

// change changes the value stored under a key.
func (f *boltFile) change(t *testing.T, bucket string, key []byte, how func(value []byte) []byte) {
	t.Helper()
	check.OK(t, f.Close())
	db, err := bbolt.Open(f.path, 0o600, nil)
	check.OK(t, err)
	check.OK(t, errors.Join(db.Update(func(tx *bbolt.Tx) error {
		values := tx.Bucket([]byte(bucket))
		return values.Put(key, how(bytes.Clone(values.Get(key))))
	}), db.Close()))
	f.Store, err = bolt.Open(f.path, bolt.Options{})
	check.OK(t, err)
}

var inFile = target{
	Name: "bolt",
	Location: func(t *testing.T) string {
		t.Helper()
		return filepath.Join(t.TempDir(), "oauth-server.db")
	},
	Open: func(_ context.Context, location string) (backend, error) {
		s, err := bolt.Open(location, bolt.Options{})
		return &boltFile{s, location}, err
	},
	Sweep: func(t *testing.T, b backend, now time.Time) {
		t.Helper()
		_, err := b.(*boltFile).Sweep(t.Context(), now)
		check.OK(t, err, "sweep")
	},
	Many: 8192, // twice as many as one transaction reads
	Age: func(t *testing.T, b backend, table store.Table, key string, by time.Duration) {
		t.Helper()
		b.(*boltFile).change(t, table.Name, []byte(key), func(value []byte) []byte {
			_, version := binary.Varint(value[1:]) // after the format
			at := 1 + version + 8                  // after the nonce
			_, expires := binary.Varint(value[at:])
			at += expires
			changed, size := binary.Varint(value[at:])
			return slices.Concat(value[:at], binary.AppendVarint(nil, changed-by.Milliseconds()), value[at+size:])
		})
	},
	Spoil: map[string]func(t *testing.T, b backend, table store.Table, key string){
		"edited by hand": spoilRecord(func([]byte) []byte { return []byte(`{"n":1}`) }),
		"newer version":  spoilRecord(func(value []byte) []byte { value[0]++; return value }),
		"truncated":      spoilRecord(func(value []byte) []byte { return value[:9] }),
		"empty":          spoilRecord(func([]byte) []byte { return nil }),
	},
	SpoilEntry: map[string]func(t *testing.T, b backend, number int64){
		"edited by hand": spoilEntry(func([]byte) []byte { return []byte(`{"n":1}`) }),
		"newer version":  spoilEntry(func(value []byte) []byte { value[0]++; return value }),
		"truncated":      spoilEntry(func(value []byte) []byte { return value[:5] }),
		"empty":          spoilEntry(func([]byte) []byte { return nil }),
	},
}

func spoilRecord(how func(value []byte) []byte) func(t *testing.T, b backend, table store.Table, key string) {
	return func(t *testing.T, b backend, table store.Table, key string) {
		t.Helper()
		b.(*boltFile).change(t, table.Name, []byte(key), how)
	}
}

func spoilEntry(how func(value []byte) []byte) func(t *testing.T, b backend, number int64) {
	return func(t *testing.T, b backend, number int64) {
		t.Helper()
		b.(*boltFile).change(t, "trail", binary.BigEndian.AppendUint64(nil, uint64(number)), how)
	}
}
