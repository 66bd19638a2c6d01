package syncer

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
)

// MaxBatch is the largest number of writes or of documents in one call.
const MaxBatch = 1000

// Store keeps one document per counter:
//
//	{ _id: {clientId, username[, limit]},  // limit: absent for the first limit of a policy
//	  version, etag,                       // int64; no document counts as 0 and 0
//	  writers: {"<instance>": seq},        // highest sequence applied, per instance
//	  expire,                              // when the document can be deleted
//	  requestCounters: {"<frame>": count} }
//
// Implementations MUST be safe for concurrent use, MUST return when the
// context ends, and MUST NOT repeat a write by themselves unless they know that it was not
// applied. They MUST NOT interpret frames or judge expiry: a document that has
// expired may be there or not.
type Store interface {
	// Apply applies writes of the instance, independently of each other, in
	// the order given: the caller sorts them by ID, and has at most
	// [MaxBatch] of them, no two with the same ID.
	//
	// A write MUST be applied completely or not at all, and only if its
	// condition holds at that moment:
	//
	//   - not Blind: the document has exactly the Version and Etag of the
	//     write; both 0 stand for no document, which is then created.
	//     Where the document has gone meanwhile, a store that cannot tell in
	//     the same step may create it, and MUST then say Unknown: sent again
	//     under its Seq, the write is found to be counted.
	//   - Blind: the document's writers[instance] is absent or less than Seq,
	//     or there is no document, which is then created.
	//
	// Applying it MUST, in one atomic step, add every Delta to its frame
	// (created as 0), add 1 to version, set etag to NewEtag and
	// writers[instance] to Seq, raise expire to Expire but never lower it,
	// and remove the frames in Dead and the writers in Silent.
	//
	// The result MUST have one outcome per write, at the same index. Where
	// it cannot be told whether a write was applied (the reply was lost, the time was
	// up, the write was not yet confirmed by a majority), its outcome MUST be
	// Unknown; a store MUST NOT guess. An error says that this holds for all of them;
	// the outcomes are then ignored.
	Apply(ctx context.Context, instance string, writes []Write) ([]Outcome, error)

	// Load returns the documents of those IDs that exist, in any order. It
	// MUST see every write that was reported as applied before the call, and
	// no write that can still be undone (MongoDB: primary, majority).
	//
	// A document with parts that make no sense MUST be returned with
	// the parts that do, and a Problem; it is no error.
	Load(ctx context.Context, ids []ratelimit.CounterID) ([]Record, error)

	// Now returns the clock of the store, by which all instances agree on
	// frames. A store without one returns that of this machine.
	Now(ctx context.Context) (time.Time, error)
}

// Write is one write of a counter.
type Write struct {
	ID            ratelimit.CounterID
	Blind         bool  // the condition is on Seq, not on Version and Etag
	Version, Etag int64 // of the document that the write is based on
	NewEtag       int64 // never used before, and never 0
	Seq           int64 // grows from write to write of an instance
	Delta         []ratelimit.FrameCount
	Dead          []int64  // frames to be removed, by name; never one of Delta
	Silent        []string // writers to be removed; never this instance
	Expire        time.Time
}

// Status is what became of one write.
type Status uint8

// The statuses.
const (
	Unknown  Status = iota // it may have been applied, or may yet be
	Applied                // it was applied, now
	Conflict               // its condition did not hold; it was not applied now
	Rejected               // the store refuses it and always will: not applied
)

var statusNames = [...]string{"unknown", "applied", "conflict", "rejected"}

// String returns the name of the status as it stands in metrics and logs.
func (s Status) String() string { return statusNames[s&3] }

// Outcome is the result of one write.
type Outcome struct {
	Status Status
	Err    error // why, for the log; may be nil
}

// Record is one document.
type Record struct {
	ID            ratelimit.CounterID
	Version, Etag int64
	Writers       map[string]int64
	Frames        []ratelimit.FrameCount // at most MaxFramesRead, the newest
	Problem       string                 // what makes no sense in it; empty if all does
}

// MaxFramesRead bounds what is read of a document. The newest frames are read,
// and a Problem says that there are more.
const MaxFramesRead = 10_000

// Instances lets the processes that share a store know of each other.
type Instances interface {
	// Beat records that the instance is alive now, by the clock of the store, until it has not
	// beaten for ttl, and returns all that are alive, itself included,
	// ordered by ID.
	Beat(ctx context.Context, self Instance, ttl time.Duration) ([]Instance, error)
	// Leave forgets the instance; one that is not there is no error.
	Leave(ctx context.Context, id string) error
}

// Instance is one process, as operators see it.
type Instance struct {
	ID       string        `json:"id" bson:"_id"` // the name in writers: a-z and 0-9
	Host     string        `json:"host" bson:"host"`
	Version  string        `json:"version" bson:"version"` // of the program
	Started  time.Time     `json:"started" bson:"started"`
	Beaten   time.Time     `json:"beaten" bson:"beaten"` // set by the store
	Keys     int64         `json:"keys" bson:"keys"`     // counters in memory
	Dirty    int64         `json:"dirty" bson:"dirty"`   // of them waiting to be written
	Degraded bool          `json:"degraded" bson:"degraded"`
	Offset   time.Duration `json:"clock_offset" bson:"clockOffset"` // of the store's clock to its own
	Interval time.Duration `json:"flush_interval" bson:"flushInterval"`
}
