package strict

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"oauth-server/internal/strict/fielderr"
)

// maxValues bounds how many values are read from a YAML document: with aliases, a small file can
// describe a very large document. JSON has no aliases, so the length of a document bounds its
// values.
const maxValues = 1 << 20

// Defaulter is a struct with non-zero defaults for absent fields.
type Defaulter interface {
	// SetDefaults sets all fields, before the given fields are read.
	SetDefaults()
}

// Completer is a struct with absent fields that depend on the given ones.
type Completer interface {
	// Complete sets absent fields, after the given fields were read.
	Complete(given func(field string) bool)
}

// Lister is a value that is written as a list of texts, such as a set of names.
type Lister interface {
	// SetList sets the value from the texts. Its errors are [fielderr.Errors]. The path of an error
	// in a text is the index of the text.
	SetList(texts []string) error
}

// Decode writes v into a struct, given by its address. Fields that are absent in v, are null in JSON or
// have readonly in their schema tag keep their values. Absent fields of a [Defaulter] get its
// defaults. Pointers get new values. A null in a map counts as an object without fields. An interface
// gets any value: nil, bool, int64, float64, string, []any or map[string]any. A [*Value] gets the
// value itself, null included. Unless origins is nil, Decode records in it, by path, the position of
// each value in a file. It stops after more than [fielderr.Most] errors.
func (v *Value) Decode(into any, origins map[string]string) fielderr.Errors {
	d := decoder{origins: origins}
	d.value(v, reflect.ValueOf(into).Elem(), "")
	return d.errs
}

type decoder struct {
	values  int
	depth   int // of nested interfaces
	stopped bool
	errs    fielderr.Errors
	origins map[string]string
}

func (d *decoder) fail(at *Value, path, message string, args ...any) {
	d.errs = append(d.errs, fielderr.Error{Path: path, Message: fmt.Sprintf(message, args...), Origin: at.origin()})
	d.stopped = d.stopped || len(d.errs) > fielderr.Most
}

func (d *decoder) value(v *Value, into reflect.Value, path string) {
	if d.values++; d.values > maxValues && !v.isJSON() {
		d.fail(v, path, "with its aliases, the file has more than %d values", maxValues)
		d.stopped = true
		return
	}
	if d.origins != nil {
		d.origins[path] = v.origin()
	}
	if into.Type() == reflect.TypeFor[*Value]() {
		into.Set(reflect.ValueOf(v))
		return
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	switch {
	case into.Kind() == reflect.Interface:
		d.plain(v, into, path)
	case isLister(into):
		d.texts(v, into, path)
	case isText(into) && !insteadOfWord(v, into):
		d.scalar(v, into, path)
	case into.Kind() == reflect.Struct:
		d.structure(v, into, path)
	case into.Kind() == reflect.Map:
		d.mapping(v, into, path)
	case into.Kind() == reflect.Slice:
		d.list(v, into, path)
	default:
		d.scalar(v, into, path)
	}
}

// insteadOfWord reports whether a type that reads a text gets a list or an object instead. Such a
// type may accept either form.
func insteadOfWord(v *Value, into reflect.Value) bool {
	if into.Kind() == reflect.Slice {
		return v.kind != text
	}
	return into.Kind() == reflect.Struct && v.kind == object && len(fieldsOf(into.Type()).names) > 0
}

func (d *decoder) structure(v *Value, into reflect.Value, path string) {
	setDefaults(into)
	var given map[string]bool // nil: not needed
	if c, ok := into.Addr().Interface().(Completer); ok {
		given = map[string]bool{}
		defer c.Complete(func(field string) bool { return given[field] })
	}
	d.fields(v, path, func(f field, at string, again bool) {
		target, known := fieldNamed(into, f.name.text)
		if again && known {
			target = reflect.New(target.Type()).Elem()
		}
		switch {
		case !known:
			names := fieldsOf(into.Type()).names
			d.fail(f.name, at, "unknown field%s", cmp.Or(Suggest(f.name.text, names), "; the fields are "+strings.Join(names, ", ")))
		case fieldsOf(into.Type()).readOnly[f.name.text]:
		case f.value.kind == null && v.isJSON() && target.Type() != reflect.TypeFor[*Value]():
		default:
			if given != nil {
				given[f.name.text] = true
			}
			d.value(f.value, target, at)
		}
	})
}

// plain writes any value into an interface. null leaves the interface unchanged. In YAML an alias
// can contain itself, so plain bounds the depth too.
func (d *decoder) plain(v *Value, into reflect.Value, path string) {
	if d.depth++; d.depth > maxDepth {
		d.fail(v, path, "is nested more than %d deep", maxDepth)
		d.stopped = true
	}
	defer func() { d.depth-- }()
	as := map[kind]reflect.Type{
		boolean: reflect.TypeFor[bool](), integer: reflect.TypeFor[int64](), number: reflect.TypeFor[float64](), text: reflect.TypeFor[string](),
		scalar: reflect.TypeFor[string](), list: reflect.TypeFor[[]any](), object: reflect.TypeFor[map[string]any](),
	}[v.kind]
	if as == nil || d.stopped {
		return
	}
	to := reflect.New(as).Elem()
	switch v.kind {
	case list:
		d.list(v, to, path)
	case object:
		d.mapping(v, to, path)
	default:
		d.scalar(v, to, path)
	}
	into.Set(to)
}

func (d *decoder) mapping(v *Value, into reflect.Value, path string) {
	into.Set(reflect.MakeMap(into.Type()))
	d.fields(v, path, func(f field, at string, again bool) {
		elem := reflect.New(into.Type().Elem()).Elem()
		if setDefaults(elem); f.value.kind != null || !v.isJSON() {
			d.value(f.value, elem, at)
		}
		if !again {
			into.SetMapIndex(reflect.ValueOf(f.name.text), elem)
		}
	})
}

// fields calls each for every field of an object with a text as its name. The value of a repeated
// field is checked, but not kept.
func (d *decoder) fields(v *Value, path string, each func(f field, at string, again bool)) {
	if v.kind != object {
		shown := v.String()
		if v.isScalar() {
			shown = "a plain value" // the file may be a different one, such as one with a secret
		}
		d.fail(v, path, "must be an object, not %s", shown)
		return
	}
	seen := make(map[string]int, len(v.fields))
	for _, f := range v.fields {
		if d.stopped {
			return
		}
		at := fielderr.Join(path, shorten(f.name.text, maxName))
		line, twice := seen[f.name.text]
		switch {
		case f.name.kind == null || f.name.kind >= list:
			d.fail(f.name, path, "the name of a field must be text, not %s", f.name)
		case f.name.kind == scalar && f.name.text == "<<":
			d.fail(f.name, path, "merge keys (<<) are not supported; write the fields out")
		case twice:
			d.fail(f.name, at, "is a duplicate of line %d", line)
			each(f, at, true)
		default:
			seen[f.name.text] = f.name.line
			each(f, at, false)
		}
	}
}

func (d *decoder) list(v *Value, into reflect.Value, path string) {
	if v.kind != list {
		hint := ""
		if v.kind == text && into.Type().Elem().Kind() == reflect.String {
			hint = fmt.Sprintf("; write [ %s ]", v)
		}
		d.fail(v, path, "must be a list, not %s%s", v, hint)
		return
	}
	out := reflect.MakeSlice(into.Type(), 0, min(len(v.items), 1024))
	for i, item := range v.items {
		if d.stopped {
			return
		}
		elem := reflect.New(into.Type().Elem()).Elem()
		d.value(item, elem, fielderr.Item(path, i))
		out = reflect.Append(out, elem)
	}
	into.Set(out)
}

func isLister(into reflect.Value) bool {
	_, is := into.Addr().Interface().(Lister)
	return is
}

// texts reads a list of texts into a [Lister].
func (d *decoder) texts(v *Value, into reflect.Value, path string) {
	var texts []string
	before := len(d.errs)
	if d.list(v, reflect.ValueOf(&texts).Elem(), path); len(d.errs) > before {
		return
	}
	err := into.Addr().Interface().(Lister).SetList(texts) //nolint:forcetypeassert // see isLister
	for _, e := range fielderr.Of(err).Under(path) {
		at := v
		for i, item := range v.items {
			if e.Path == fielderr.Item(path, i) {
				at = item
			}
		}
		d.fail(at, e.Path, "%s", e.Message)
	}
}

func (d *decoder) scalar(v *Value, into reflect.Value, path string) {
	want, ok := fits(v.kind, into)
	switch {
	case !ok && want == wantText && !v.isJSON() && v.isScalar():
		shown := v.String()
		if strings.HasSuffix(path, "secret") {
			shown = "a number" // messages may be logged
		}
		d.fail(v, path, "must be %s, not %s; write it in quotes", want, shown)
	case !ok:
		d.fail(v, path, "must be %s, not %s", want, v)
	default:
		if err := setText(into, v.text); err != nil {
			d.fail(v, path, "%s", err)
		}
	}
}

// wantText describes the value of a text field.
const wantText = "text"

// fits reports whether a value of kind k can be written into a field, and describes the value that
// the field needs.
func fits(k kind, into reflect.Value) (want string, ok bool) {
	switch {
	case isDuration(into):
		return wantDuration, k == text
	case isText(into):
		return wantText, k == text
	case into.Kind() == reflect.Bool:
		return "true or false", k == boolean
	case into.Kind() == reflect.Float64:
		return "a number", k == number || k == integer
	case into.Kind() == reflect.Int || into.Kind() == reflect.Int64:
		return "a whole number", k == integer
	}
	return into.Type().String(), false
}
