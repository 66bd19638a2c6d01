package bolt

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
)

// counters is the table of the counters. Its records are not for [Store.Put] and the like: the key is the three
// names, each with its length before it, the nonce is the etag, and the value is
//
//	varint     length of the frames
//	varint     pruned
//	varint     number of writers; then the name and the sequence of each
//	varint     number of frames; then the name and the count of each
var counters = store.Table{Name: "counters"}

func counterKey(id ratelimit.CounterID) string {
	return string(appendString(counterPrefix(id.ClientID, &id.Username), id.Limit))
}

// counterPrefix returns what the keys of a client's counters begin with, or those of one of its usernames.
func counterPrefix(clientID string, username *string) []byte {
	prefix := appendString(nil, clientID)
	if username != nil {
		prefix = appendString(prefix, *username)
	}
	return prefix
}

// counterIDOf is the inverse of counterKey.
func counterIDOf(key []byte) (ratelimit.CounterID, error) {
	d := &decoder{rest: key}
	id := ratelimit.CounterID{ClientID: d.string(), Username: d.string(), Limit: d.string()}
	return id, d.finish()
}

func encodeCounter(c *syncer.Record, expires time.Time) []byte {
	b := make([]byte, 0, 256)
	b = binary.AppendVarint(binary.AppendVarint(b, c.Frame), c.Pruned)
	b = binary.AppendVarint(b, int64(len(c.Writers)))
	for _, name := range slices.Sorted(maps.Keys(c.Writers)) {
		b = binary.AppendVarint(appendString(b, name), c.Writers[name])
	}
	b = binary.AppendVarint(b, int64(len(c.Frames)))
	for _, f := range c.Frames {
		b = binary.AppendVarint(binary.AppendVarint(b, f.Name), f.Count)
	}
	return encodeRecord(&store.Record{Version: c.Version, Nonce: c.Etag, Expires: expires, Value: b})
}

// decodeCounter returns the document of a counter with all that is in it, and when it expires; the empty
// document for nil. Errors: [store.ErrUnreadable].
func decodeCounter(id ratelimit.CounterID, value []byte) (c syncer.Record, expires time.Time, err error) {
	c = syncer.Record{ID: id, Writers: map[string]int64{}}
	if value == nil {
		return c, expires, nil
	}
	r, err := decodeRecord(value)
	if err != nil {
		return c, expires, err
	}
	d := decoder{rest: r.value}
	c.Version, c.Etag, c.Frame, c.Pruned = r.version, r.nonce, d.varint(), d.varint()
	for n := d.varint(); n > 0 && d.err == nil; n-- {
		name := d.string()
		c.Writers[name] = d.varint()
	}
	for n := d.varint(); n > 0 && d.err == nil; n-- {
		c.Frames = append(c.Frames, ratelimit.FrameCount{Name: d.varint(), Count: d.varint()})
	}
	return c, fromMillis(r.expires), d.finish()
}
