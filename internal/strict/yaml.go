package strict

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"oauth-server/internal/fielderr"
)

// ParseYAML reads one YAML document; file is its name in messages. The value is nil if
// the document is empty or cannot be read.
func ParseYAML(file string, b []byte) (*Value, fielderr.Errors) {
	parser := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more yaml.Node
	switch err := parser.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fielderr.Errors{{Message: strings.TrimPrefix(err.Error(), "yaml: "), Origin: file}}
	}
	var errs fielderr.Errors
	r := yamlReader{yamlFormat(file), map[*yaml.Node]*Value{}}
	if err := parser.Decode(&more); !errors.Is(err, io.EOF) {
		errs = fielderr.Errors{{Message: "only one YAML document is allowed in the file", Origin: r.value(&more).origin()}}
	}
	v := r.value(doc.Content[0])
	if v.kind == null {
		v = nil
	}
	return v, errs
}

// yamlReader makes values of nodes. An anchor and its aliases are one value, which
// keeps a small file from becoming a large one, and may contain itself.
type yamlReader struct {
	format *format
	known  map[*yaml.Node]*Value
}

func (r yamlReader) value(n *yaml.Node) *Value {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if v, ok := r.known[n]; ok {
		return v
	}
	v := &Value{kind: scalar, text: n.Value, format: r.format, line: n.Line}
	r.known[n] = v
	switch n.Kind {
	case yaml.MappingNode:
		v.kind = object
		for i := 0; i+1 < len(n.Content); i += 2 {
			v.fields = append(v.fields, field{r.value(n.Content[i]), r.value(n.Content[i+1])})
		}
	case yaml.SequenceNode:
		v.kind = list
		for _, item := range n.Content {
			v.items = append(v.items, r.value(item))
		}
	case yaml.ScalarNode:
		if k, ok := yamlKinds[n.Tag]; ok {
			v.kind = k
		}
	default: // a scalar of no known type
	}
	return v
}

var yamlKinds = map[string]kind{
	"!!null": null, "!!bool": boolean, "!!int": integer, "!!float": number, "!!str": text,
}

// WriteYAML writes the JSON of v as YAML, fields in the same order.
func WriteYAML(w io.Writer, v any) error {
	value, err := Of(v)
	if err != nil {
		return err
	}
	node, err := value.yaml()
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(node), enc.Close())
}

func (v *Value) yaml() (n *yaml.Node, err error) {
	n = &yaml.Node{Kind: yaml.ScalarNode, Value: v.text}
	switch v.kind {
	case text:
		err = n.Encode(v.text) // quoted where needed
	case list:
		n.Kind = yaml.SequenceNode
	case object:
		n.Kind = yaml.MappingNode
	case null:
		n.Value = "null"
	default: // as in JSON
	}
	parts := v.items
	for _, f := range v.fields {
		parts = append(parts, f.name, f.value)
	}
	for _, part := range parts {
		sub, failed := part.yaml()
		n.Content, err = append(n.Content, sub), errors.Join(err, failed)
	}
	return n, err
}
