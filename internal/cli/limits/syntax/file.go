package syntax

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// File is a file of limits: a value for each target. The server validates the values.
type File struct {
	name    string
	Values  map[string]json.RawMessage // by target
	Parsed  map[string]*strict.Value   // the same, with their lines
	Paths   map[string]string          // of targets in the file
	origins map[string]string          // FILE:LINE of sections and targets, by path
}

// ParseFile reads a file of limits. The error lists all syntax problems, with their lines.
func ParseFile(name string, text []byte) (*File, error) {
	f := &File{
		name: name, Values: map[string]json.RawMessage{}, Parsed: map[string]*strict.Value{}, Paths: map[string]string{}, origins: map[string]string{},
	}
	v, errs := strict.ParseYAML(name, text)
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	if v == nil {
		return nil, fielderr.Errors{{Message: "is empty; write {} to set nothing", Origin: name}}
	}
	doc, errs := f.fields("", v)
	for _, section := range slices.Sorted(maps.Keys(doc)) {
		path := fielderr.Join("", section)
		switch {
		case !slices.Contains(adminapi.Sections, section):
			errs = append(errs, f.at(path, "unknown field; the fields are "+strings.Join(adminapi.Sections, ", ")))
		case !doc[section].IsObject():
			errs = append(errs, f.at(path, "must be an object; to set nothing, leave it out"))
		case section == "settings":
			errs = append(errs, f.add(section, path, doc[section])...)
		default:
			values, wrong := f.fields(path, doc[section])
			errs = append(errs, wrong...)
			for _, name := range slices.Sorted(maps.Keys(values)) {
				target, place := targetOf(section, name), fielderr.Join(path, name)
				if _, twice := f.Values[target]; twice {
					errs = append(errs, f.at(place, "duplicates an entry that spells the name differently"))
					continue
				}
				errs = append(errs, f.add(target, place, values[name])...)
			}
		}
	}
	return f, errs.Err()
}

// targetOf returns the target for a name in a section. A username may be in any form.
func targetOf(section, name string) string {
	if client, user, is := strings.Cut(name, " "); is && section == "overrides" {
		if one, err := username.Canonical(user); err == nil {
			name = client + " " + one
		}
	}
	return section + "/" + name
}

// fields returns the fields of an object at a path. It decodes each one separately, because a file
// may be long.
func (f *File) fields(path string, v *strict.Value) (map[string]*strict.Value, fielderr.Errors) {
	var fields map[string]*strict.Value
	origins := map[string]string{}
	errs := v.Decode(&fields, origins)
	for name := range fields {
		f.origins[fielderr.Join(path, name)] = origins[fielderr.Join("", name)]
	}
	return fields, errs.Under(path)
}

// Add adds the value of a target.
func (f *File) add(target, path string, v *strict.Value) fielderr.Errors {
	if !v.IsObject() {
		return fielderr.Errors{f.at(path, "must be an object; write {} to set nothing")}
	}
	var value any
	if errs := v.Decode(&value, nil); len(errs) > 0 {
		return errs.Under(path)
	}
	b, err := json.Marshal(value)
	if err != nil { // a number that JSON does not allow
		return fielderr.Errors{f.at(path, err.Error())}
	}
	f.Values[target], f.Parsed[target], f.Paths[target] = b, v, path
	return nil
}

// at returns an error about a section or a target, with its line.
func (f *File) at(path, message string) fielderr.Error {
	return fielderr.Error{Path: path, Message: message, Origin: cmp.Or(f.origins[path], f.name)}
}

// Inside returns an error about a field of a target, or about the whole target if field is empty.
// It has the line of the field or of the nearest enclosing value.
func (f *File) Inside(target, field, message string) fielderr.Error {
	e := f.at(f.Paths[target], message)
	origins, value := map[string]string{}, any(nil)
	if v := f.Parsed[target]; v != nil {
		_ = v.Decode(&value, origins) // decoded before without an error
	}
	e.Origin = cmp.Or(fielderr.Nearest(origins, field), e.Origin)
	if field != "" {
		e = fielderr.Errors{{Path: field, Message: message, Origin: e.Origin}}.Under(e.Path)[0]
	}
	return e
}

// Targets returns the targets of the file in the order of its sections.
func (f *File) Targets() []string {
	return slices.SortedFunc(maps.Keys(f.Values), adminapi.CompareTargets)
}

// IsNull reports whether value is missing or null.
func IsNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// jsonField is a field of a JSON object.
type jsonField struct {
	name  string
	value json.RawMessage
}

// members returns the fields of a JSON object in order; false if raw is not an object.
func members(raw json.RawMessage) (out []jsonField, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		var m jsonField
		name, err := d.Token()
		if err == nil {
			m.name, _ = name.(string)
			err = d.Decode(&m.value)
		}
		if err != nil {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

// documentFields are the fields of all sections in the order of a file. Unknown fields come last.
var documentFields = []string{"tier", "trusted", "mode", "canary_percent", "default", "user", "client", "total", "source", "over_limit", "max_wait", "max_waiting", "ban", "criticality", "hide_headers", "note"}

// nameFields are the fields that name the subject of a document. In a file, its position does that.
var nameFields = map[string][]string{
	"policies": {"client_id"}, "candidates": {"client_id"}, "tiers": {"name"}, "overrides": {"client_id", "username"},
}

// Short returns the canonical value of a target in a section: defaults left out, fields in a fixed
// order. Two values with the same meaning become equal.
func Short(section string, value json.RawMessage) json.RawMessage {
	fields, ok := members(value)
	if !ok {
		return value
	}
	fields = slices.DeleteFunc(fields, func(m jsonField) bool {
		unset := section != "settings" && string(m.value) == "false" && (m.name == "trusted" || m.name == "hide_headers")
		named := slices.Contains(nameFields[section], m.name)
		return unset || named || IsNull(m.value) || m.name == "note" && string(m.value) == `""`
	})
	rank := func(m jsonField) int {
		if i := slices.Index(documentFields, m.name); i >= 0 {
			return i
		}
		return len(documentFields)
	}
	slices.SortStableFunc(fields, func(a, b jsonField) int { return rank(a) - rank(b) })
	out := []byte("{")
	for _, m := range fields {
		switch m.name {
		case "default":
			m.value = Short(section, m.value)
		case "user", "client", "total", "source":
			m.value = shortLimits(m.value)
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return value
		}
		if m.name == "default" && string(m.value) == "{}" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), m.value...)
	}
	return append(out, '}')
}

// shortLimits is a list of limits without the defaults of rarely set fields. It leaves an
// unparsable list unchanged for the server to validate.
func shortLimits(raw json.RawMessage) json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return raw
	}
	out := []adminapi.Limit{}
	for _, item := range items {
		fields, ok := members(item)
		if !ok || slices.ContainsFunc(fields, func(m jsonField) bool { return slices.Contains([]string{"null", "0", `""`}, string(m.value)) }) {
			return raw
		}
		l, usual, ok := completeLimit(item)
		if !ok {
			return raw
		}
		if window, err := time.ParseDuration(l.Window); err == nil {
			l.Window = adminapi.ShowWindow(window)
		}
		if wait, err := time.ParseDuration(l.LeaseWait); err == nil {
			l.LeaseWait = wait.String()
		}
		out = append(out, withoutUsual(l, usual))
	}
	b, err := json.Marshal(out)
	if err != nil {
		return raw
	}
	return b
}

// completeLimit reads a limit and fills missing fields with the default values, which it also
// returns.
func completeLimit(item json.RawMessage) (l, usual adminapi.Limit, ok bool) {
	read := func() bool {
		usual = usualLimit(l)
		l = usual
		d := json.NewDecoder(bytes.NewReader(item))
		d.DisallowUnknownFields()
		return d.Decode(&l) == nil
	}
	if ok = read(); ok && l.Strict {
		ok = read()
	}
	return l, usual, ok
}

// ReadFile reads a file of limits, up to a maximum size.
func ReadFile(stdin io.Reader, path string) (name string, text []byte, err error) {
	const most = 64 << 20
	in := stdin
	switch path {
	case "":
		return "", nil, command.Usagef("-f FILE is missing; use - for standard input")
	case "-":
		name = "standard input"
	default:
		name = path
		f, err := os.Open(path) //nolint:gosec // the operator names the file
		if err != nil {
			return "", nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err = io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && len(text) > most {
		err = errors.New("more than 64 MiB")
	}
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", name, err)
	}
	return name, text, nil
}
