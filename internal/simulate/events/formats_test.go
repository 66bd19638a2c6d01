package events_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
