package events_test

import (
	"errors"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// A mapping that does not fit is reported as such, and not as an unknown format. This holds even if
// the format is detected.
func TestMappingErrors(t *testing.T) {
	t.Parallel()
	table := "when,app,sub\n2026-07-01T00:00:00Z,a,b\n"
	long := strings.Repeat("column,", 40) + "last\n"
	for name, tt := range map[string]struct{ mapping, text, says string }{
		"a column is misspelt":   {"time=when,client=ap,user=sub", table, `-: mapping: client: there is no column "ap" in the first line, which has "when", "app", "sub"`},
		"a column has no name":   {"time=when", table, "-: mapping: client is missing: add client=FIELD"},
		"many columns":           {"time=when,client=app", long, `"column" and 11 more`},
		"semicolons":             {"time=when,client=ap", "when;app\n", `which has "when", "app"`},
		"JSON":                   {"client=.app", `{"app":"a"}`, "time is missing"},
		"JSON, with text before": {"client=.app", `2026-07-01T00:00:00Z stdout F {"app":"a","b":1}`, "time is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := events.Open([]string{"-"}, events.Options{Mapping: mapping(t, tt.mapping), Stdin: strings.NewReader(tt.text)})
			check.ErrorSays(t, err, tt.says)
			var wrong *events.MappingError
			check.Equal(t, "is about the mapping", errors.As(err, &wrong), true)
		})
	}
}

// Text that is not a table is not recognised as one.
func TestNoTable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a line of text\n", "\x00\x01,\x02\n"} {
		_, err := events.Open([]string{"-"}, events.Options{Mapping: mapping(t, "client=a,time=b"), Stdin: strings.NewReader(text)})
		check.ErrorSays(t, err, "cannot be recognised by its first lines")
	}
}

// Files that must be converted are refused with an instruction, even if the format is given.
func TestForeign(t *testing.T) {
	t.Parallel()
	for head, says := range map[string]string{
		"BZh91AY&SY\x8a":        "- is a bzip2 archive, which is not read: bzcat FILE | oauth-server simulate -",
		"\xfd7zXZ\x00\x00":      "xzcat FILE |",
		"PK\x03\x04":            "unzip -p FILE |",
		"\xff\xfet\x00i\x00":    "- is UTF-16, which is not read: iconv -f UTF-16 -t UTF-8 FILE |",
		"\xfe\xff\x00t\x00i":    "iconv -f UTF-16 -t UTF-8 FILE |",
		"\xff\xfe\x00\x00t\x00": "iconv -f UTF-16",
	} {
		for _, format := range []events.Format{events.Auto, events.Keycloak} {
			_, err := events.Open([]string{"-"}, events.Options{Format: format, Stdin: strings.NewReader(head)})
			check.ErrorSays(t, err, says)
		}
	}
	_, err := events.Open([]string{"-"}, events.Options{Format: events.CSV, Stdin: strings.NewReader("BZh,time,client\n")})
	check.OK(t, err)
}

// The error of a missing field names its purpose.
func TestMissingFieldIsNamed(t *testing.T) {
	t.Parallel()
	for text, tt := range map[string]struct{ mapping, want string }{
		`192.0.2.3 - - [10/Oct/2025:20:55:39 +0000] "POST /token HTTP/1.1" 200 912`: {"", "client (field user): is missing"},
		"time,client\nnoon,a": {"", "time: is not a time with a date"},
		"when,client\nnoon,a": {"time=when,client=client", "time (field when): is not a time with a date"},
		`{"client":"a"}`:      {"time=.time,client=.client", ".time: is missing"},
	} {
		_, r := readAll(t, events.Options{Mapping: mapping(t, tt.mapping), Stdin: strings.NewReader(text)}, "-")
		c := r.Lines().Causes[0]
		check.Equal(t, "cause", c.Field+": "+c.Problem, tt.want)
	}
}
