package events

import (
	"math"
	"time"
)

// clock converts the times of one log to instants. At the end of summer time an hour repeats, so a
// local time in it has two instants. The order of the lines decides between them: except for lines
// that are slightly out of order, the times of a log increase.
type clock struct {
	zone             *time.Location
	offset, from, to int64  // the offset of the zone for instants in [from, to); seconds
	last             int64  // the instant of the last line
	missing          bool   // the last local time does not exist
	stamp            []byte // when the line was collected; empty: unknown
}

// disorder is how far a line of the first of two repeated hours may be behind the last line.
const disorder = 5 * 60

// time reads a time, see [parseTime].
func (c *clock) time(b []byte) (time.Time, bool) {
	c.missing = false
	at, local, ok := parseStamp(string(b))
	if !ok {
		return time.Time{}, false
	}
	early, late := at.Unix(), at.Unix()
	if local {
		if early, late, ok = c.instants(early); !ok {
			c.missing = true
			return time.Time{}, false
		}
	}
	if early < c.last-disorder {
		early = late
	}
	c.last = early
	t := time.Unix(early, int64(at.Nanosecond())).UTC()
	return t, t.Year() >= firstYear && t.Year() <= lastYear
}

// instants returns the possible instants of a local time, given as if it were UTC: zero, one or
// two.
func (c *clock) instants(local int64) (early, late int64, ok bool) {
	if c.zone == time.UTC {
		return local, local, true
	}
	if at := local - c.offset; c.from <= at && at < c.to {
		return at, at, true
	}
	t := time.Unix(local, 0).UTC()
	t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, c.zone)
	_, offset := t.Zone()
	at, start, end := t.Unix(), int64(math.MinInt64), int64(math.MaxInt64)
	early, late, ok = at, at, at+int64(offset) == local
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		start = from.Unix()
		if _, before := from.Add(-time.Second).Zone(); local-int64(before) < start {
			early = local - int64(before)
		}
	}
	if !to.IsZero() {
		end = to.Unix()
		if _, after := to.Zone(); local-int64(after) >= end {
			late = local - int64(after)
		}
	}
	const day = 86400 // no zone shifts its clock by more
	if c.offset, c.from, c.to = int64(offset), start, end; !from.IsZero() {
		c.from += day
	}
	if !to.IsZero() {
		c.to -= day
	}
	return early, late, ok
}
