package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"oauth-server/internal/strict/fielderr"
)

// ParseYAML reads one YAML document. file is its name in messages. The value is nil if the document
// is empty or cannot be read.
func ParseYAML(file string, b []byte) (*Value, fielderr.Errors) {
	r := yamlReader{file, map[*yaml.Node]*Value{}}
	doc, more, err := documents(b)
	switch {
	case err != nil:
		message, line := syntaxError(b, err)
		return nil, fielderr.Errors{{Message: message, Origin: (&Value{file: file, line: line}).origin()}}
	case doc.IsZero():
		return nil, nil
	}
	var errs fielderr.Errors
	if !more.IsZero() {
		errs = fielderr.Errors{{Message: "only one YAML document is allowed in the file", Origin: r.value(&more).origin()}}
	}
	v := r.value(doc.Content[0])
	if v.kind == null {
		v = nil
	}
	return v, errs
}

// documents returns the first two documents. A missing document is zero.
func documents(b []byte) (first, second yaml.Node, err error) {
	parser := yaml.NewDecoder(bytes.NewReader(b))
	if err = parser.Decode(&first); err == nil {
		err = parser.Decode(&second)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return first, second, err
}

// ofParser matches the errors of the YAML library with lines counted from 0. In its other errors
// lines count from 1.
var ofParser = regexp.MustCompile(`^(did not find expected (<|node content|key|'-' indicator|',' or)|found (undefined tag|duplicate %|incompatible))`)

// maxSearched bounds how many bytes syntaxError searches, because it reads them many times.
const maxSearched = 256 << 10

// syntaxError separates the message of the YAML library and the line. If the library gives no line,
// the line is the first one at which the beginning of b already has the same error. It is 0 if b is
// too long for that search.
func syntaxError(b []byte, err error) (message string, line int) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if n, _ := fmt.Sscanf(message, "line %d:", &line); n == 1 {
		_, message, _ = strings.Cut(message, ": ")
		if ofParser.MatchString(message) {
			line++
		}
		return message, line
	}
	if len(b) > maxSearched {
		return message, 0
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return message, 1 + sort.Search(len(lines)-1, func(i int) bool {
		_, _, failed := documents(bytes.Join(lines[:i+1], nil))
		return failed != nil && failed.Error() == err.Error()
	})
}

// yamlReader makes values from nodes. An anchor and its aliases are one value. This keeps a small
// file from becoming a large value, but a value may contain itself.
type yamlReader struct {
	file  string
	known map[*yaml.Node]*Value
}

func (r yamlReader) value(n *yaml.Node) *Value {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if v, ok := r.known[n]; ok {
		return v
	}
	v := &Value{kind: scalar, text: n.Value, file: r.file, line: n.Line}
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
	default: // a scalar of an unknown type
	}
	return v
}

var yamlKinds = map[string]kind{
	"!!null": null, "!!bool": boolean, "!!int": integer, "!!float": number, "!!str": text,
}

// WriteYAML writes the JSON of v as YAML, with fields in the same order.
func WriteYAML(w io.Writer, v any) error {
	value, err := Of(v)
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(yamlNode(value)), enc.Close())
}

// quoted matches text that the library quotes in a string, but not in a node: YAML 1.1 reads it as
// a boolean or as a number of base 60. It also matches text that begins with a tab: the library
// cannot read such a block of lines.
var quoted = regexp.MustCompile(`^(?i:y|yes|on|n|no|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$|^\t`)

func yamlNode(v *Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: v.text}
	switch v.kind {
	case null:
		n.Value = "null"
	case text:
		if n.SetString(v.text); quoted.MatchString(v.text) {
			n.Style = yaml.DoubleQuotedStyle
		}
	case list:
		n.Kind = yaml.SequenceNode
	case object:
		n.Kind = yaml.MappingNode
	default: // as in JSON
	}
	for _, item := range v.items {
		n.Content = append(n.Content, yamlNode(item))
	}
	for _, f := range v.fields {
		n.Content = append(n.Content, yamlNode(f.name), yamlNode(f.value))
	}
	return n
}
