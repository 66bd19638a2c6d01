package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Path    string `json:"path,omitempty"`   // of the field, such as rate_limit.default.user[0].window
	Message string `json:"message"`          // what is wrong and what would be right
	Origin  string `json:"origin,omitempty"` // where the value came from: file:line, OAUTH_X or --x; may be empty
}

// String is one line: path, message, origin.
func (p Problem) String() string {
	var b strings.Builder
	if p.Path != "" {
		b.WriteString(shorten(p.Path) + ": ")
	}
	b.WriteString(shorten(p.Message))
	if p.Origin != "" {
		b.WriteString(" (" + p.Origin + ")")
	}
	return b.String()
}

// shorten keeps a line readable that quotes a field or value of absurd length.
func shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// FieldErrors is everything that is wrong with a configuration; it is never empty
// when it is returned as an error.
type FieldErrors []Problem

// Error lists the problems, one per line.
func (ps FieldErrors) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// err avoids the typed nil that returning FieldErrors as an error would be.
func (ps FieldErrors) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

func (ps *FieldErrors) addf(path, format string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}
