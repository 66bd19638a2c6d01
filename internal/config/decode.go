package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the work that one file can ask for: with aliases, a small
// file can describe a very large configuration.
const maxNodes = 1 << 20

// presetter is a struct whose absent fields have values other than zero.
type presetter interface{ preset() }

// decoder fills a struct from YAML nodes by the yaml tags of its fields. It goes
// on after a problem, so that all are reported together, and keeps the line
// of every field it has seen. A general decoder stops at the first problem of
// a value, knows lines or paths but not both, or bends types quietly.
type decoder struct {
	file     string
	nodes    int
	problems FieldErrors
	origins  map[string]string // path -> file:line
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		Path: path, Message: fmt.Sprintf(format, args...), Origin: d.at(n),
	})
}

func (d *decoder) at(n *yaml.Node) string { return d.file + ":" + strconv.Itoa(n.Line) }

// value decodes n into v, which must be settable.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.fail(n, path, "the configuration is too large")
		}
		return
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.origins[path] = d.at(n)
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.scalar(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if p, ok := v.Addr().Interface().(presetter); ok {
		p.preset()
	}
	d.entries(n, path, func(key, value *yaml.Node) {
		field, ok := fieldByTag(v, key.Value)
		if !ok {
			d.fail(key, join(path, key.Value), "unknown field%s", suggest(key.Value, tags(v.Type())))
			return
		}
		d.value(value, field, join(path, key.Value))
	})
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.entries(n, path, func(key, value *yaml.Node) {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(value, elem, join(path, key.Value))
		v.SetMapIndex(reflect.ValueOf(key.Value), elem)
	})
}

// entries calls each for every pair of a mapping whose keys are distinct text.
func (d *decoder) entries(n *yaml.Node, path string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "must be a mapping of fields, not %s", kindOf(n))
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for pair := range slices.Chunk(n.Content, 2) {
		key, value := pair[0], pair[1]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		line, dup := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null":
			d.fail(key, path, "the name of a field must be text, not %s", describe(key))
		case dup:
			d.fail(key, join(path, key.Value), "is given twice, first in line %d", line)
		default:
			seen[key.Value] = key.Line
			each(key, value)
		}
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "must be a list, not %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, min(len(n.Content), 1024))
	for i, item := range n.Content {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(item, elem, path+"["+strconv.Itoa(i)+"]")
		out = reflect.Append(out, elem)
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if want, ok := fits(n, v); !ok {
		d.fail(n, path, "must be %s, not %s", want, describe(n))
		return
	}
	if err := setText(v, n.Value); err != nil {
		d.fail(n, path, "%s", err)
	}
}

// fits reports whether the YAML type of n is the one that v needs, and names
// the latter. Nothing is bent: 1.5 is no whole number and 8080 no text.
func fits(n *yaml.Node, v reflect.Value) (want string, ok bool) {
	tag := ""
	if n.Kind == yaml.ScalarNode {
		tag = n.Tag
	}
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[Duration]():
		return "a duration with its unit, such as 60s", tag == "!!str"
	case isText(v):
		return "text", tag == "!!str"
	case kind == reflect.Bool:
		return "true or false", tag == "!!bool"
	case kind == reflect.Float64:
		return "a number", tag == "!!float" || tag == "!!int"
	case kind == reflect.Int || kind == reflect.Int64:
		return "a whole number", tag == "!!int"
	}
	return v.Type().String(), false
}

func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok || v.Kind() == reflect.String
}

// setText parses text into a scalar.
func setText(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(f)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number in decimal digits that fits %d bits", text, v.Type().Bits())
		}
		v.SetInt(i)
	default:
		v.SetString(text)
	}
	return nil
}

// describe names what n is to somebody who wrote it.
func describe(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return strconv.Quote(n.Value)
	}
	return kindOf(n)
}

// kindOf is describe without the text: where fields should be, it may be
// another file altogether, such as one with a secret.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "empty"
		}
		return "text"
	default:
		return "that"
	}
}
