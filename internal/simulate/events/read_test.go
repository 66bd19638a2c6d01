package events_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
