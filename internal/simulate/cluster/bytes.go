package cluster

import (
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Sizes on the wire, as internal/store/mongo writes them in BSON; a test there holds them to it.
const (
	idBytes      = 35  // an _id, without the names in it
	limitBytes   = 12  // the name of a limit in it
	writeSize    = 164 // a write, without what follows
	versionSize  = 31  // that it depends on version and etag
	sequenceSize = 109 // that it depends on the sequence
	deltaSize    = 36  // for each frame that it adds to
	removeSize   = 44  // for each frame or writer that it removes
	checkSize    = 34  // that it depends on one of these, too
	readSize     = 5   // what is asked for, beside the _id
	recordSize   = 108 // a document, without what follows
	writerSize   = 26  // for each writer
	frameSize    = 20  // for each frame
	// commandBytes is for what a command and its answer have around all that.
	commandBytes = 400
	// aliveBytes is for each live instance in the answer to a heartbeat.
	aliveBytes = 100
)

func sizeOf(id *ratelimit.CounterID) (n int64) {
	if n = int64(idBytes + len(id.ClientID) + len(id.Username)); id.Limit != "" {
		n += int64(limitBytes + len(id.Limit))
	}
	return n
}

// WriteBytes estimates the size of a write.
func WriteBytes(it *syncer.Item) int64 {
	w := it.Write
	removed := len(w.Remove.Frames) + len(w.Remove.Writers)
	n := writeSize + sizeOf(&it.ID) + int64(deltaSize*len(w.Delta)+removeSize*removed)
	if w.Versioned {
		return n + versionSize
	}
	return n + sequenceSize + int64(checkSize*removed)
}

// ReadBytes estimates the size of what is asked for and of the document; nil: there is none.
func ReadBytes(it *syncer.Item, r *syncer.Record) int64 {
	n := readSize + sizeOf(&it.ID)
	if r != nil {
		n += recordSize + sizeOf(&r.ID) + int64(writerSize*len(r.Writers)+frameSize*len(r.Frames))
	}
	return n
}
