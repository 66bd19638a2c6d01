// Package exchange is the contract of the store for counters, beside that for records in package
// store: all instances add to the same documents.
package exchange

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// MaxBatch is the largest number of items in one exchange.
const MaxBatch = 1000

// Store keeps one document per counter:
//
//	{ _id: {clientId, username[, limit]},  // limit: absent for the first limit of a policy
//	  version, etag,                       // int64; no document counts as 0 and 0
//	  frame,                               // length of the frames in milliseconds
//	  writers: {"<writer>": seq},          // highest sequence applied, per writer
//	  pruned,                              // highest sequence of a writer that was removed although it may write again
//	  expire,                              // when the document can be deleted
//	  requestCounters: {"<frame>": count} }
//
// Implementations MUST be safe for concurrent use, MUST return when the context ends, and MUST NOT
// repeat a write on their own unless it was certainly not applied. They MUST NOT interpret frames
// or expiry: an expired document may be present or not.
type Store interface {
	// Exchange applies the writes and reads the documents of the items. Each item is independent of
	// the others. The caller sorts the items by ID, has at most [MaxBatch] of them, and no two with
	// the same ID.
	//
	// It MUST return one result per item, at the same index, whatever fails. The error is the first
	// one that concerned more than one item, for the log and for back-off. All other errors are in
	// the results. After an error without results every write is [Unknown] and nothing was read.
	//
	// A write MUST be applied completely or not at all, and only if its condition holds at that
	// moment:
	//
	//   - Versioned: the document has exactly the Version and Etag of the
	//     write, where 0 stands for a field that it does not have; both 0 also
	//     stand for no document, which is then created. If the document was
	//     deleted meanwhile, a store that cannot detect this in the same step may
	//     create it, and MUST then report Unknown: sent again under its Seq, the
	//     write is found to be counted.
	//   - otherwise: there is no document, which is then created, or all of
	//     this holds: its frame is Frame, writers[Writer] is absent or less
	//     than Seq, pruned is absent or less than Seq, and every frame and
	//     writer in Remove still has exactly the value that Remove states.
	//
	// Applying it MUST, in one atomic step, add every Delta to its frame (created as 0) or, if
	// Rewrite is set, replace all frames by the frames of Delta; add 1 to version; set etag to
	// NewEtag and frame to Frame; raise writers[Writer] to Seq, expire to Expire and pruned to
	// Pruned but never lower them; and remove the frames and writers in Remove.
	//
	// If it is not certain whether a write was applied (the reply was lost, the time was up, the
	// write was not confirmed by a majority), its status MUST be Unknown; a store MUST NOT guess.
	//
	// A document that is read MUST be as it was at one moment during the call. That moment may be
	// before or after the write of the same item: the sequence of the writer in the record shows
	// which. A read MUST see every write that was reported as applied before the call, and no write
	// that can still be undone (MongoDB: primary, majority).
	//
	// A document with invalid parts MUST be returned with its valid parts and a Problem; that is no
	// error.
	Exchange(ctx context.Context, items []Item) ([]Result, error)

	// Now returns the time by the clock of the store.
	Now(ctx context.Context) (time.Time, error)
}

// Item is what an exchange does for one counter.
type Item struct {
	ID    CounterID
	Write *Write // nil: nothing to write
	Read  bool   // the document must be read
}

// Write is one write of a counter, to be applied at most once.
type Write struct {
	Versioned     bool         // conditional on Version and Etag; otherwise on Seq, see [Store]
	Version, Etag int64        // of the document that a versioned write is based on
	NewEtag       int64        // random, not 0; equal to another only by a collision of 62 bits
	Writer        string       // ID of this process, a-z and 0-9
	Seq           int64        // grows with each write of a writer
	Frame         int64        // length of the frames, milliseconds
	Delta         []FrameCount // counts may be negative: requests given back
	Rewrite       bool         // Delta replaces all frames of the document; versioned writes only
	Remove        Removal      // frames and writers to remove from the document
	Pruned        int64        // highest sequence of a writer in Remove that may write again; 0: none
	Expire        time.Time    // after it the document is no longer needed
}

// The parts of a document are those that the counters in memory use.
type (
	// CounterID identifies the document of a counter.
	CounterID = ratelimit.CounterID
	// FrameCount is the count of one frame.
	FrameCount = ratelimit.FrameCount
	// WriterSeq is an entry of a document's writers.
	WriterSeq = ratelimit.WriterSeq
	// Removal lists the frames and writers to remove from a document, each with the value that it was
	// last read with. Frames of Remove are never in Delta, and the writer itself is never in Remove.
	Removal = ratelimit.Removal
)

// Status is the outcome of one write.
type Status = counting.Status

// The statuses.
const (
	Unknown  = counting.Unknown  // it may have been applied, or may yet be applied
	Applied  = counting.Applied  // it was applied by this exchange
	Conflict = counting.Conflict // its condition did not hold: not applied by this exchange
	Rejected = counting.Rejected // the store refuses it for good: not applied
)

// Result is the outcome of one item.
type Result struct {
	Status Status  // of the write; meaningless without one
	Err    error   // why the write is not Applied, for the log; may be nil
	Read   bool    // the document was read
	Record *Record // nil after a read: there is no document
}

// Record is one document as a store has read it. Counts are as stored, including negative and too
// large ones.
type Record struct {
	ID            CounterID
	Version, Etag int64
	Frame         int64 // length of the frames in milliseconds; 0: not in the document
	Pruned        int64
	Writers       map[string]int64
	Frames        []FrameCount // ordered by name
	Problem       string       // invalid parts of the document, for the log; empty: none
	Damaged       bool         // invalid frames are left out, which a Rewrite would remove
}
