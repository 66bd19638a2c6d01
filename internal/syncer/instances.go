package syncer

import (
	"context"
	"time"
)

// Instances records which processes share the store. Each has one record, its heartbeat.
type Instances interface {
	// Beat stores the record of this instance, with the time of the store as Beaten. It returns the
	// records of all instances that have beaten within ttl by the same clock, including this one,
	// ordered by ID, without their reports. The Beaten of this one MUST be a time during the call:
	// it is also a reading of the clock. Older records may be deleted. Beat ignores a record that is
	// ahead of that clock by ttl or more.
	//
	// previous is the Nonce that the record of this instance had before; empty if it had no record.
	Beat(ctx context.Context, self Instance, ttl time.Duration) (alive []Instance, previous string, err error)
	// Leave deletes the record of the instance. A missing record is no error.
	Leave(ctx context.Context, id string) error
}

// Instance is the heartbeat of one process.
type Instance struct {
	ID     string    `json:"id"`     // the name in writers: a-z and 0-9
	Beaten time.Time `json:"beaten"` // when it was stored, by the clock of the store
	Time   time.Time `json:"time"`   // process time of the instance then
	Nonce  string    `json:"nonce"`  // random; shows another process that beats under the same ID
	Report []byte    `json:"-"`      // for operators; opaque to stores
}
