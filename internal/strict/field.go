package strict

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// At returns the field at that path, such as store.mongodb.uri, in the struct that v points to. It
// allocates nil values on the way.
func At(v any, path string) (reflect.Value, error) {
	at := reflect.ValueOf(v).Elem()
	for name := range strings.SplitSeq(path, ".") {
		f, ok := fieldNamed(at, name)
		if !ok {
			return reflect.Value{}, fmt.Errorf("no field %s", path)
		}
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				f.Set(reflect.New(f.Type().Elem()))
				setDefaults(f.Elem())
			}
			f = f.Elem()
		}
		at = f
	}
	return at, nil
}

// Set writes texts, such as the values of a repeated flag, into the field at that path. A list
// takes all of them, split at commas. Any other field takes the last.
func Set(v any, path string, texts []string) error {
	at, err := At(v, path)
	if err != nil {
		return err
	}
	if at.Kind() != reflect.Slice {
		return setText(at, texts[len(texts)-1])
	}
	out := reflect.MakeSlice(at.Type(), 0, len(texts))
	for item := range strings.SplitSeq(strings.Join(texts, ","), ",") {
		elem := reflect.New(at.Type().Elem()).Elem()
		if err := setText(elem, strings.TrimSpace(item)); err != nil {
			return err
		}
		out = reflect.Append(out, elem)
	}
	at.Set(out)
	return nil
}

// setText parses text into a scalar.
func setText(into reflect.Value, text string) error {
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch kind := into.Kind(); {
	case isDuration(into):
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("must be %s, not %q", wantDuration, shorten(text, maxText))
		}
		into.SetInt(int64(d))
	case kind == reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", shorten(text, maxText))
		}
		into.SetBool(b)
	case kind == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("%s is too large", shorten(text, maxText))
		case err != nil:
			return fmt.Errorf("%q is not a number", shorten(text, maxText))
		}
		into.SetFloat(f)
	case kind == reflect.Int || kind == reflect.Int64:
		i, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a decimal whole number of at most %d bits", shorten(text, maxText), into.Type().Bits())
		}
		into.SetInt(i)
	default:
		into.SetString(text)
	}
	return nil
}

// wantDuration describes the value of a duration field.
const wantDuration = "a duration with a unit, such as 60s"

// isDuration recognises time.Duration, and a similar type with its own notation.
func isDuration(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case *time.Duration, interface{ Std() time.Duration }:
		return v.Kind() == reflect.Int64
	}
	return false
}

func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok || v.Kind() == reflect.String
}

func setDefaults(v reflect.Value) {
	if d, ok := v.Addr().Interface().(Defaulter); ok {
		d.SetDefaults()
	}
}

// Name returns the name of a field in documents, from its json tag. It is empty for an embedded
// field and for a field that is not in documents.
func Name(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}

// fields has the fields of a struct by name, including fields of embedded structs.
type fields struct {
	names    []string // in their order in the struct
	index    map[string][]int
	readOnly map[string]bool // they may be given, but are not read
}

var fieldsByType sync.Map // reflect.Type to *fields

func fieldsOf(t reflect.Type) *fields {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(*fields) //nolint:forcetypeassert // nothing else is stored
	}
	fs := &fields{index: map[string][]int{}, readOnly: map[string]bool{}}
	for _, f := range reflect.VisibleFields(t) {
		if name := Name(f); name != "" {
			fs.names, fs.index[name] = append(fs.names, name), f.Index
			fs.readOnly[name] = strings.Contains(f.Tag.Get("schema"), "readonly")
		}
	}
	fieldsByType.Store(t, fs)
	return fs
}

func fieldNamed(v reflect.Value, name string) (reflect.Value, bool) {
	index, ok := fieldsOf(v.Type()).index[name]
	if !ok {
		return reflect.Value{}, false
	}
	return v.FieldByIndex(index), true
}

// Suggest returns "; did you mean x?" for the nearest known name, ignoring case. It returns an
// empty text if no name is near.
func Suggest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if max(len(k)-len(name), len(name)-len(k)) >= least { // the distance is at least this large
			continue
		}
		if n := distance(strings.ToLower(name), strings.ToLower(k)); n < least && n < len(k) {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance returns the Levenshtein distance. It is meant for names of reasonable length.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
