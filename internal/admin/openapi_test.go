package admin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
)

// openAPI is the part of the OpenAPI document that the tests use.
type openAPI struct {
	Paths map[string]map[string]operation `json:"paths"`
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
	Ref string `json:"$ref"`
}

var loadDocument = sync.OnceValues(func() (openAPI, error) {
	var d openAPI
	err := json.Unmarshal(admin.Document, &d)
	return d, err
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
	pattern, op, found := d.operation(r.method, path)
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
	if len(a.body) == 0 {
		return
	}
	at := res.Ref
	if at == "" {
		at = "#/paths/" + segment(pattern) + "/" + strings.ToLower(r.method) + "/responses/" + fmt.Sprint(a.status)
	}
	schema, err := schemaAt(at + "/content/" + segment(a.header.Get("Content-Type")) + "/schema")
	if err != nil {
		t.Errorf("%s: %d %s is not documented: %v", op.OperationID, a.status, a.header.Get("Content-Type"), err)
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	check.OK(t, err)
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: %v in %s", op.OperationID, err, a.body)
	}
}

// segment escapes a name as a segment of a JSON pointer in a URL.
func segment(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}

var schemas struct {
	sync.Mutex
	compiler *jsonschema.Compiler // keeps what it has compiled
}

// schemaAt returns the schema at a JSON pointer in the document.
func schemaAt(pointer string) (*jsonschema.Schema, error) {
	schemas.Lock()
	defer schemas.Unlock()
	if schemas.compiler == nil {
		whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.Document))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("openapi.json", whole); err != nil {
			return nil, err
		}
		schemas.compiler = c
	}
	return schemas.compiler.Compile("openapi.json" + pointer)
}

func (d openAPI) operation(method, path string) (pattern string, op operation, found bool) {
	for pattern, methods := range d.Paths {
		if samePath(strings.Split(pattern, "/"), strings.Split(path, "/")) {
			op, found := methods[strings.ToLower(method)]
			return pattern, op, found
		}
	}
	return "", operation{}, false
}

// samePath reports whether a path has the segments of a pattern, such as {client_id}.
func samePath(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, s string) bool { return p == s || strings.HasPrefix(p, "{") && s != "" })
}
