package embedded

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counter is a counter's document.
type counter struct {
	version, etag int64
	expire        time.Time
	writers       map[string]int64
	frames        map[int64]int64
}

// counterKey is the three names one after the other, each with its length
// before it, so that no two counters share a key.
func counterKey(id ratelimit.CounterID) []byte {
	b := make([]byte, 0, 6+len(id.ClientID)+len(id.Username)+len(id.Limit))
	b = appendString(b, id.ClientID)
	b = appendString(b, id.Username)
	return appendString(b, id.Limit)
}

func encodeCounter(c *counter) []byte {
	b := header(0, c.expire)
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
	return b
}

// decodeCounter reads a document; nil is the one that is not there.
func decodeCounter(value []byte) (*counter, error) {
	c := &counter{writers: map[string]int64{}, frames: map[int64]int64{}}
	if value == nil {
		return c, nil
	}
	d, _, expire := open(value)
	c.expire, c.version, c.etag = expire, d.varint(), d.varint()
	for n := d.length(); n > 0 && d.err == nil; n-- {
		name := d.string()
		c.writers[name] = d.varint()
	}
	for n := d.length(); n > 0 && d.err == nil; n-- {
		name := d.varint()
		c.frames[name] = d.varint()
	}
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

// newestFrames returns the frames in order, no more than anybody reads.
func (c *counter) newestFrames() (list []ratelimit.FrameCount, problem string) {
	for name, count := range c.frames {
		list = append(list, ratelimit.FrameCount{Name: name, Count: count})
	}
	slices.SortFunc(list, func(a, b ratelimit.FrameCount) int { return cmp.Compare(a.Name, b.Name) })
	if extra := len(list) - syncer.MaxFramesRead; extra > 0 {
		return list[extra:], fmt.Sprintf("%d frames, more than any limit has", len(list))
	}
	return list, ""
}
