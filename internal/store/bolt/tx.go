package bolt

import "go.etcd.io/bbolt"

// writeTx is a write transaction that several changes share. A change calls touch before it writes.
type writeTx struct {
	tx      *bbolt.Tx
	touched bool // by the change that is running
	dirty   bool // by any
}

func (w *writeTx) touch() { w.touched, w.dirty = true, true }
