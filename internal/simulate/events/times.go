package events

import (
	"bytes"
	"math"
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

// parseStamp reads a time as seconds since 1970 and nanoseconds. It returns the seconds of a local
// time as if it were UTC.
func parseStamp(b []byte) (sec int64, nanos int, local, ok bool) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) >= 19 && b[4] == '-':
		return parseDateTime(b)
	case len(b) >= 20 && b[2] == '/':
		return parseCommonTime(b)
	}
	sec, nanos, ok = parseEpoch(b)
	return sec, nanos, false, ok
}

// parseDateTime reads 2006-01-02T15:04:05 with or without a fraction and a zone.
func parseDateTime(b []byte) (at int64, nanos int, local, ok bool) {
	year, ok1 := digits(b[0:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	sec, ok4 := timeOfDay(b[11:19])
	if !ok1 || !ok2 || !ok3 || !ok4 || b[7] != '-' || b[10] != 'T' && b[10] != ' ' && b[10] != 't' {
		return 0, 0, false, false
	}
	return assemble(year, month, day, sec, b[19:])
}

// parseCommonTime reads 02/Jan/2006:15:04:05 -0700, with or without a fraction.
func parseCommonTime(b []byte) (at int64, nanos int, local, ok bool) {
	day, ok1 := digits(b[0:2])
	month, ok2 := monthOf(b[3:6])
	year, ok3 := digits(b[7:11])
	sec, ok4 := timeOfDay(b[12:20])
	if !ok1 || !ok2 || !ok3 || !ok4 || b[6] != '/' || b[11] != ':' {
		return 0, 0, false, false
	}
	return assemble(year, month, day, sec, b[20:])
}

// assemble returns the time of its parts. rest is the text after the time of day: the fraction and
// the zone.
func assemble(year, month, day, sec int, rest []byte) (at int64, nanos int, local, ok bool) {
	nanos, rest = fraction(rest)
	offset, has, ok := zoneOf(bytes.TrimSpace(rest))
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	exists := midnight.Day() == day && month >= 1 && month <= 12
	return midnight.Unix() + int64(sec-offset), nanos, !has, ok && exists
}

// zoneOf reads a zone and returns its offset in seconds: nothing, Z, UTC, +01, +0100 or +01:00.
func zoneOf(b []byte) (offset int, has, ok bool) {
	switch {
	case len(b) == 0:
		return 0, false, true
	case string(b) == "Z" || string(b) == "z" || string(b) == "UTC" || string(b) == "GMT":
		return 0, true, true
	case len(b) < 3 || b[0] != '+' && b[0] != '-':
		return 0, false, false
	}
	hours, ok := digits(b[1:3])
	minutes, rest := 0, b[3:]
	if len(rest) > 0 && rest[0] == ':' {
		rest = rest[1:]
	}
	if ok && len(b) > 3 {
		minutes, ok = digits(rest)
		ok = ok && len(rest) == 2
	}
	if !ok || hours > 18 || minutes > 59 {
		return 0, false, false
	}
	if offset = hours*3600 + minutes*60; b[0] == '-' {
		offset = -offset
	}
	return offset, true, true
}

// fraction reads the fraction of a second, if there is one, and returns the text after it.
func fraction(b []byte) (nanos int, rest []byte) {
	if len(b) < 2 || b[0] != '.' && b[0] != ',' {
		return 0, b
	}
	scale, i := 100_000_000, 1
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		nanos += int(b[i]-'0') * scale
		scale /= 10
	}
	return nanos, b[i:]
}

// timeOfDay reads 15:04:05 as seconds. It returns a leap second as the second before it.
func timeOfDay(b []byte) (sec int, ok bool) {
	h, ok1 := digits(b[0:2])
	m, ok2 := digits(b[3:5])
	s, ok3 := digits(b[6:8])
	ok = ok1 && ok2 && ok3 && b[2] == ':' && b[5] == ':' && h < 24 && m < 60 && s <= 60
	return h*3600 + m*60 + min(s, 59), ok
}

// parseEpoch reads a number of seconds, milliseconds, microseconds or nanoseconds since 1970. The
// size of the number shows the unit.
func parseEpoch(b []byte) (sec int64, nanos int, ok bool) {
	whole, frac := b, []byte(nil)
	if i := bytes.IndexByte(b, '.'); i >= 0 {
		whole, frac = b[:i], b[i:]
	}
	if bytes.ContainsAny(b, "eE") {
		return parseExponent(b)
	}
	if len(whole) == 0 || len(whole) > 18 && whole[0] > '8' || len(whole) > 19 {
		return 0, 0, false
	}
	n := int64(0)
	for _, c := range whole {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		n = n*10 + int64(c-'0')
	}
	nanos, rest := fraction(frac)
	sec, rem := sinceEpoch(n)
	if n >= 1e11 {
		nanos = rem
	}
	return sec, nanos, len(rest) == 0
}

// parseExponent reads such a number with an exponent, to the precision of a float.
func parseExponent(b []byte) (sec int64, nanos int, ok bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(f >= 0 && f < 1<<63) || bytes.ContainsAny(b, "xX_") {
		return 0, 0, false
	}
	whole, frac := math.Modf(f)
	if sec, nanos = sinceEpoch(int64(whole)); whole < 1e11 {
		nanos = int(frac * 1e9)
	}
	return sec, nanos, true
}

// sinceEpoch splits a number since 1970. Its size shows the unit.
func sinceEpoch(n int64) (sec int64, nanos int) {
	switch {
	case n < 1e11:
		return n, 0
	case n < 1e14:
		return n / 1e3, int(n%1e3) * 1e6
	case n < 1e17:
		return n / 1e6, int(n%1e6) * 1e3
	}
	return n / 1e9, int(n % 1e9)
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

// whole reads a whole number, also in the notation of programs with floats only: 200.0, 200,0 or
// 2e2.
func whole(b []byte) (n int, ok bool) {
	if n, ok = digits(b); ok {
		return n, true
	}
	if len(b) == 0 || b[0] < '0' || b[0] > '9' || bytes.ContainsAny(b, "xX_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.Replace(string(b), ",", ".", 1), 64)
	if err != nil || f != math.Trunc(f) || f >= 1<<53 {
		return 0, false
	}
	return int(f), true
}

func monthOf(b []byte) (month int, ok bool) {
	i := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", string(b))
	return i/3 + 1, i >= 0 && i%3 == 0
}
