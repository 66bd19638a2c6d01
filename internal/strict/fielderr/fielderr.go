// Package fielderr is the error type for values that cannot be: in a configuration
// file, in a policy, in a request to the admin API. It has no dependencies, so that
// internal/ratelimit can use it.
//
//	var errs fielderr.Errors
//	errs.Add("window", "%v is not above 0", l.Window)
//	return errs.Under("user[0]").Err() // user[0].window: 0s is not above 0
package fielderr

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is one problem of a field.
type Error struct {
	Path    string `json:"path,omitempty"`   // of the field, such as clients.shop.user[0].window; empty for the whole
	Message string `json:"message"`          // the problem and the valid values
	Origin  string `json:"origin,omitempty"` // where the value came from: file:line, OAUTH_X or --x; empty if unknown
}

// Error returns one line: path, message, origin. It truncates very long ones like [Error.Short].
func (e Error) Error() string {
	e = e.Short()
	line := e.Message
	if e.Path != "" {
		line = e.Path + ": " + line
	}
	if e.Origin != "" {
		line += " (" + e.Origin + ")"
	}
	return line
}

// Short truncates a path or message that quotes very long input.
func (e Error) Short() Error {
	const most = 400
	for _, s := range []*string{&e.Path, &e.Message} {
		if len(*s) > most {
			*s = strings.ToValidUTF8((*s)[:most], "") + "..."
		}
	}
	return e
}

// Errors are all problems of a document. It is never empty when returned as an
// error.
type Errors []Error

// Error lists the errors, one per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Most is the maximum number of errors that [Errors.Err] returns. A small document can have
// millions.
const Most = 100

// Err returns es as an error, or nil if it is empty. It returns the first [Most] errors, and one
// more that says if there were others.
func (es Errors) Err() error {
	switch {
	case len(es) == 0:
		return nil
	case len(es) > Most:
		es = append(slices.Clip(es[:Most]), Error{Message: "more problems are not shown"})
	}
	return es
}

// Add appends an error.
func (es *Errors) Add(path, format string, args ...any) {
	*es = append(*es, Error{Path: path, Message: fmt.Sprintf(format, args...)})
}

// AddUnreported appends errors of a later check, except errors about fields that es already names,
// or about fields inside them. A value that could not be read is not reported again for being zero.
func (es *Errors) AddUnreported(later Errors) {
	first := *es
	for _, e := range later {
		if !slices.ContainsFunc(first, func(known Error) bool { return known.Path != "" && e.In(known.Path) }) {
			*es = append(*es, e)
		}
	}
}

// In reports whether the error is about that field or a field inside it.
func (e Error) In(field string) bool {
	rest, ok := strings.CutPrefix(e.Path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Under prefixes the paths: "user[0].window" under "clients.shop" becomes
// "clients.shop.user[0].window".
func (es Errors) Under(prefix string) Errors {
	out := slices.Clone(es)
	for i, e := range es {
		switch {
		case prefix == "":
		case e.Path == "" || e.Path[0] == '[':
			out[i].Path = prefix + e.Path
		default:
			out[i].Path = prefix + "." + e.Path
		}
	}
	return out
}

// Of returns the Errors that err is or wraps, or nil.
func Of(err error) Errors {
	var es Errors
	errors.As(err, &es)
	return es
}

// Join appends the name of a field to a path. It quotes a name that could be mistaken for several
// fields: rate_limit.clients["app.example.com"].
func Join(path, name string) string {
	plain := name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	switch {
	case !plain:
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// Item appends the index of a list's item to a path.
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Nearest returns the origin of the field at a path, or of the nearest enclosing value; empty if
// there is none.
func Nearest(origins map[string]string, path string) string {
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if origin, known := origins[path]; known {
			return origin
		}
	}
	return ""
}
