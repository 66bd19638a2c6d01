package events

import (
	"fmt"
	"slices"
)

// Lines counts the lines of all files. Every line is in one of the first three counts. In a file
// that is one JSON document, a value counts as a line. Parts that were split into several lines
// count as one line.
type Lines struct {
	Read    uint64 `json:"read"`    // as a token request
	Unread  uint64 `json:"unread"`  // cannot be read, or are too far from their place in time
	Skipped uint64 `json:"skipped"` // not about a token request
	// Reordered is how many of the read lines came before an earlier one, and were put in order.
	Reordered uint64  `json:"reordered"`
	Causes    []Cause `json:"causes,omitempty"` // of the unread lines, most frequent first
}

// Cause is a reason why lines could not be read.
type Cause struct {
	Field   string `json:"field"`   // the log's name of the field; line or file if the whole is invalid
	Problem string `json:"problem"` // the problem
	Lines   uint64 `json:"lines"`
	File    string `json:"file"` // file of its first occurrence
	Line    uint64 `json:"line"`
}

// String returns the cause and its first line.
func (c *Cause) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", c.File, c.Line, c.Field, c.Problem)
}

// LineError is an unreadable line, under [Options].Strict.
type LineError struct{ Cause }

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
	causes                   map[problem]*Cause
}

// unread counts an unreadable line, and returns it as an error.
func (t *tally) unread(p *problem, file string, line uint64) *LineError {
	if t.causes == nil {
		t.causes = map[problem]*Cause{}
	}
	c := t.causes[*p]
	if c == nil {
		c = &Cause{Field: p.field, Problem: p.text, File: file, Line: line}
		t.causes[*p] = c
	}
	c.Lines++
	return &LineError{Cause{Field: p.field, Problem: p.text, Lines: 1, File: file, Line: line}}
}

func (t *tally) lines() Lines {
	out := Lines{Read: t.read, Skipped: t.skipped, Reordered: t.reordered}
	for _, c := range t.causes {
		out.Unread += c.Lines
		out.Causes = append(out.Causes, *c)
	}
	slices.SortFunc(out.Causes, func(a, b Cause) int {
		switch {
		case a.Lines != b.Lines && a.Lines > b.Lines:
			return -1
		case a.Lines != b.Lines:
			return 1
		case a.Field+a.Problem < b.Field+b.Problem:
			return -1
		}
		return 1
	})
	return out
}
