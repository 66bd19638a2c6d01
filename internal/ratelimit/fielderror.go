package ratelimit

import (
	"fmt"
	"strings"
)

// FieldError is one thing that is wrong with a setting.
type FieldError struct {
	Path    string // where, such as clients.shop.user[0].window
	Problem string // what, and what would be right
}

// Error implements error.
func (e FieldError) Error() string { return e.Path + ": " + e.Problem }

// FieldErrors is everything that is wrong, in the order of the fields.
type FieldErrors []FieldError

// Error lists the problems, one per line.
func (es FieldErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each problem visible to [errors.As].
func (es FieldErrors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Under puts a prefix before every path, so that the problems of a part can be
// reported as those of the whole: "user[0].window" under "clients.shop" is
// "clients.shop.user[0].window".
func (es FieldErrors) Under(prefix string) FieldErrors {
	out := make(FieldErrors, len(es))
	for i, e := range es {
		out[i] = FieldError{Path: joinPath(prefix, e.Path), Problem: e.Problem}
	}
	return out
}

// err returns nil for no problems: a nil slice in an error is not a nil error.
func (es FieldErrors) err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

func (es *FieldErrors) add(path, format string, args ...any) {
	*es = append(*es, FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
}

func joinPath(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "" || path[0] == '[':
		return prefix + path
	default:
		return prefix + "." + path
	}
}
