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

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"
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

// fieldOrder has the fields of documents and of limits in the order of a file. Unknown fields come last.
var fieldOrder = []string{
	"tier", "trusted", "mode", "canary_percent", "default", "user", "client", "total", "source", "over_limit", "max_wait", "max_waiting", "ban",
	"criticality", "hide_headers", "note",
	"name", "requests", "window", "frames", "algorithm", "soft_ratio", "on_outage", "strict", "lease_wait", "grants",
}

// nameFields are the fields that name the subject of a document. In a file, its position does that.
var nameFields = map[string][]string{
	"policies": {"client_id"}, "candidates": {"client_id"}, "tiers": {"name"}, "overrides": {"client_id", "username"},
}

// Short returns the canonical value of a target in a section: defaults left out, fields in a fixed
// order. Two values with the same meaning become equal.
func Short(section string, value json.RawMessage) json.RawMessage {
	fields, ok := fieldsOf(value)
	if !ok {
		return value
	}
	for name, value := range fields {
		switch name {
		case "default":
			fields[name] = Short(section, value)
		case "user", "client", "total", "source":
			fields[name] = shortLimits(value)
		}
	}
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		unset := section != "settings" && string(value) == "false" && (name == "trusted" || name == "hide_headers")
		empty := name == "note" && string(value) == `""` || name == "default" && string(value) == "{}"
		return unset || empty || IsNull(value) || slices.Contains(nameFields[section], name)
	})
	return object(fields)
}

// fieldsOf returns the fields of a JSON object; false if raw is not an object.
func fieldsOf(raw json.RawMessage) (fields map[string]json.RawMessage, ok bool) {
	err := json.Unmarshal(raw, &fields)
	return fields, err == nil && fields != nil
}

// object is the inverse of fieldsOf, with the fields in [fieldOrder].
func object(fields map[string]json.RawMessage) json.RawMessage {
	rank := func(name string) int {
		if i := slices.Index(fieldOrder, name); i >= 0 {
			return i
		}
		return len(fieldOrder)
	}
	out := []byte("{")
	for i, name := range slices.SortedFunc(maps.Keys(fields), func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) }) {
		if i > 0 {
			out = append(out, ',')
		}
		text, _ := json.Marshal(name) // a text never fails
		out = append(append(append(out, text...), ':'), fields[name]...)
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
	for i, item := range items {
		fields, ok := fieldsOf(item)
		for _, value := range fields {
			ok = ok && !slices.Contains([]string{"null", "0", `""`}, string(value))
		}
		var l ratelimit.Limit
		v, err := strict.ParseJSON(item)
		if !ok || err != nil || v.Decode(&l, nil) != nil {
			return raw
		}
		items[i] = shortLimit(&l)
	}
	b, err := json.Marshal(items)
	if err != nil {
		return raw
	}
	return b
}

// optionalFields are the fields of a limit that are left out if they have their defaults.
var optionalFields = []string{"frames", "algorithm", "soft_ratio", "on_outage", "lease_wait"}

// shortLimit returns a limit without the optional fields that have their defaults.
func shortLimit(l *ratelimit.Limit) json.RawMessage {
	fields, usual := fieldsOfLimit(*l), fieldsOfLimit(usualLimit(l))
	for _, name := range optionalFields {
		if bytes.Equal(fields[name], usual[name]) {
			delete(fields, name)
		}
	}
	return object(fields)
}

func fieldsOfLimit(l ratelimit.Limit) map[string]json.RawMessage {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	fields, _ := fieldsOf(b)
	return fields
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
