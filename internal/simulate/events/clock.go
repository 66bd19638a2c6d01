package events

import "time"

// clock converts the times of one log to instants. At the end of summer time an hour repeats, so a
// local time in it has two instants. The order of the lines decides between them: except for lines
// that are slightly out of order, the times of a log increase.
type clock struct {
	zone    *time.Location
	last    int64  // the instant of the last line
	missing bool   // the last local time does not exist
	stamp   []byte // when the line was collected; empty: unknown
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
// two. They have the offsets of the zone before and after a change.
func (c *clock) instants(local int64) (early, late int64, ok bool) {
	const day = 86400 // no zone is so far from UTC
	for _, near := range []int64{local - day, local + day} {
		_, offset := time.Unix(near, 0).In(c.zone).Zone()
		at := local - int64(offset)
		if _, applies := time.Unix(at, 0).In(c.zone).Zone(); applies != offset {
			continue
		}
		if late = at; !ok {
			early, ok = at, true
		}
	}
	return early, late, ok
}
