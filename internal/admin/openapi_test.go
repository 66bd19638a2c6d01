package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
)

// openAPI is the part of the OpenAPI document that the tests use.
type openAPI struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas   map[string]schema   `json:"schemas"`
		Responses map[string]response `json:"responses"`
	} `json:"components"`
}

type operation struct {
	OperationID string              `json:"operationId"`
	Parameters  []map[string]any    `json:"parameters"`
	Responses   map[string]response `json:"responses"`
	RequestBody struct {
		Content map[string]struct {
			Example json.RawMessage `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema schema `json:"schema"`
	} `json:"content"`
}

// schema is a JSON Schema, limited to the keywords in the document.
type schema map[string]any

var loadDocument = sync.OnceValues(func() (openAPI, error) {
	var d openAPI
	return d, json.Unmarshal(admin.Document, &d)
})

func document(t *testing.T) openAPI {
	t.Helper()
	d, err := loadDocument()
	check.OK(t, err)
	return d
}

func TestDocumentIsServed(t *testing.T) {
	w := newWorld(t)
	w.get("/openapi.json").has("openapi=3.1.0")
}

// TestExamples: the API accepts every example in the document.
func TestExamples(t *testing.T) {
	w, found := newWorld(t), 0
	for path, methods := range document(t).Paths {
		for method, op := range methods {
			for media, content := range op.RequestBody.Content {
				if content.Example == nil {
					continue
				}
				found++
				r := request{
					method: strings.ToUpper(method), path: strings.ReplaceAll(path, "{client_id}", "shop"), token: writer,
					contentType: media, body: string(content.Example),
				}
				if op.Responses["412"].Ref != "" && method != "post" {
					r.path += "?validate=true"
				}
				if path == "/changes" {
					r.ifMatch = "*"
				}
				if a := w.send(r); a.status >= http.StatusMultipleChoices {
					t.Errorf("%s: %d %s", op.OperationID, a.status, a.body)
				}
			}
		}
	}
	check.Equal(t, "examples are there", found > 5, true)
}

// TestReferencesLeadSomewhere also finds unused schemas.
func TestReferencesLeadSomewhere(t *testing.T) {
	var root map[string]any
	check.OK(t, json.Unmarshal(admin.Document, &root))
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, is := v["$ref"].(string); is {
				used[ref] = true
			}
			for _, sub := range v {
				walk(sub)
			}
		case []any:
			for _, sub := range v {
				walk(sub)
			}
		}
	}
	walk(root)
	components, _ := root["components"].(map[string]any)
	for _, kind := range []string{"schemas", "parameters", "responses"} {
		group, _ := components[kind].(map[string]any)
		for name := range group {
			ref := "#/components/" + kind + "/" + name
			if !used[ref] {
				t.Errorf("nobody refers to %s", ref)
			}
			delete(used, ref)
		}
	}
	for ref := range used {
		t.Errorf("%s leads nowhere", ref)
	}
}

// checkAgainstDocument compares a response with the document. Every request of every test is
// checked here.
func checkAgainstDocument(t *testing.T, r request, a answer) {
	t.Helper()
	d := document(t)
	path, _, _ := strings.Cut(r.path, "?")
	op, found := d.operation(r.method, path)
	if !found {
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && a.status != http.StatusUnauthorized {
			t.Errorf("%s %s answers %d and is not documented", r.method, path, a.status)
		}
		return
	}
	res, found := op.Responses[fmt.Sprint(a.status)]
	if !found {
		t.Errorf("%s: status %d is not documented: %s", op.OperationID, a.status, a.body)
		return
	}
	if name, isRef := strings.CutPrefix(res.Ref, "#/components/responses/"); isRef {
		res = d.Components.Responses[name]
	}
	if len(a.body) == 0 {
		return
	}
	media, found := res.Content[a.header.Get("Content-Type")]
	if !found {
		t.Errorf("%s: %d %s is not documented", op.OperationID, a.status, a.header.Get("Content-Type"))
		return
	}
	var v any
	check.OK(t, json.Unmarshal(a.body, &v))
	if err := d.check(media.Schema, v, "$"); err != nil {
		t.Errorf("%s: %v in %s", op.OperationID, err, a.body)
	}
}

func (d openAPI) operation(method, path string) (operation, bool) {
	for pattern, methods := range d.Paths {
		if samePath(strings.Split(pattern, "/"), strings.Split(path, "/")) {
			op, found := methods[strings.ToLower(method)]
			return op, found
		}
	}
	return operation{}, false
}

// samePath reports whether a path has the segments of a pattern, such as {client_id}.
func samePath(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, s string) bool { return p == s || strings.HasPrefix(p, "{") && s != "" })
}

// check validates v against the part of JSON Schema that the document uses.
func (d openAPI) check(s schema, v any, at string) error {
	if ref, is := s["$ref"].(string); is {
		return d.check(d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], v, at)
	}
	if options, is := s["oneOf"].([]any); is {
		return d.checkOneOf(options, v, at)
	}
	if c, is := s["const"]; is && c != v {
		return fmt.Errorf("%s: %v is not %v", at, v, c)
	}
	if enum, is := s["enum"].([]any); is && !slices.Contains(enum, v) {
		return fmt.Errorf("%s: %v is not one of %v", at, v, enum)
	}
	if !isType(s["type"], v) {
		return fmt.Errorf("%s: %v is no %v", at, v, s["type"])
	}
	switch v := v.(type) {
	case map[string]any:
		return d.checkObject(s, v, at)
	case []any:
		items, _ := s["items"].(map[string]any)
		for i, item := range v {
			if err := d.check(items, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case string:
		return checkText(s, v, at)
	case float64:
		if low, is := s["minimum"].(float64); is && v < low {
			return fmt.Errorf("%s: %v is below %v", at, v, low)
		}
	}
	return nil
}

func (d openAPI) checkOneOf(options []any, v any, at string) error {
	var matched int
	var errs []string
	for _, o := range options {
		option, _ := o.(map[string]any)
		if err := d.check(option, v, at); err != nil {
			errs = append(errs, err.Error())
		} else {
			matched++
		}
	}
	if matched != 1 {
		return fmt.Errorf("%s: %d of oneOf match: %s", at, matched, strings.Join(errs, "; "))
	}
	return nil
}

func (d openAPI) checkObject(s schema, v map[string]any, at string) error {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, there := v[name.(string)]; !there {
			return fmt.Errorf("%s: %v is missing", at, name)
		}
	}
	props, _ := s["properties"].(map[string]any)
	for name, value := range v {
		sub, known := props[name].(map[string]any)
		if !known {
			if s["additionalProperties"] == false {
				return fmt.Errorf("%s: %s is not documented", at, name)
			}
			continue
		}
		if err := d.check(sub, value, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func checkText(s schema, v, at string) error {
	if s["format"] == "date-time" {
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	if p, is := s["pattern"].(string); is && !regexp.MustCompile(p).MatchString(v) {
		return fmt.Errorf("%s: %q does not match %s", at, v, p)
	}
	return nil
}

func isType(t, v any) bool {
	switch t := t.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(t, func(one any) bool { return isType(one, v) })
	}
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case float64:
		return t == "number" || t == "integer" && v == float64(int64(v))
	case []any:
		return t == "array"
	default:
		return t == "object"
	}
}
