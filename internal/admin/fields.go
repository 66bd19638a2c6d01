package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
)

// fields reads one JSON object field by field. It goes on after a problem, so
// that all are reported together, each with its path.
type fields struct {
	path   string // of the object; empty for the document
	m      map[string]any
	known  []string
	errors *ratelimit.FieldErrors
}

// fieldsOf begins to read v, which must be an object.
func fieldsOf(v any, path string, errs *ratelimit.FieldErrors) *fields {
	m, ok := v.(map[string]any)
	f := &fields{path: path, m: m, errors: errs}
	if !ok {
		*errs = append(*errs, ratelimit.FieldError{Path: path, Problem: "must be an object, not " + describe(v)})
	}
	return f
}

func (f *fields) at(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

func (f *fields) fail(name, format string, args ...any) {
	*f.errors = append(*f.errors, ratelimit.FieldError{Path: f.at(name), Problem: fmt.Sprintf(format, args...)})
}

// get returns the value of a field; one that is absent or null is not set.
func (f *fields) get(name string) (v any, set bool) {
	f.known = append(f.known, name)
	v = f.m[name]
	return v, v != nil
}

// ignore allows a field that is only for reading.
func (f *fields) ignore(names ...string) { f.known = append(f.known, names...) }

// end reports fields that nobody asked for.
func (f *fields) end() {
	for _, name := range slices.Sorted(maps.Keys(f.m)) {
		if !slices.Contains(f.known, name) {
			f.fail(name, "unknown field; there are %s", strings.Join(f.known, ", "))
		}
	}
}

func (f *fields) text(name string) (s string, set bool) {
	v, set := f.get(name)
	if !set {
		return "", false
	}
	s, ok := v.(string)
	if !ok {
		f.fail(name, "must be text, not %s", describe(v))
	}
	return s, ok
}

func (f *fields) boolean(name string) (b, set bool) {
	v, set := f.get(name)
	if !set {
		return false, false
	}
	b, ok := v.(bool)
	if !ok {
		f.fail(name, "must be true or false, not %s", describe(v))
	}
	return b, ok
}

// number reads any JSON number that a float64 holds.
func (f *fields) number(name string) (x float64, set bool) {
	v, set := f.get(name)
	if !set {
		return 0, false
	}
	n, ok := v.(json.Number)
	if !ok {
		f.fail(name, "must be a number, not %s", describe(v))
		return 0, false
	}
	x, err := n.Float64()
	if err != nil {
		f.fail(name, "%s is too large", shorten(n.String()))
	}
	return x, err == nil
}

// integer reads a whole number; 1e3 and 10.0 are some.
func (f *fields) integer(name string) (i int64, set bool) {
	v, set := f.get(name)
	if !set {
		return 0, false
	}
	n, ok := v.(json.Number)
	if !ok {
		f.fail(name, "must be a whole number, not %s", describe(v))
		return 0, false
	}
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, true
	}
	x, err := n.Float64()
	if err != nil || x != float64(int64(x)) || x > 1<<53 || x < -1<<53 {
		f.fail(name, "%s is not a whole number that fits", shorten(n.String()))
		return 0, false
	}
	return int64(x), true
}

func (f *fields) duration(name string) (d time.Duration, set bool) {
	s, set := f.text(name)
	if !set {
		if v := f.m[name]; v != nil {
			(*f.errors)[len(*f.errors)-1].Problem = "must be a duration with its unit, such as \"60s\", not " + describe(v)
		}
		return 0, false
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		f.fail(name, "%q is not a duration with its unit, such as \"60s\", \"1.5s\" or \"24h\"", shorten(s))
	}
	return d, err == nil
}

func (f *fields) list(name string) (items []any, set bool) {
	v, set := f.get(name)
	if !set {
		return nil, false
	}
	items, ok := v.([]any)
	if !ok {
		f.fail(name, "must be a list, not %s", describe(v))
	}
	return items, ok
}

// describe names a value to whoever sent it.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(shorten(v))
	default:
		return shorten(fmt.Sprint(v))
	}
}

// shorten keeps an answer from growing with the question.
func shorten(s string) string {
	if len(s) <= 64 {
		return s
	}
	return strings.ToValidUTF8(s[:64], "") + "…"
}
