package memstore

import (
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
)

// Sizes on the wire for simulated clusters, as internal/store/mongo writes the data in BSON. A test
// there checks them.
const (
	idBytes      = 35  // an _id, without the names in it
	limitBytes   = 12  // the name of a limit in it
	writeSize    = 164 // a write, without the parts below
	versionSize  = 31  // the condition on version and etag
	sequenceSize = 109 // the condition on the sequence
	deltaSize    = 36  // for each frame that it adds to
	removeSize   = 44  // for each frame or writer that it removes
	checkSize    = 34  // the condition on one of these
	readSize     = 5   // a read of one document, apart from the _id
	recordSize   = 108 // a document, without the parts below
	writerSize   = 26  // for each writer
	frameSize    = 20  // for each frame
)

func sizeOf(id *ratelimit.CounterID) (n int64) {
	if n = int64(idBytes + len(id.ClientID) + len(id.Username)); id.Limit != "" {
		n += int64(limitBytes + len(id.Limit))
	}
	return n
}

// WriteBytes estimates the size of a write.
func WriteBytes(it *exchange.Item) int64 {
	w := it.Write
	removed := len(w.Remove.Frames) + len(w.Remove.Writers)
	n := writeSize + sizeOf(&it.ID) + int64(deltaSize*len(w.Delta)+removeSize*removed)
	if w.Versioned {
		return n + versionSize
	}
	return n + sequenceSize + int64(checkSize*removed)
}

// ReadBytes estimates the size of a read and of its document. Without a document, r is nil.
func ReadBytes(it *exchange.Item, r *exchange.Record) int64 {
	n := readSize + sizeOf(&it.ID)
	if r != nil {
		n += recordSize + sizeOf(&r.ID) + int64(writerSize*len(r.Writers)+frameSize*len(r.Frames))
	}
	return n
}
