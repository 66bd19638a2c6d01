package events_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/traffic"
)

var update = flag.Bool("update", false, "write what is read to the files that it is compared with")

// show writes a request on one line.
func show(r *traffic.Request) string {
	parts := []string{r.At.Format("2006-01-02T15:04:05.999Z07:00"), fmt.Sprintf("%q", r.Client)}
	for _, p := range []string{r.User, r.Grant, r.Scope} {
		parts = append(parts, strings.ReplaceAll(p, " ", "+"))
	}
	if r.Source.IsValid() {
		parts = append(parts, r.Source.String())
	}
	if r.Lifetime > 0 {
		parts = append(parts, r.Lifetime.String())
	}
	if r.Unknown {
		parts = append(parts, "user unknown")
	}
	if r.Failed {
		parts = append(parts, "failed")
	}
	return strings.Join(parts, " ")
}

// readAll reads logs to their end.
func readAll(tb testing.TB, o events.Options, names ...string) (out []string, r *events.Reader) {
	tb.Helper()
	r, err := events.Open(names, o)
	check.OK(tb, err)
	defer r.Close()
	var q traffic.Request
	for r.Next(&q) {
		out = append(out, show(&q))
	}
	return out, r
}

func mapping(tb testing.TB, text string) events.Mapping {
	tb.Helper()
	m, err := events.ParseMapping(text)
	check.OK(tb, err)
	return m
}

// The lines are made up. Their fields are after
//   - keycloak.log: the chapter Auditing user events of https://www.keycloak.org/docs/latest/server_admin/, and
//     JBossLoggingEventListenerProvider of Keycloak's sources, of which older ones do not quote values
//   - keycloak.jsonl: https://datagems-eosc.github.io/dg-aai/latest/logging and
//     https://uds.defenseunicorns.com/reference/configuration/single-sign-on/notifications-and-alerts
//   - keycloak-events.json: EventRepresentation of Keycloak's sources
//   - auth0.jsonl: https://auth0.com/docs/deploy-monitor/logs/log-event-type-codes and pages below
//     https://auth0.com/docs/tenant-logs/; how a stream wraps them is after tests of Elastic's integration
//   - okta.json: tests of Airbyte's connector and of Elastic's integration, not a page of Okta
//   - entra.jsonl: tests of Elastic's integration, and the columns of
//     https://learn.microsoft.com/en-us/azure/azure-monitor/reference/tables/aadserviceprincipalsigninlogs
//   - entra-graph.json: the properties of https://learn.microsoft.com/en-us/graph/api/resources/signin
//   - combined.log: no page
func TestFormats(t *testing.T) {
	t.Parallel()
	for file, tt := range map[string]struct {
		mapping string
		format  events.Format
	}{
		"oauth-server.log":     {"", events.OAuthServer},
		"oauth-server.jsonl":   {"", events.OAuthServer},
		"keycloak.log":         {"", events.Keycloak},
		"keycloak.jsonl":       {"", events.Keycloak},
		"keycloak-events.json": {"", events.Keycloak},
		"auth0.jsonl":          {"", events.Auth0},
		"okta.json":            {"", events.Okta},
		"entra.jsonl":          {"", events.Entra},
		"entra-graph.json":     {"", events.Entra},
		"combined.log":         {"", events.Combined},
		"table.csv":            {"time=when,client=app,user=person,grant=kind,status=result,source=from", events.CSV},
		"mapped.jsonl": {
			".event==token_issued,time=.ts,client=.oauth.client,grant=.oauth.grant,user=.sub,source=.net[kind=peer].ip,lifetime=.ttl",
			events.JSON,
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", file)
			got, r := readAll(t, events.Options{Mapping: mapping(t, tt.mapping)}, path)
			check.Equal(t, "format", r.Lines().Files[0].Format, tt.format)
			all := strings.Join(append(got, summary(r.Lines())), "\n") + "\n"
			if *update {
				check.OK(t, os.WriteFile(path+".want", []byte(all), 0o600))
			}
			want, err := os.ReadFile(path + ".want")
			check.OK(t, err)
			check.Equal(t, "requests", all, string(want))
		})
	}
}

// summary writes the counts of the lines.
func summary(l traffic.Lines) string {
	out := fmt.Sprintf("%d read, %d skipped, %d unread", l.Read, l.Skipped, l.Unread)
	for i, c := range l.Causes {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		c.First = filepath.Base(c.First)
		out += sep + c.String()
	}
	return out
}

// logCase is a log, and what is read of it.
type logCase struct {
	format  events.Format // that is detected; empty: not compared
	o       events.Options
	mapping string
	text    string
	want    []string // the requests, as shown
	lines   string   // empty: all were read
}

func readCases(t *testing.T, cases map[string]logCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.o.Stdin == nil {
				tt.o.Stdin = strings.NewReader(tt.text)
			}
			tt.o.Mapping = mapping(t, tt.mapping)
			got, r := readAll(t, tt.o, "-")
			if tt.format != "" {
				check.Equal(t, "format", r.Lines().Files[0].Format, tt.format)
			}
			check.Equal(t, "requests", got, tt.want)
			if tt.lines == "" {
				tt.lines = fmt.Sprintf("%d read, 0 skipped, 0 unread", len(tt.want))
			}
			check.Equal(t, "lines", summary(r.Lines()), tt.lines)
		})
	}
}

// row is a request of a table at a second after [csvOf]'s first, as shown.
func row(second int, client string) string {
	return fmt.Sprintf("%s %q   ", time.Unix(1_700_000_000+int64(second), 0).UTC().Format(time.RFC3339), client)
}

func rows(seconds ...int) (all []string) {
	for i, s := range seconds {
		all = append(all, row(s, fmt.Sprint("c", i)))
	}
	return all
}

// logins returns events of Keycloak, one per element, and what is read of them.
func logins(n int) (lines, want []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"time":%d,"type":"CLIENT_LOGIN","realmId":"r","clientId":"c%d"}`, 1_700_000_000_000+1000*i, i))
		want = append(want, strings.TrimSpace(row(i, fmt.Sprint("c", i)))+"  client_credentials ")
	}
	return lines, want
}

// TestWhole: requests are put in order, and what cannot be read is counted by its cause, the most
// frequent first.
func TestWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	all, read := logins(3)
	const zones = "time,client\n2026-07-01 12:00:00,a\n2026-07-01T12:00:00Z,b\n2026-07-01T12:00:00+05:30,c\n2026-01-01 12:00:00,d\n"
	at := func(times ...string) (all []string) {
		for _, t := range times {
			at, client, _ := strings.Cut(t, " ")
			all = append(all, fmt.Sprintf("%s %q   ", at, client))
		}
		return all
	}
	readCases(t, map[string]logCase{
		"out of order": {text: csvOf(3, 1, 2, 1, 5), want: []string{row(1, "c1"), row(1, "c3"), row(2, "c2"), row(3, "c0"), row(5, "c4")}, lines: "5 read, 1 skipped, 0 unread"},
		"an error": {
			o: events.Options{Stdin: failingReader{strings.NewReader(csvOf(1, 2) + "3,half a li")}}, want: rows(1, 2),
			lines: "2 read, 1 skipped, 1 unread: -:4: file: cannot be read further",
		},
		"an error in a document": {
			o: events.Options{Stdin: failingReader{strings.NewReader("[" + all[0] + ",\n" + all[1][:20])}}, want: read[:1],
			lines: "1 read, 0 skipped, 1 unread: -:2: file: cannot be read further",
		},
		"long lines": {
			text: csvOf(1) + long + "\n1700000002,c1\n1700000003," + long, want: rows(1, 2), lines: "2 read, 1 skipped, 2 unread: -:3: line: is longer than 1 MiB",
		},
		"a long value": {
			text: "[\n" + all[0] + ",\n{\"a\":\"" + long + "\"},\n" + all[1] + "]", want: read[:2], lines: "2 read, 0 skipped, 1 unread: -:3: line: is longer than 1 MiB",
		},
		"a long value of many lines": {
			o: events.Options{Format: events.Keycloak}, text: "{\n\"a\": [" + strings.Repeat("1,\n", 2<<20) + "1]}" + all[0], want: read[:1],
			lines: "1 read, 0 skipped, 1 unread: -:1: line: is longer than 1 MiB",
		},
		"causes": {
			text: "time,client\n\"x\nnoon,a\n1700000001,c0\nnight,a\n", want: rows(1),
			lines: "1 read, 1 skipped, 3 unread: -:3: time: is not a time with a date; -:2: line: has an unclosed quoted column",
		},
		"UTC": {
			text: zones, want: at("2026-01-01T12:00:00Z d", "2026-07-01T06:30:00Z c", "2026-07-01T12:00:00Z a", "2026-07-01T12:00:00Z b"), lines: "4 read, 1 skipped, 0 unread",
		},
		"a fixed zone": {
			o: events.Options{Zone: time.FixedZone("", -2*3600)}, text: zones,
			want: at("2026-01-01T14:00:00Z d", "2026-07-01T06:30:00Z c", "2026-07-01T12:00:00Z b", "2026-07-01T14:00:00Z a"), lines: "4 read, 1 skipped, 0 unread",
		},
		"summer time": {
			o: events.Options{Zone: mustLoad(t, "Europe/Berlin")}, text: zones,
			want: at("2026-01-01T11:00:00Z d", "2026-07-01T06:30:00Z c", "2026-07-01T10:00:00Z a", "2026-07-01T12:00:00Z b"), lines: "4 read, 1 skipped, 0 unread",
		},
		"no user": {
			text: `192.0.2.3 - - [10/Oct/2025:20:55:39 +0000] "POST /token HTTP/1.1" 200 912`, lines: "0 read, 0 skipped, 1 unread: -:1: client (field user): is missing",
		},
		"no mapped time": {
			mapping: "time=when,client=client", text: "when,client\nnoon,a", lines: "0 read, 1 skipped, 1 unread: -:2: time (field when): is not a time with a date",
		},
		"text after a number": {
			mapping: "time=when,client=client", text: "when,client\n1700000000.1234567891x,a\n-0.5,a\n1700000000.0000000001,c0",
			want: rows(0), lines: "1 read, 1 skipped, 2 unread: -:2: time (field when): is not a time with a date",
		},
		"no time": {mapping: "time=.time,client=.client", text: `{"client":"a"}`, lines: "0 read, 0 skipped, 1 unread: -:1: .time: is missing"},
	})
}

// TestFloats: numbers and numeric IDs can be written as floats by programs without integers.
func TestFloats(t *testing.T) {
	t.Parallel()
	readCases(t, map[string]logCase{
		"this server": {
			text: `{"time":"2026-07-01T09:00:00Z","level":"INFO","msg":"request","method":"POST","path":"/token","status":200.0,"duration_ms":1e3,"client_id":"c","grant_type":"client_credentials"}`,
			want: []string{`2026-07-01T08:59:59Z "c"  client_credentials `},
		},
		"entra": {
			text: `{"AppId":"c","CreatedDateTime":"2026-08-05T19:19:43Z","Status":{"ErrorCode":0.0},"UserId":"u"}`, want: []string{`2026-08-05T19:19:43Z "c" u authorization_code `},
		},
		"keycloak": {
			text: `{"time":1.7e12,"type":"REFRESH_TOKEN","realmId":"r","clientId":"c","userId":"u","details":{"access_token_expiration_time":6e1}}`,
			want: []string{`2023-11-14T22:13:20Z "c" u refresh_token  1m0s`},
		},
		"ids":      {text: `{"time":1.7000000005e9,"client":4622.0,"user":1e3}`, want: []string{`2023-11-14T22:13:20.5Z "4622" 1000  `}},
		"lifetime": {text: `{"time":"1700000000000.0","client":"c0","lifetime":"NaN"}`, want: rows(0)},
	})
}

// A status is recognised in every notation: as a number, as a float by programs without integers,
// as text, or with its reason.
func TestStatus(t *testing.T) {
	t.Parallel()
	const ok, failed = "", " failed"
	for status, want := range map[string]string{
		"200": ok, "200.0": ok, "200.000": ok, "200 OK": ok, "HTTP/1.1 200 OK": ok, " 200 ": ok, "+200": ok, "200-OK": ok, "200: done": ok, "200.5": ok, "2xx": ok, "3XX": ok, "": ok, "NaN": ok, "0.0": ok,
		"429": ok, "429.0": ok, "429 Too Many Requests": ok,
		"401": failed, "401.0": failed, "401 Unauthorized": failed, "HTTP/2 503": failed, "401-Unauthorized": failed, "4xx": failed, "xxx": failed, "-1": failed, "2000-1": failed, "200x": failed, "denied": failed, "17": failed,
	} {
		for name, text := range map[string]string{
			"csv":      "time;client;status\n1700000000;c;" + status,
			"json":     fmt.Sprintf(`{"time":1700000000,"client":"c","status":%q}`, status),
			"a number": fmt.Sprintf(`{"time":1700000000,"client":"c","status":%s}`, status),
		} {
			if name == "a number" && (status == "" || strings.Trim(status, "0123456789.eE") != "") {
				continue
			}
			got, _ := readAll(t, events.Options{Stdin: strings.NewReader(text)}, "-")
			check.Equal(t, name+" "+status, got, []string{`2023-11-14T22:13:20Z "c"   ` + want})
		}
	}
}

// TestPage: each block of log lines on the page is recognised as the named format, with the --map
// of the block before it. The result must be the next block.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/simulate.md")
	check.OK(t, err)
	blocks := regexp.MustCompile("(?s)\n```([^\n]*)\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	seen := map[events.Format]bool{}
	for i, b := range blocks {
		format, isLog := strings.CutPrefix(b[1], "log ")
		if !isLog {
			continue
		}
		seen[format] = true
		var o events.Options
		if m := regexp.MustCompile(`--map '([^']+)'`).FindStringSubmatch(blocks[i-1][2]); m != nil {
			o.Mapping = mapping(t, m[1])
		}
		o.Stdin = strings.NewReader(b[2])
		check.Equal(t, "requests of "+format, asTable(t, o, format), blocks[i+1][2])
	}
	for _, f := range events.Formats() {
		if f != events.Auto && f != events.Common && !seen[f] {
			t.Errorf("no example of %s", f)
		}
	}
}

// asTable reads a log and formats it as the page does.
func asTable(t *testing.T, o events.Options, format events.Format) string {
	t.Helper()
	r, err := events.Open([]string{"-"}, o)
	check.OK(t, err)
	defer r.Close()
	check.Equal(t, "format", r.Lines().Files[0].Format, format)
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "time\tclient\tuser\tgrant\tsource")
	var q traffic.Request
	for r.Next(&q) {
		failed := ""
		if q.Failed {
			failed = "\tfailed"
		}
		user := q.User
		if q.Unknown {
			user = "(unknown)"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n", q.At.Format("2006-01-02T15:04:05.999Z07:00"), q.Client, user, q.Grant, q.Source, failed)
	}
	check.OK(t, w.Flush())
	l := r.Lines()
	_, _ = fmt.Fprintf(&out, "%d read, %d skipped, %d unread", l.Read, l.Skipped, l.Unread)
	for _, c := range l.Causes {
		_, _ = fmt.Fprintf(&out, ": %s: %s", c.Field, c.Problem)
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

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
		"no file":                 {names: []string{dir + "/none"}, says: "no such file"},
		"a directory":             {names: []string{dir}, says: "is a directory"},
		"the second file":         {names: []string{"testdata/okta.json", zip}, says: "zip is a zip archive, which is not supported: unzip -p FILE | oauth-server simulate -"},
		"stdin twice":             {names: []string{"-", "-"}, text: "x", says: "only once"},
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

// A cell can have line breaks. Text inside it is not a record. Text that only looks like such a
// cell is not a cell.
func TestCellsWithLineBreaks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text    string
		clients string
		lines   string
	}{
		"behind what is needed": {"time,client,agent\n1700000000,a,\"curl\n1700000000,ghost,x\"\n1700000001,b,curl\n", "a b", "2 read, 1 skipped, 0 unread"},
		"before it":             {"agent,time,client\n\"x\n1,2,3\n\n\"\"y\"\"\",1700000000,a\n\"\",1700000001,b\n", "a b", "2 read, 1 skipped, 0 unread"},
		"in a client":           {"time,client\n1700000000,\"a\nb\"\n", "a\nb", "1 read, 1 skipped, 0 unread"},
		"carriage returns":      {"time;client;agent\r\n1700000000;a;\"curl\r\n1700000000;ghost;x\"\r\n1700000001;b;c\r\n", "a b", "2 read, 1 skipped, 0 unread"},
		"tabs":                  {"time\tclient\tagent\n1700000000\ta\t\"curl\n1700000000\tghost\tx\"", "a", "1 read, 1 skipped, 0 unread"},
		"in a name":             {"time,\"the\nagent\",client\n1700000000,x,a\n", "a", "1 read, 1 skipped, 0 unread"},
		"in several cells":      {"time,client,a,b\n1700000000,a,\"\n\",\"\n\n\"\n1700000001,b,,\n", "a b", "2 read, 1 skipped, 0 unread"},
		"a quote that is open":  {"time,client\n1700000000,\"a\n1700000001,b\n", "b", "1 read, 1 skipped, 1 unread: -:2: line: has an unclosed quoted column"},
		"two that are open": {
			"time,client\n1700000000,\"a\n1700000001,b\n1700000001,\"c\n", "b",
			"1 read, 1 skipped, 2 unread: -:2: line: has an unclosed quoted column",
		},
		"too many columns": {
			"time,client,agent\n1700000000,a,\"x\n1700000001,b,\",y\n1700000002,c,y\n", "c",
			"1 read, 1 skipped, 2 unread: -:2: line: has an unclosed quoted column",
		},
		"a quote in a cell":          {"time,client\n1700000000,5\" a\n1700000001,b\n", "5\" a b", "2 read, 1 skipped, 0 unread"},
		"spaces before quotes":       {"time, \"client\", agent\n1700000000, \"a, \"\"b\"\"\", \"x\n1,2,3\"\n1700000001, \"c\",x\n", "a, \"b\" c", "2 read, 1 skipped, 0 unread"},
		"the line of what is unread": {"time,client,agent\n1700000000,a,\"\n\n\"\nnoon,b,c\n", "a", "1 read, 1 skipped, 1 unread: -:5: time: is not a time with a date"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openText(t, tt.text, events.Options{Mapping: mapping(t, "time=time,client=client")})
			check.Equal(t, "clients", strings.Join(clientsOf(r), " "), tt.clients)
			check.Equal(t, "lines", summary(r.Lines()), tt.lines)
		})
	}
}

// A record can be as long as the longest line, and no longer.
func TestLongCells(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{
		1000 << 10: "2 read, 1 skipped, 0 unread",
		1100 << 10: "1 read, 1 skipped, 10001 unread: -:3: line: has too few columns; -:2: line: has an unclosed quoted column",
	} {
		cell := strings.Repeat(strings.Repeat("x", size/10_000)+"\n", 10_000)
		r := openText(t, "time,client,agent\n1700000000,\"a"+cell+"\",x\n1700000001,b,x\n", events.Options{Mapping: mapping(t, "time=time,client=client")})
		clientsOf(r)
		check.Equal(t, "lines", summary(r.Lines()), want)
	}
}

// Unclosed quotes do not cause the rest of the log to be read again for each of them.
func TestStrayQuotesAreCheap(t *testing.T) {
	t.Parallel()
	r := openText(t, "time,client\n"+strings.Repeat("a\",\"c\n", 100_000)+"1700000001,b\n", events.Options{})
	check.Equal(t, "clients", clientsOf(r), []string{"b"})
}

// Formats of web servers differ in the text before the time. The client is the user of the line. If
// the user is uncertain, the line is unread.
func TestWebColumns(t *testing.T) {
	t.Parallel()
	const shifted = "user: is ambiguous among the columns before the time"
	for before, want := range map[string]string{ // client and source, or a problem
		`192.0.2.7 - batch`:                                    `"batch" 192.0.2.7`,
		`192.0.2.7, 10.0.0.1 - batch`:                          `"batch" 192.0.2.7`,
		`192.0.2.7,10.0.0.1,10.0.0.2 - batch`:                  `"batch" 192.0.2.7`,
		`192.0.2.7, 10.0.0.1, 10.0.0.2 - -`:                    "client (field user): is missing",
		`"192.0.2.7, 10.0.0.1" - batch`:                        `"batch" 192.0.2.7`,
		`192.0.2.7 , 10.0.0.1 - batch`:                         `"batch" 192.0.2.7`,
		`unknown, 10.0.0.1 - batch`:                            `"batch" `,
		`- - batch`:                                            `"batch" `,
		`192.0.2.7:4711 - batch`:                               `"batch" 192.0.2.7`,
		`[2001:db8::7]:4711, 10.0.0.1 - batch`:                 `"batch" 2001:db8::7`,
		`2001:db8::7 - batch`:                                  `"batch" 2001:db8::7`,
		`[2001:db8::7] - batch`:                                `"batch" 2001:db8::7`,
		`::ffff:192.0.2.7 - batch`:                             `"batch" 192.0.2.7`,
		`id.example.com:443 192.0.2.7 - batch`:                 `"batch" 192.0.2.7`,
		`id.example.com:443 192.0.2.7 - -`:                     "client (field user): is missing",
		`id.example.com 192.0.2.7, 10.0.0.1 - batch`:           `"batch" 192.0.2.7`,
		`id.example.com:443 pc7.example.net - batch`:           `"batch" `,
		`id.example.com [2001:db8::7]:4711 - batch`:            `"batch" 2001:db8::7`,
		`pc7.example.net - batch`:                              `"batch" `,
		`192.0.2.7 10.0.0.1 - batch`:                           `"batch" 192.0.2.7`,
		`192.0.2.7 - - batch`:                                  `"batch" 192.0.2.7`,
		`192.0.2.7 - [192.0.2.7] - batch`:                      `"batch" 192.0.2.7`,
		`192.0.2.7 - [192.0.2.7] - -`:                          "client (field user): is missing",
		`web-1  | 192.0.2.7 - batch`:                           `"batch" 192.0.2.7`,
		`<190>Oct 10 13:55:36 lb nginx: 192.0.2.7 - batch`:     `"batch" 192.0.2.7`,
		`2025-10-10T13:55:36Z 192.0.2.7 - batch`:               `"batch" 192.0.2.7`,
		`192.0.2.7 ident batch`:                                `"batch" 192.0.2.7`,
		`192.0.2.7 - my client`:                                `"my client" 192.0.2.7`,
		`192.0.2.7 - "my client"`:                              `"my client" 192.0.2.7`,
		`192.0.2.7 - Smith, Ada`:                               `"Smith, Ada" 192.0.2.7`,
		`192.0.2.7 - my\x20\x22client\x22`:                     `"my \"client\"" 192.0.2.7`,
		`192.0.2.7 - my\"cl\\ient`:                             `"my\"cl\\ient" 192.0.2.7`,
		`192.0.2.7 - a\ient`:                                   `"a\\ient" 192.0.2.7`,
		`192.0.2.7 - "we\"b"`:                                  `"we\"b" 192.0.2.7`,
		`192.0.2.7 - a [b] c`:                                  `"a [b] c" 192.0.2.7`,
		`192.0.2.7 - 10.1.2.3`:                                 `"10.1.2.3" 192.0.2.7`,
		`192.0.2.7 - ""`:                                       "client (field user): is missing",
		`192.0.2.7 - "-"`:                                      "client (field user): is missing",
		`192.0.2.7 - batch -`:                                  shifted,
		`192.0.2.7 - batch 10.0.0.1`:                           shifted,
		`192.0.2.7 - batch 10.0.0.1, 10.0.0.2`:                 shifted,
		`192.0.2.7 - batch 10.0.0.1 - x`:                       shifted,
		`192.0.2.7 - 10.0.0.1 x`:                               shifted,
		`id.example.com 192.0.2.7 req-1 batch`:                 shifted,
		`web-1 | pc7.example.net - batch`:                      `"batch" `,
		`192.0.2.7 - a" [10/Oct/2025:13:55:36 +0000] "b`:       "line: is not in the combined log format",
		`192.0.2.7 -`:                                          "line: is not in the combined log format",
		`192.0.2.7 - x [10/Oct/2025:13:55:36 +0000] - batch`:   shifted,
		strings.Repeat("x ", 40) + `192.0.2.7 - batch`:         `"batch" 192.0.2.7`,
		`192.0.2.7 - batch [10/Oct/2025:13:55:36 +0000] or so`: `"batch [10/Oct/2025:13:55:36 +0000] or so" 192.0.2.7`,
	} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			line := before + ` [10/Oct/2025:13:55:36.5 -0700] "POST /oauth2/token HTTP/1.1" 200 912 "-" "curl/8.5"`
			got, r := readAll(t, events.Options{Format: events.Combined, Stdin: strings.NewReader(line)}, "-")
			if len(got) == 0 {
				check.Equal(t, "lines", summary(r.Lines()), "0 read, 0 skipped, 1 unread: -:1: "+want)
				return
			}
			client, source, _ := strings.Cut(want, `" `)
			check.Equal(t, "read", strings.TrimSpace(got[0]), strings.TrimSpace("2025-10-10T20:55:36.5Z "+client+`"    `+source))
		})
	}
}

// Unclosed brackets do not cause the rest of a line to be searched again for each of them.
func TestStrayBracketsAreCheap(t *testing.T) {
	t.Parallel()
	const request = `192.0.2.1 - c [10/Oct/2025:20:55:36 +0000] "POST /token HTTP/1.1" 200 9` + "\n"
	r := openText(t, request+strings.Repeat(strings.Repeat(` [`, 400_000)+"]\n", 20), events.Options{})
	check.Equal(t, "clients", clientsOf(r), []string{"c"})
	check.Equal(t, "lines", summary(r.Lines()), "1 read, 0 skipped, 20 unread: -:2: line: is not in the common log format")
}
