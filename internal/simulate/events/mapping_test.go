package events_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// TestOpenRefuses: what cannot be opened is refused with what to do about it. A mapping that does not
// fit is reported as such, and not as an unknown format, also if the format is detected.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	zip := filepath.Join(dir, "zip")
	check.OK(t, os.WriteFile(zip, []byte("PK\x03\x04 and so on"), 0o600))
	table := "when,app,sub\n2026-07-01T00:00:00Z,a,b\n"
	stdin := []string{"-"}
	for name, tt := range map[string]struct {
		names             []string
		format            events.Format
		mapping, text     string
		says              string
		isAboutItsMapping bool
	}{
		"nothing":                 {names: nil, says: "no log to read"},
		"no file":                 {names: []string{dir + "/none"}, says: "no such file"},
		"a directory":             {names: []string{dir}, says: "is a directory"},
		"the second file":         {names: []string{"testdata/okta.json", zip}, says: "zip is a zip archive, which is not supported: unzip -p FILE | oauth-server simulate -"},
		"an unknown name":         {names: []string{zip}, format: "ldap", says: `unknown format "ldap": use auto, oauth-server`},
		"stdin twice":             {names: []string{"-", "-"}, text: "x", says: "only once"},
		"no stdin":                {names: stdin, says: "no standard input"},
		"carriage returns":        {names: stdin, text: "time,client\r1700000000,a\r", says: `end with a carriage return only, which is not supported: tr '\r' '\n' < FILE |`},
		"bzip2":                   {names: stdin, text: "BZh91AY&SY\x8a", says: "- is a bzip2 archive, which is not supported: bzcat FILE | oauth-server simulate -"},
		"xz":                      {names: stdin, text: "\xfd7zXZ\x00\x00", says: "xzcat FILE |"},
		"UTF-16":                  {names: stdin, text: "\xff\xfet\x00i\x00", says: "- is UTF-16, which is not supported: iconv -f UTF-16 -t UTF-8 FILE |"},
		"UTF-16, big endian":      {names: stdin, text: "\xfe\xff\x00t\x00i", says: "iconv -f UTF-16 -t UTF-8 FILE |"},
		"UTF-16 that is Keycloak": {names: stdin, format: events.Keycloak, text: "\xff\xfet\x00i\x00", says: "is UTF-16"},
		"no table":                {names: stdin, mapping: "client=a,time=b", text: "a line of text\n", says: "unknown format of -: give --format"},
		"no text":                 {names: stdin, mapping: "client=a,time=b", text: "\x00\x01,\x02\n", says: "unknown format of -: give --format"},
		"mapping of okta":         {names: []string{zip}, format: events.Okta, mapping: "client=a", says: "takes no mapping", isAboutItsMapping: true},
		"a missing part":          {names: stdin, format: events.Common, mapping: "client=form", text: "x\n", says: `client: unknown part "form"`, isAboutItsMapping: true},
		"a broken path":           {names: stdin, format: events.JSON, mapping: "client=.a[,time=.b", text: "{}", says: "a bracket is not closed", isAboutItsMapping: true},
		"a column is misspelt":    {names: stdin, mapping: "time=when,client=ap,user=sub", text: table, says: `-: mapping: client: no column "ap" in the first line, which has "when", "app", "sub"`, isAboutItsMapping: true},
		"a column has no name":    {names: stdin, mapping: "time=when", text: table, says: "-: mapping: client is missing: add client=FIELD", isAboutItsMapping: true},
		"many columns":            {names: stdin, mapping: "time=when,client=app", text: strings.Repeat("column,", 40) + "last\n", says: `"column" and 11 more`, isAboutItsMapping: true},
		"semicolons":              {names: stdin, mapping: "time=when,client=ap", text: "when;app\n", says: `which has "when", "app"`, isAboutItsMapping: true},
		"JSON":                    {names: stdin, mapping: "client=.app", text: `{"app":"a"}`, says: "time is missing", isAboutItsMapping: true},
		"JSON, with text before":  {names: stdin, mapping: "client=.app", text: `2026-07-01T00:00:00Z stdout F {"app":"a","b":1}`, says: "time is missing", isAboutItsMapping: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := events.Options{Format: tt.format, Mapping: mapping(t, tt.mapping)}
			if tt.text != "" {
				o.Stdin = strings.NewReader(tt.text)
			}
			_, err := events.Open(tt.names, o)
			check.ErrorSays(t, err, tt.says)
			var wrong *events.MappingError
			check.Equal(t, "is about the mapping", errors.As(err, &wrong), tt.isAboutItsMapping)
		})
	}
	_, err := events.Open(stdin, events.Options{Format: events.CSV, Stdin: strings.NewReader("BZh,time,client\n")})
	check.OK(t, err) // text that only begins like an archive
}

func TestParseMappingRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"client":             `"client" is not key=field`,
		"client=a,client=b":  "duplicate key client",
		"customer=a":         `unknown key "customer": use client, time, user`,
		"==a":                `has no field`,
		"client=.a,,time=.b": `"" is not key=field`,
	} {
		_, err := events.ParseMapping(text)
		check.ErrorSays(t, err, says)
	}
}
