package events

import (
	"cmp"
	"fmt"
	"slices"

	"oauth-server/internal/simulate/traffic"
)

// LineError is an unreadable line, under [Options].Strict.
type LineError struct {
	File           string
	Line           uint64
	Field, Problem string
}

// Error implements error.
func (e *LineError) Error() string {
	c := e.cause()
	return c.String()
}

// cause returns the cause that begins with the line.
func (e *LineError) cause() traffic.Cause {
	return traffic.Cause{Field: e.Field, Problem: e.Problem, Lines: 1, First: fmt.Sprintf("%s:%d", e.File, e.Line)}
}

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
	errTruncated = &problem{"file", "ends early: the archive is truncated"}
	errDamaged   = &problem{"file", "cannot be decompressed: the archive is damaged"}
	errReading   = &problem{"file", "cannot be read further"}
	errLate      = &problem{"time", "is too far out of order: sort the log, or give its parts as separate files"}
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
	e := &LineError{file, line, p.field, p.text}
	if c := t.causes[*p]; c != nil {
		c.Lines++
	} else {
		first := e.cause()
		t.causes[*p] = &first
	}
	return e
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
