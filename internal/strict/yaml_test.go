package strict_test

import (
	"strings"
	"testing"

	"oauth-server/internal/strict"
)

// A file that is not YAML is reported like a field, with its line.
func TestYAMLSyntaxErrors(t *testing.T) {
	for in, want := range map[string]string{
		"a: b: c":                                 "mapping values are not allowed in this context (f:1)",
		"a: 1\nb: 2\n c: 3":                       "mapping values are not allowed in this context (f:3)",
		"a: 1\nb: 'x":                             "found unexpected end of stream (f:2)",
		"a: 1\nb: %x":                             "found character that cannot start any token (f:2)",
		"\ta: 1":                                  "found character that cannot start any token (f:1)",
		"a: 1\nb:\n  c: 3\n d: 4":                 "did not find expected key (f:4)",
		"a:\n  b: [1, 2\n  c: 3":                  "did not find expected ',' or ']' (f:2)",
		"a: 1\nb: [1,\n 2,\n}":                    "did not find expected node content (f:4)",
		"a: 1\nb: \"x\" y":                        "did not find expected key (f:2)",
		"a: 1\nb: !x!y 1":                         "found undefined tag handle (f:2)",
		"a: 1\nb: 2\n\nc: *no\nd: *no\n":          "unknown anchor 'no' referenced (f:4)",
		"a: 1 # *no\nb: '*no'\nc: [1,\n *no]":     "unknown anchor 'no' referenced (f:4)",
		"a: 1\nb: \xff\nc: 3":                     "invalid leading UTF-8 octet (f:2)",
		"a: 1\n\nb: \x01":                         "control characters are not allowed (f:3)",
		"a: 1\n---\nb: 'x":                        "found unexpected end of stream (f:3)",
		strings.Repeat("#\n", 200_000) + "a: *no": "unknown anchor 'no' referenced (f)",
		strings.Repeat("a: 1\n", 1000) + "}":      "did not find expected key (f:1001)",
	} {
		v, errs := strict.ParseYAML("f", []byte(in))
		if v != nil || errs.Error() != want {
			t.Errorf("%.100q: %v, want %s", in, errs, want)
		}
	}
}
