package syncer

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/ratelimit"
)

// MaxBatch is the largest number of items in one exchange.
const MaxBatch = 1000

// Store keeps one document per counter:
//
//	{ _id: {clientId, username[, limit]},  // limit: absent for the first limit of a policy
//	  version, etag,                       // int64; no document counts as 0 and 0
//	  frame,                               // length of the frames in milliseconds; absent in documents of older releases
//	  writers: {"<writer>": seq},          // highest sequence applied, per writer
//	  pruned,                              // highest sequence of a writer that was removed although it may come back; absent for none
//	  expire,                              // when the document can be deleted
//	  requestCounters: {"<frame>": count} }
//
// Implementations MUST be safe for concurrent use, MUST return when the
// context ends, and MUST NOT repeat a write by themselves unless they know that
// it was not applied. They MUST NOT interpret frames or judge expiry: a document
// that has expired may be there or not.
type Store interface {
	// Exchange applies the writes and reads the documents of the items. Each
	// item is independent of the others. The caller sorts the items by ID, has
	// at most [MaxBatch] of them, and no two with the same ID.
	//
	// The answer MUST have one result per item, at the same index, whatever
	// fails. The error is the first one that concerned more than one item, for
	// the log and for back-off; the results hold everything that is known
	// besides. After an error without results every write is [Unknown] and
	// nothing was read.
	//
	// A write MUST be applied completely or not at all, and only if its
	// condition holds at that moment:
	//
	//   - Versioned: the document has exactly the Version and Etag of the
	//     write, where 0 stands for a field that it does not have; both 0 also
	//     stand for no document, which is then created. Where the document has
	//     gone meanwhile, a store that cannot tell in the same step may create
	//     it, and MUST then report Unknown: sent again under its Seq, the write
	//     is found to be counted.
	//   - otherwise: there is no document, which is then created, or all of
	//     this holds: its frame is Frame, writers[Writer] is absent or less
	//     than Seq, pruned is absent or less than Seq, and every frame and
	//     writer in Remove still has exactly the value that Remove states.
	//
	// Applying it MUST, in one atomic step, add every Delta to its frame
	// (created as 0) or, if Rewrite is set, replace all frames by those of
	// Delta; add 1 to version; set etag to NewEtag and frame to Frame; raise
	// writers[Writer] to Seq, expire to Expire and pruned to Pruned but never
	// lower them; and remove the frames and writers in Remove.
	//
	// Where a store does not know whether a write was applied (the reply was
	// lost, the time was up, the write was not confirmed by a majority), its
	// status MUST be Unknown; a store MUST NOT guess.
	//
	// A document that is read MUST be as it was at one moment during the call.
	// That moment may be before or after the write of the same item: the
	// sequence of the writer in the record shows which. A read MUST see every
	// write that was reported as applied before the call, and no write that
	// can still be undone (MongoDB: primary, majority).
	//
	// A document with parts that make no sense MUST be returned with the parts
	// that do, and a Problem; it is no error.
	Exchange(ctx context.Context, items []Item) ([]Result, error)

	// Now returns the clock of the store. [ErrNoClock] if it has none that is
	// not this machine's.
	Now(ctx context.Context) (time.Time, error)
}

// ErrNoClock is returned by a store whose only clock is that of this machine.
var ErrNoClock = errors.New("the store has no clock of its own")

// Item is what one exchange does for one counter.
type Item struct {
	ID    ratelimit.CounterID
	Write *Write // nil: nothing to write
	Read  bool   // the document is wanted
}

// Write is one write of a counter, to be applied at most once.
type Write struct {
	Versioned     bool  // the condition is on Version and Etag, otherwise on Seq
	Version, Etag int64 // of the document that a versioned write is based on
	NewEtag       int64 // random, not 0; a repeat is as likely as a collision of 63 bits
	Writer        string
	Seq           int64                  // grows from write to write of a writer
	Frame         int64                  // length of the frames, milliseconds
	Delta         []ratelimit.FrameCount // counts may be negative: requests given back
	Rewrite       bool                   // Delta replaces all frames; versioned writes only
	Remove        Removal
	Pruned        int64 // 0 for none
	Expire        time.Time
}

// Removal is what leaves a document, each with the value that it was last seen
// with. Frames of Remove are never in Delta, and the writer itself is never in
// Remove.
type Removal = ratelimit.Removal

// WriterSeq is an entry of a document's writers.
type WriterSeq = ratelimit.WriterSeq

// Status is the outcome of one write.
type Status = ratelimit.Status

// The statuses.
const (
	Unknown  = ratelimit.Unknown  // it may have been applied, or may yet be
	Applied  = ratelimit.Applied  // it was applied, now
	Conflict = ratelimit.Conflict // its condition did not hold; it was not applied now
	Rejected = ratelimit.Rejected // the store refuses it and always will: not applied
)

// Result is the outcome of one item.
type Result struct {
	Status Status  // of the write; meaningless without one
	Err    error   // why the write is not Applied, for the log; may be nil
	Read   bool    // the document was read
	Record *Record // nil after a read: there is no document
}

// Record is one document.
type Record struct {
	ID            ratelimit.CounterID
	Version, Etag int64
	Frame         int64 // length of the frames in milliseconds; 0: the document does not say
	Pruned        int64
	Writers       map[string]int64
	Frames        []ratelimit.FrameCount // ordered by name; at most MaxFramesRead, the newest
	Excess        *Excess                // what is left out because there is too much of it; nil if nothing is
	Problem       string                 // what makes no sense in it; empty if all does
	Damaged       bool                   // frames are left out that a Rewrite would remove: no number, no frame's name, or beyond MaxFramesRead
}

// Counts in Frames are returned as they are stored, negative and absurd ones
// too. Bounds on what is read of one document; what exceeds them is left out,
// and the record says so in its Problem.
const (
	// MaxFramesRead is more than a limit of [ratelimit.MaxFrames] frames needs.
	MaxFramesRead = 1000
	// MaxWritersRead is more than [MaxWriters] and all live instances together.
	MaxWritersRead = 10_000
)

// Instances lets the processes that share a store know of each other. Each has
// one record, its heartbeat.
type Instances interface {
	// Beat stores the record of this instance, with the time of the store as
	// Beaten, and returns those of all instances that have beaten within ttl
	// by the same clock, this one included, ordered by ID, without their
	// reports. Those that have not may be forgotten. A record that is ahead of
	// that clock by ttl or more counts for none of them, here and below.
	//
	// previous is the Nonce that the record of this instance had before;
	// empty if there was no record.
	Beat(ctx context.Context, self Instance, ttl time.Duration) (alive []Instance, previous string, err error)
	// Alive returns the instances that had beaten within ttl before the newest
	// heartbeat there is, ordered by ID, without their reports: those last seen
	// alive where no heartbeat can be stored.
	Alive(ctx context.Context, ttl time.Duration) ([]Instance, error)
	// Leave forgets the instance; one that is not there is no error.
	Leave(ctx context.Context, id string) error
}

// Instance is the heartbeat of one process.
type Instance struct {
	ID     string    `json:"id"` // the name in writers: a-z and 0-9
	Beaten time.Time `json:"beaten"`
	Time   time.Time `json:"time"`  // its process time when it beat
	Nonce  string    `json:"nonce"` // of this beat; another process under the same ID writes another
	Report []byte    `json:"-"`     // for operators; defined by the admin API, stores pass it on
}
