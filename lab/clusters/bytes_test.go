package clusters

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/store/mongo"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/lab/servers"
)

// Sizes on the wire, as internal/store/mongo writes the data in BSON.
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

// writeBytes estimates the size of a write.
func writeBytes(it *exchange.Item) int64 {
	w := it.Write
	removed := len(w.Remove.Frames) + len(w.Remove.Writers)
	n := writeSize + sizeOf(&it.ID) + int64(deltaSize*len(w.Delta)+removeSize*removed)
	if w.Versioned {
		return n + versionSize
	}
	return n + sequenceSize + int64(checkSize*removed)
}

// readBytes estimates the size of a read and of its document. Without a document, r is nil.
func readBytes(it *exchange.Item, r *exchange.Record) int64 {
	n := readSize + sizeOf(&it.ID)
	if r != nil {
		n += recordSize + sizeOf(&r.ID) + int64(writerSize*len(r.Writers)+frameSize*len(r.Frames))
	}
	return n
}

// TestSimulatedSizes: the sizes that a simulated cluster assumes are those on the wire.
func TestSimulatedSizes(t *testing.T) {
	uri, database := mongotest.Database(t)
	proxy, err := servers.NewProxy(t.Context(), uri)
	check.OK(t, err)
	defer func() { check.OK(t, proxy.Close()) }()
	s, err := mongo.Open(t.Context(), mongo.Options{URI: proxy.URI, Database: database})
	check.OK(t, err)
	defer func() { check.OK(t, s.Close()) }()
	items := make([]exchange.Item, 200)
	for i := range items {
		items[i].ID = exchange.CounterID{ClientID: "client", Username: fmt.Sprintf("user-%06d", i), Limit: []string{"", "per-second"}[i/100]}
	}
	traffic := func() (writes, reads int64) { // the replies to writes have no documents
		all := proxy.Traffic()
		return all["update ratelimits"].Sent, all["find ratelimits"].Sent + all["find ratelimits"].Received
	}
	for n := range int64(4) {
		writesBefore, readsBefore := traffic()
		wantWrites, wantReads := int64(0), int64(0)
		for i := range items {
			w := &exchange.Write{
				Versioned: n%2 == 1, Version: n, Etag: 1<<60 + n, NewEtag: 1<<60 + n + 1, Writer: fmt.Sprintf("0123456789abcde%d", n), Seq: 1 << 60, Frame: 60_000,
				Delta: []exchange.FrameCount{{Name: 1_800_000_000 + 60*n, Count: 3}}, Expire: time.Unix(4_000_000_000, 0),
			}
			if n > 1 {
				w.Remove = exchange.Removal{Frames: []exchange.FrameCount{{Name: 1_800_000_000 + 60*(n-2), Count: 3}}}
			}
			items[i].Write, items[i].Read = w, false
			wantWrites += writeBytes(&items[i])
		}
		results, err := s.Exchange(t.Context(), items)
		check.OK(t, err)
		for i := range items {
			check.Equal(t, "status", results[i].Status, exchange.Applied)
			items[i].Write, items[i].Read = nil, true
		}
		results, err = s.Exchange(t.Context(), items)
		check.OK(t, err)
		for i := range items {
			wantReads += readBytes(&items[i], results[i].Record)
		}
		writes, reads := traffic()
		for what, d := range map[string]float64{
			"writes": float64(wantWrites) / float64(writes-writesBefore), "reads": float64(wantReads) / float64(reads-readsBefore),
		} {
			if d < 0.93 || d > 1.07 {
				t.Errorf("step %d: the %s are taken for %.2f of their bytes", n, what, d)
			}
		}
	}
}
