package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds the nesting of what is read; no document of ours is deeper
// than five.
const maxDepth = 16

// parseJSON reads one JSON value and nothing after it. It is stricter than
// encoding/json: a name that stands twice in an object, invalid UTF-8 and deep
// nesting are errors, because what two readers would understand differently
// must not become a policy. Objects are map[string]any, numbers json.Number.
func parseJSON(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := parseValue(d, 0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it ends too early")
	case err != nil:
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := t.(json.Delim)
	switch {
	case !ok:
		return t, nil
	case depth == maxDepth:
		return nil, errors.New("it is nested too deeply")
	case delim == '{':
		return parseObject(d, depth+1)
	default:
		return parseArray(d, depth+1)
	}
}

func parseObject(d *json.Decoder, depth int) (any, error) {
	out := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a name", t)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("the name %q stands twice in one object", name)
		}
		if out[name], err = parseValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token() // the closing brace
	return out, err
}

func parseArray(d *json.Decoder, depth int) (any, error) {
	out := []any{}
	for d.More() {
		v, err := parseValue(d, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.Token() // the closing bracket
	return out, err
}

// mergePatch applies a JSON merge patch (RFC 7396) and changes neither of its
// arguments.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if before, ok := target.(map[string]any); ok {
		for name, v := range before {
			out[name] = v
		}
	}
	for name, change := range changes {
		if change == nil {
			delete(out, name)
			continue
		}
		out[name] = mergePatch(out[name], change)
	}
	return out
}

// toJSONValue is v as parseJSON would have read it.
func toJSONValue(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("admin: encode: %w", err)
	}
	return parseJSON(b)
}
