package embedded

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// The buckets that are no table and not the trail; a new file has both.
const (
	metaBucket     = "meta" // has the format
	countersBucket = "counters"
)

// writeTx is a write transaction that several changes share. A change calls touch before it writes.
type writeTx struct {
	tx      *bolt.Tx
	touched bool // by the change that is running
	dirty   bool // by any
}

func (w *writeTx) touch() { w.touched, w.dirty = true, true }

// putCounter stores a counter.
func (w *writeTx) putCounter(key, value []byte) error {
	if err := w.tx.Bucket([]byte(countersBucket)).Put(key, value); err != nil {
		return fmt.Errorf("embedded: put a counter: %w", err)
	}
	w.touch()
	return nil
}
