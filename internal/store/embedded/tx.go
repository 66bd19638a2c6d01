package embedded

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// kind names what a bucket holds.
type kind byte

const (
	settings kind = iota + 1
	counters
)

// buckets are the names in the file, short because each is on every root page.
var buckets = map[kind][]byte{
	settings: []byte("meta"), counters: []byte("counters"),
}

// get returns the value, or nil. It is valid until the transaction ends.
func get(tx *bolt.Tx, k kind, key []byte) []byte { return tx.Bucket(buckets[k]).Get(key) }

// writeTx is a write transaction that several changes share. A change calls touch before it writes.
type writeTx struct {
	tx      *bolt.Tx
	touched bool // by the change that is running
	dirty   bool // by any
}

func (w *writeTx) touch() { w.touched, w.dirty = true, true }

func (w *writeTx) get(k kind, key []byte) []byte { return get(w.tx, k, key) }

// putCounter stores a counter.
func (w *writeTx) putCounter(key, value []byte) error {
	if err := w.tx.Bucket(buckets[counters]).Put(key, value); err != nil {
		return fmt.Errorf("embedded: put a counter: %w", err)
	}
	w.touch()
	return nil
}
