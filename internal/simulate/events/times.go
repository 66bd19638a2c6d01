package events

import (
	"strconv"
	"strings"
	"time"
)

// The years that a time can have. In these, nanoseconds since 1970 fit into an int64.
const firstYear, lastYear = 1970, 2261

// parseTime reads a time. It accepts RFC 3339, also with a space for the T, a comma for the point,
// and without a zone; the time of the Common Log Format; and seconds, milliseconds, microseconds or
// nanoseconds since 1970. For a local time in a repeated hour it returns the first of the two
// instants.
func parseTime(b []byte, zone *time.Location) (t time.Time, ok bool) {
	return (&clock{zone: zone}).time(b)
}

// parseStamp reads a time. It returns a local time as if it were UTC.
func parseStamp(text string) (at time.Time, local, ok bool) {
	text = strings.TrimSpace(text)
	switch {
	case len(text) >= 20 && text[4] == '-' && text[10] == 'T' && text[len(text)-1] == 'Z': // the most frequent form
		at, err := time.Parse(time.RFC3339, text)
		return at, false, err == nil
	case len(text) >= 19 && text[4] == '-' && text[10]|' ' == 't':
		return parseDate("2006-01-02"+text[10:11]+"15:04:05", text)
	case len(text) >= 19 && text[4] == '-':
		return parseDate("2006-01-02 15:04:05", text)
	case len(text) >= 20 && text[2] == '/':
		return parseDate("02/Jan/2006:15:04:05", text)
	}
	at, ok = parseEpoch(text)
	return at, false, ok
}

// zones are the layouts of a zone, by length.
var zones = map[int]string{3: "-07", 5: "-0700", 6: "-07:00"}

// parseDate reads a date and a time of day, which a fraction and a zone can follow. A zone is such
// as Z, UTC, +01, +0100 or +01:00.
func parseDate(layout, text string) (at time.Time, local, ok bool) {
	end := len(layout)
	for end < len(text) && strings.IndexByte(".,0123456789", text[end]) >= 0 {
		end++
	}
	zone := strings.TrimSpace(text[end:])
	at, err := time.Parse(layout, text[:end])
	switch {
	case err != nil || zone == "":
		return at, true, err == nil
	case zone == "Z" || zone == "z" || zone == "UTC" || zone == "GMT":
		return at, false, true
	}
	of, err := time.Parse(zones[len(zone)], zone)
	_, offset := of.Zone()
	return at.Add(-time.Duration(offset) * time.Second), false, err == nil
}

// parseEpoch reads a number of seconds, milliseconds, microseconds or nanoseconds since 1970. The
// size of the number shows the unit. A number with an exponent is as precise as a float.
func parseEpoch(text string) (at time.Time, ok bool) {
	if strings.ContainsAny(text, "eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f >= 1<<63 {
			return at, false
		}
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" {
		return at, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 1e11 {
		nanos, ok := digits([]byte((fraction + "000000000")[:9]))
		return time.Unix(n, int64(nanos)), ok && err == nil
	}
	unit := time.Second
	for most := int64(1e11); n >= most && unit > 1; most *= 1e3 {
		unit /= 1e3
	}
	perSecond := int64(time.Second / unit)
	return time.Unix(n/perSecond, n%perSecond*int64(unit)), true
}

func digits(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(b) > 0 && len(b) < 19
}
