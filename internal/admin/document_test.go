package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/ratelimit"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// TestDocument: openapi.json is what the routes, the types of their bodies and the comments of those
// types say. To write it anew, use go generate.
func TestDocument(t *testing.T) {
	made, err := newDescriber().document((&Server{}).routes())
	check.OK(t, err)
	if *update {
		check.OK(t, os.WriteFile("openapi.json", made, 0o600))
		return
	}
	if !bytes.Equal(made, document) {
		t.Error("openapi.json is out of date: run go generate ./internal/admin")
	}
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", m.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func ref(kind, name string) object { return object{{"$ref", "#/components/" + kind + "/" + name}} }

// describer makes the document.
type describer struct {
	schemas  map[string]any
	comments map[string]map[string]string // by package path, and "Type" or "Type.Field"
	sent     map[reflect.Type]bool        // types that callers send, and may leave parts out of
	used     map[string]bool              // parameters
}

func newDescriber() *describer {
	return &describer{schemas: map[string]any{}, comments: map[string]map[string]string{}, sent: map[reflect.Type]bool{}, used: map[string]bool{}}
}

// document returns the document with a line for each operation and component.
func (d *describer) document(routes []route) ([]byte, error) {
	ids := map[string]bool{}
	for _, r := range routes {
		if ids[r.doc.id] {
			return nil, fmt.Errorf("two operations are called %s", r.doc.id)
		}
		ids[r.doc.id] = true
		if r.doc.in != nil {
			d.send(reflect.TypeOf(r.doc.in))
		}
	}
	tagged := map[string]bool{} // paths with an ETag
	for _, r := range routes {
		tagged[r.path] = tagged[r.path] || slices.Contains(r.doc.parameters, "If-Match")
	}
	paths := map[string]object{}
	for _, r := range routes {
		path := regexp.MustCompile(`:(\w+)`).ReplaceAllString(r.path, "{$1}")
		paths[path] = append(paths[path], member{strings.ToLower(r.method), d.operation(&r, tagged[r.path])})
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	fmt.Fprintf(&b, "%q: %q,\n%q: %s,\n%q: %s,\n", "openapi", "3.1.0", "info", line(documentInfo), "servers", line([]object{{{"url", adminapi.Prefix}}}))
	section(&b, "paths", paths)
	b.WriteString(",\n\"components\": {\n")
	fmt.Fprintf(&b, "%q: %s,\n", "securitySchemes", line(securitySchemes))
	section(&b, "parameters", d.parameters())
	b.WriteString(",\n")
	section(&b, "responses", d.problems())
	b.WriteString(",\n")
	section(&b, "schemas", d.schemas)
	b.WriteString("\n}\n}\n")
	if !json.Valid(b.Bytes()) {
		return nil, fmt.Errorf("the document is not JSON: %s", b.Bytes())
	}
	return b.Bytes(), nil
}

func line(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return string(b)
}

// section writes an object with one member on each line.
func section[V any](b *bytes.Buffer, name string, members map[string]V) {
	names := slices.Sorted(maps.Keys(members))
	fmt.Fprintf(b, "%q: {\n", name)
	for i, n := range names {
		fmt.Fprintf(b, "%q: %s%s\n", n, line(members[n]), map[bool]string{true: ","}[i < len(names)-1])
	}
	b.WriteString("}")
}

// operation describes one route. tagged says that what is at its path has an ETag.
func (d *describer) operation(r *route, tagged bool) object {
	summary, more, _ := strings.Cut(r.doc.text, "\n")
	op := object{{"operationId", r.doc.id}, {"summary", summary}}
	if more != "" {
		op = append(op, member{"description", more})
	}
	op = append(op, member{"security", []object{{{"oauth", []string{r.scope}}}}})
	var parameters []object
	for _, m := range regexp.MustCompile(`:(\w+)`).FindAllStringSubmatch(r.path, -1) {
		parameters = append(parameters, d.parameter("path."+m[1]))
	}
	for _, name := range r.doc.parameters {
		parameters = append(parameters, d.parameter(cmp.Or(special[r.doc.id+"."+name], name)))
	}
	if len(parameters) > 0 {
		op = append(op, member{"parameters", parameters})
	}
	if r.doc.in != nil {
		op = append(op, member{"requestBody", d.request(r)})
	}
	return append(op, member{"responses", d.responses(r, tagged)})
}

func (d *describer) parameter(name string) object {
	d.used[name] = true
	return ref("parameters", name)
}

func (d *describer) request(r *route) object {
	media := object{{"schema", d.body(r.doc.in)}}
	if example, has := examples[r.doc.id]; has {
		media = append(media, member{"example", json.RawMessage(example)})
	}
	content := object{{"application/json", media}}
	if r.method == http.MethodPatch {
		content = append(object{{"application/merge-patch+json", media}}, content...)
	}
	return object{{"required", r.doc.id != "addSecret"}, {"content", content}}
}

// body returns the schema of a body.
func (d *describer) body(v any) any {
	switch v := v.(type) {
	case anything:
		return object{{"type", "object"}}
	case either:
		return d.oneOf(v...)
	default:
		return d.schema(reflect.TypeOf(v))
	}
}

func (d *describer) oneOf(bodies ...any) any {
	options := make([]any, len(bodies))
	for i, b := range bodies {
		options[i] = d.body(b)
	}
	return object{{"oneOf", options}}
}

var etagHeader = object{{"ETag", object{{"description", "Names the state. Send it as If-Match."}, {"schema", object{{"type", "string"}}}}}}

func (d *describer) responses(r *route, tagged bool) object {
	takes := func(name string) bool { return slices.Contains(r.doc.parameters, name) }
	var all object
	answer := func(status int, description string, body any, headers object) {
		res := object{{"description", description}}
		if len(headers) > 0 {
			res = append(res, member{"headers", headers})
		}
		if body != nil {
			res = append(res, member{"content", object{{"application/json", object{{"schema", body}}}}})
		}
		all = append(all, member{strconv.Itoa(status), res})
	}
	var headers object
	if tagged {
		headers = etagHeader
	}
	switch out := r.doc.out.(type) {
	case nil:
		if takes("validate") {
			answer(http.StatusOK, "With validate=true: the effect of the change.", d.body(adminapi.Rehearsal{}), nil)
		}
		answer(http.StatusNoContent, "Done.", nil, nil)
	case file:
		content := object{{"application/octet-stream", object{{"schema", object{{"type", "string"}, {"format", "binary"}}}}}}
		all = append(all, member{"200", object{{"description", "The data file."}, {"content", content}}})
	case accepted:
		answer(http.StatusAccepted, "The server restarts.", nil, nil)
	case created:
		if !strings.Contains(r.path, ":") {
			headers = append(slices.Clone(headers), etagHeader[0], member{"Location", object{{"schema", object{{"type", "string"}}}}})
		}
		answer(http.StatusCreated, "Done.", d.body(out.body), headers)
	default:
		_, set := out.(adminapi.Changed)
		switch {
		case takes("validate") && !set:
			answer(http.StatusOK, "The new state, or with validate=true the effect of the change.", d.withRehearsal(out), headers)
		default:
			answer(http.StatusOK, "Done.", d.body(out), headers)
		}
		if tagged && r.method == http.MethodGet {
			answer(http.StatusNotModified, "Not changed since (If-None-Match).", nil, nil)
		}
	}
	for _, status := range refusals(r) {
		all = append(all, member{strconv.Itoa(status), ref("responses", "Problem"+strconv.Itoa(status))})
	}
	return all
}

func (d *describer) withRehearsal(out any) any {
	if several, is := out.(either); is {
		return d.oneOf(append(slices.Clone(several), adminapi.Rehearsal{})...)
	}
	return d.oneOf(out, adminapi.Rehearsal{})
}

// refusals returns the statuses of the problems that an operation can answer with.
func refusals(r *route) []int {
	all := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusServiceUnavailable,
	}
	if strings.Contains(r.path, ":") || slices.Contains(r.doc.parameters, "client_id") || slices.Contains(r.doc.parameters, "validate") {
		all = append(all, http.StatusNotFound)
	}
	if r.method != http.MethodGet || r.scope != read {
		all = append(all, http.StatusConflict)
	}
	if slices.Contains(r.doc.parameters, "If-Match") || r.doc.id == "undoChange" {
		all = append(all, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	}
	if r.doc.in != nil {
		all = append(all, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	slices.Sort(all)
	return all
}

func (d *describer) problems() map[string]any {
	out := map[string]any{}
	problem := d.schema(reflect.TypeFor[adminapi.Problem]())
	for status, text := range problemTexts {
		out["Problem"+strconv.Itoa(status)] = object{
			{"description", text}, {"content", object{{"application/problem+json", object{{"schema", problem}}}}},
		}
	}
	return out
}

func (d *describer) parameters() map[string]any {
	out := map[string]any{}
	for name := range d.used {
		p, known := parameterTexts[name]
		if !known {
			panic("no text for the parameter " + name)
		}
		in, short := "query", name
		if kind, rest, dotted := strings.Cut(name, "."); dotted {
			in, short = kind, rest
		}
		if strings.HasPrefix(name, "If-") {
			in = "header"
		}
		o := object{{"name", short}, {"in", in}}
		if in == "path" || name == "required.username" || name == "required.file" {
			o = append(o, member{"required", true})
		}
		if in != "path" && in != "header" {
			o[1].value = "query"
		}
		if p.text != "" {
			o = append(o, member{"description", p.text})
		}
		out[name] = append(o, member{"schema", json.RawMessage(p.schema)})
	}
	return out
}

// send notes that callers send this type, and what it is made of without its read-only parts.
func (d *describer) send(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		d.send(t.Elem())
	case reflect.Struct:
		if d.sent[t] || literal(t) != "" {
			return
		}
		d.sent[t] = true
		for i := range t.NumField() {
			if f := t.Field(i); !strings.Contains(f.Tag.Get("schema"), "readonly") {
				d.send(f.Type)
			}
		}
	default:
	}
}

// literal returns the schema of a type with a JSON form of its own, or nothing.
func literal(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return `{"type":"string","format":"date-time"}`
	case reflect.TypeFor[json.RawMessage]():
		return `{"type":["object","null"]}`
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[ratelimit.Duration](), reflect.TypeFor[ratelimit.Criticality]():
		return `{"type":"string"}`
	case reflect.TypeFor[labels.Set]():
		return `{"type":"object","additionalProperties":{"type":"string"}}`
	case reflect.TypeFor[ratelimit.Grants]():
		return `{"type":"array","items":{"type":"string"},"minItems":1,"uniqueItems":true}`
	}
	return ""
}

// schema returns the schema of a type. A named struct becomes a component.
func (d *describer) schema(t reflect.Type) any {
	if l := literal(t); l != "" {
		return json.RawMessage(l)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Slice:
		list := object{{"type", "array"}, {"items", d.schema(t.Elem())}}
		if t.Elem() == reflect.TypeFor[ratelimit.Limit]() {
			list = append(list, member{"minItems", 1})
		}
		return list
	case reflect.Map:
		return object{{"type", "object"}}
	case reflect.Struct:
		if t.Name() == "" {
			return d.members(t, "", "")
		}
		return d.component(t)
	case reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}
	default:
		return object{{"type", "integer"}}
	}
}

func (d *describer) component(t reflect.Type) object {
	name := strings.TrimSuffix(t.Name(), "View")
	if t == reflect.TypeFor[ratelimit.Ban]() {
		name = "BanRule"
	}
	if _, done := d.schemas[name]; !done {
		d.schemas[name] = nil // against recursion
		o := d.members(t, t.PkgPath(), t.Name())
		if text := d.comment(t.PkgPath(), t.Name()); text != "" {
			o = append(object{{"description", text}}, o...)
		}
		var whole any = o
		if t == reflect.TypeFor[ratelimit.Ban]() {
			whole = object{{"oneOf", []any{object{{"type", "string"}, {"const", "off"}}, o}}}
		}
		d.schemas[name] = whole
	}
	return ref("schemas", name)
}

// members describes a struct. Its fields have comments at the path of the type pkg.path.
func (d *describer) members(t reflect.Type, pkg, path string) object {
	var properties object
	var required []string
	d.fields(t, pkg, path, func(name string, f reflect.StructField, schema object, optional bool) {
		properties = append(properties, member{name, schema})
		tag := f.Tag.Get("schema")
		if strings.Contains(tag, "required") || !optional && !d.sent[t] {
			required = append(required, name)
		}
	})
	o := object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	return o
}

// fields calls each for the JSON fields of a struct, also of the structs embedded in it.
func (d *describer) fields(t reflect.Type, pkg, path string, each func(name string, f reflect.StructField, schema object, optional bool)) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			d.fields(f.Type, f.Type.PkgPath(), f.Type.Name(), each)
			continue
		case name == "" || name == "-":
			continue
		}
		var schema any
		if f.Type.Kind() == reflect.Struct && f.Type.Name() == "" {
			schema = d.members(f.Type, pkg, path+"."+f.Name)
		} else {
			schema = d.schema(f.Type)
		}
		optional := strings.Contains(options, "omit")
		each(name, f, d.field(f, schema, optional, d.comment(pkg, path+"."+f.Name)), optional)
	}
}

// field adds the field's comment and what its tag says to the schema of its type.
func (d *describer) field(f reflect.StructField, schema any, optional bool, comment string) object {
	var o object
	switch s := schema.(type) {
	case object:
		o = slices.Clone(s)
	case json.RawMessage:
		var plain map[string]any
		_ = json.Unmarshal(s, &plain)
		for _, name := range []string{"type", "format", "enum", "items", "minItems", "uniqueItems", "additionalProperties"} {
			if v, has := plain[name]; has {
				o = append(o, member{name, v})
			}
		}
	}
	if f.Type.Kind() == reflect.Pointer && !optional {
		if o[0].name == "type" {
			o[0].value = []any{o[0].value, "null"}
		} else {
			o = object{{"oneOf", []any{o, object{{"type", "null"}}}}}
		}
	}
	if comment != "" {
		o = append(o, member{"description", comment})
	}
	for part := range strings.SplitSeq(f.Tag.Get("schema"), ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "", "required":
		case "readonly":
			o = append(o, member{"readOnly", true})
		case "enum":
			o = append(o, member{"enum", strings.Split(value, "|")})
		case "pattern":
			o = append(o, member{key, value})
		case "example":
			o = append(o, member{"examples", []string{value}})
		default:
			o = append(o, member{key, json.Number(value)})
		}
	}
	return o
}

// comment returns the comment of a type or of a field.
func (d *describer) comment(pkg, path string) string {
	if pkg == "" {
		return ""
	}
	if d.comments[pkg] == nil {
		module := strings.TrimSuffix(reflect.TypeFor[Server]().PkgPath(), "/internal/admin")
		d.comments[pkg] = comments(filepath.Join("..", "..", strings.TrimPrefix(pkg, module)))
	}
	text := d.comments[pkg][path]
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	return strings.TrimRight(text, ".") + "."
}

// comments reads the comments of all types in a folder and of their fields.
func comments(folder string) map[string]string {
	out := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			panic(err) // it compiles
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if decl, is := n.(*ast.GenDecl); is && decl.Tok == token.TYPE {
				for _, s := range decl.Specs {
					spec := s.(*ast.TypeSpec) //nolint:forcetypeassert // see Tok
					out[spec.Name.Name] = plain(cmp.Or(spec.Doc, decl.Doc))
					fieldComments(out, spec.Name.Name, spec.Type)
				}
			}
			return true
		})
	}
	return out
}

func fieldComments(out map[string]string, path string, t ast.Expr) {
	s, is := t.(*ast.StructType)
	if !is {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			out[path+"."+name.Name] = plain(cmp.Or(f.Doc, f.Comment))
			fieldComments(out, path+"."+name.Name, f.Type)
		}
	}
}

var link = regexp.MustCompile(`\[([\w.]+)\]`)

func plain(c *ast.CommentGroup) string {
	return link.ReplaceAllString(strings.Join(strings.Fields(c.Text()), " "), "$1")
}
