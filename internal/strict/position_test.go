package strict

import (
	"strings"
	"testing"
)

func TestJSONErrorsSayWhere(t *testing.T) {
	for in, want := range map[string]string{
		"mode: off":                          "line 1, column 1: ",
		"{\"a\": [1,\n  nil]}":               "line 2, column 3: ",
		"{\n \"a\": 1,\n \"a\": 2\n}":        "line 3, column 5: the name",
		"{\"a\":\n":                          "line 2, column 1: it ends too early",
		"":                                   "line 1, column 1: it ends too early",
		"{}\n\n  {}":                         "line 3, column 3: something follows",
		"{}\n x":                             "line 2, column 2: something follows",
		"{\"é\" 1}":                          "line 1, column 7: ",
		"{\"a\":\n\"\xff\"}":                 "line 2, column 2: it is not UTF-8",
		"[\"\\ud83d\\ude00\",\n\"\\ude00\"]": "line 2, column 2: an escape",
		strings.Repeat("[\n", 17):            "line 17, column 2: it is nested too deeply",
	} {
		if _, err := ParseJSON([]byte(in)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseJSON(%q) = %v, want %s", in, err, want)
		}
	}
}
