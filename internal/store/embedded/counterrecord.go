package embedded

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counter is the stored document of a counter. Version 0 means that there is none.
type counter struct {
	version, etag, frame, pruned int64

	expire  time.Time
	writers map[string]int64
	frames  map[int64]int64
}

// counterKey returns the three names one after the other, each with its length before it, so that no
// two counters share a key.
func counterKey(id ratelimit.CounterID) []byte {
	b := make([]byte, 0, 6+len(id.ClientID)+len(id.Username)+len(id.Limit))
	b = appendString(b, id.ClientID)
	b = appendString(b, id.Username)
	return appendString(b, id.Limit)
}

func encodeCounter(c *counter) []byte {
	b := header(c.expire)
	b = binary.AppendVarint(b, c.version)
	b = binary.AppendVarint(b, c.etag)
	b = binary.AppendUvarint(b, uint64(len(c.writers)))
	for _, name := range slices.Sorted(maps.Keys(c.writers)) {
		b = binary.AppendVarint(appendString(b, name), c.writers[name])
	}
	b = binary.AppendUvarint(b, uint64(len(c.frames)))
	for _, name := range slices.Sorted(maps.Keys(c.frames)) {
		b = binary.AppendVarint(binary.AppendVarint(b, name), c.frames[name])
	}
	return binary.AppendVarint(binary.AppendVarint(b, c.frame), c.pruned)
}

// decodeCounter reads a document; that of nil is empty, with version 0.
func decodeCounter(value []byte) (*counter, error) {
	c := &counter{writers: map[string]int64{}, frames: map[int64]int64{}}
	if value == nil {
		return c, nil
	}
	d, expire := open(value)
	c.expire, c.version, c.etag = expire, d.varint(), d.varint()
	for n := d.length(); n > 0 && d.err == nil; n-- {
		name := d.string()
		c.writers[name] = d.varint()
	}
	for n := d.length(); n > 0 && d.err == nil; n-- {
		name := d.varint()
		c.frames[name] = d.varint()
	}
	c.frame, c.pruned = d.varint(), d.varint()
	return c, d.finish()
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail("a number is missing")
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// counterRecord returns what is stored of a counter, or nil for nil. A record that cannot be read has
// its Problem set.
func counterRecord(id ratelimit.CounterID, value []byte) *syncer.Record {
	if value == nil {
		return nil
	}
	c, err := decodeCounter(value)
	if err != nil {
		return &syncer.Record{ID: id, Problem: err.Error()}
	}
	r := syncer.Record{
		ID: id, Version: c.version, Etag: c.etag, Frame: c.frame, Pruned: c.pruned, Writers: c.writers,
		Frames: make([]ratelimit.FrameCount, 0, len(c.frames)),
	}
	for name, count := range c.frames {
		r.Frames = append(r.Frames, ratelimit.FrameCount{Name: name, Count: count})
	}
	r.Problem = strings.Join(r.Bound(), ", ")
	return &r
}
