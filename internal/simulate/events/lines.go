package events

import (
	"cmp"
	"fmt"
	"slices"

	"oauth-server/internal/simulate/traffic"
)

// LineError is an unreadable line, under [Options].Strict.
type LineError struct{ traffic.Cause }

// Error implements error.
func (e *LineError) Error() string { return e.String() }

// problem is a problem of a line. Problems are constants, so that there are few causes.
type problem struct{ field, text string }

// wholeLine is the field of problems of lines that are not of the format at all. Such lines may be
// wrapped.
const wholeLine = "line"

// skip marks a line about something else. It is not a real problem.
var skip = &problem{"", "no token request"}

// Problems that any format can have.
var (
	errLong      = &problem{wholeLine, "is longer than 1 MiB"}
	errNoObject  = &problem{wholeLine, "is not a JSON object"}
	errJSON      = &problem{wholeLine, "is not valid JSON"}
	errTruncated = &problem{"file", "ends before its end: the archive is truncated"}
	errDamaged   = &problem{"file", "cannot be decompressed further: the archive is damaged"}
	errReading   = &problem{"file", "cannot be read further"}
	errLate      = &problem{"time", "is before that of lines far above, and too far from its place to be put in order: sort the log, or give its parts as files of their own"}
)

// tally counts lines.
type tally struct {
	read, skipped, reordered uint64
	causes                   map[problem]*traffic.Cause
}

// unread counts an unreadable line, and returns it as an error.
func (t *tally) unread(p *problem, file string, line uint64) *LineError {
	if t.causes == nil {
		t.causes = map[problem]*traffic.Cause{}
	}
	first := fmt.Sprintf("%s:%d", file, line)
	c := t.causes[*p]
	if c == nil {
		c = &traffic.Cause{Field: p.field, Problem: p.text, First: first}
		t.causes[*p] = c
	}
	c.Lines++
	return &LineError{traffic.Cause{Field: p.field, Problem: p.text, Lines: 1, First: first}}
}

func (t *tally) lines() traffic.Lines {
	out := traffic.Lines{Read: t.read, Skipped: t.skipped, Reordered: t.reordered}
	for _, c := range t.causes {
		out.Unread += c.Lines
		out.Causes = append(out.Causes, *c)
	}
	slices.SortFunc(out.Causes, func(a, b traffic.Cause) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Field+a.Problem, b.Field+b.Problem))
	})
	return out
}
