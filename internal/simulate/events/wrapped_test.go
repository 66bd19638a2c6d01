package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// logins returns events of Keycloak, one per element.
func logins(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(`{"time":%d,"type":"CLIENT_LOGIN","realmId":"r","clientId":"c%d"}`, 1_700_000_000_000+1000*i, i))
	}
	return out
}

// Records are found in every form in which an API or a shipper combines them.
func TestRecordsTogether(t *testing.T) {
	t.Parallel()
	all := logins(50)
	for name, text := range map[string]string{
		"one in a line":                 "{\"value\":[\n" + strings.Join(all, ",\n") + "\n]}\n",
		"one in a line, after a member": "{\"@odata.context\":\"x\",\"records\":[\n" + strings.Join(all, ",\n") + "\n]}\n",
		"all in one line":               `{"entries":[` + strings.Join(all, ",") + `]}`,
		"two answers":                   "{\"value\":[\n" + strings.Join(all[:20], ",\n") + "\n]}\n{\"value\":[\n" + strings.Join(all[20:], ",\n") + "\n]}\n",
		"nothing between them":          strings.Join(all, ""),
		"a blank between them":          strings.Join(all, " ") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := readAll(t, events.Options{Stdin: strings.NewReader(text)}, "-")
			check.Equal(t, "lines", summary(r.Lines()), "50 read, 0 skipped, 0 unread")
		})
	}
}

// A first line that is cut off is one line, whatever comes after it. In a document the rest after an
// invalid value is one line too.
func TestCutOff(t *testing.T) {
	t.Parallel()
	login := logins(1)[0]
	page := `{"value":[` + login + "]}\n"
	for name, tt := range map[string]struct{ text, lines string }{
		"the first line":     {`{"a":"b` + "\n" + strings.Join(logins(3), "\n"), "3 read, 0 skipped, 1 unread: -:1: line: is not valid JSON"},
		"a value":            {"[" + login + ",\n{\"a\":}," + login + "]", "1 read, 0 skipped, 1 unread: -:2: line: is not valid JSON"},
		"the end":            {"[\n" + login + ",\n{\"a\":", "1 read, 0 skipped, 1 unread: -:3: line: is not valid JSON"},
		"the end, of a page": {page + strings.TrimSpace(page[:len(page)-2]), "2 read, 0 skipped, 1 unread: -:2: line: is not valid JSON"},
		"a page of no log":   {page + "\n" + `{"error":{"value":[]}}` + "\n" + page, "2 read, 0 skipped, 1 unread: -:3: line: has no records where the first object has them"},
		"no objects":         {`{"value":[` + login + ",\n7]}", "1 read, 0 skipped, 1 unread: -:2: line: is not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := readAll(t, events.Options{Stdin: strings.NewReader(tt.text)}, "-")
			check.Equal(t, "lines", summary(r.Lines()), tt.lines)
		})
	}
}

// dockered returns lines in the form of Docker's driver json-file.
func dockered(tb testing.TB, lines ...string) string {
	tb.Helper()
	var out strings.Builder
	for _, line := range lines {
		inner, err := json.Marshal(line + "\n")
		check.OK(tb, err)
		_, _ = fmt.Fprintf(&out, `{"log":%s,"stream":"stdout","time":"2026-07-01T00:00:00.000000001Z"}`+"\n", inner)
	}
	return out.String()
}

// The table in the log of a container is read like the original table. Other formats are in
// TestCollected.
func TestDocker(t *testing.T) {
	t.Parallel()
	got, r := readAll(t, events.Options{Stdin: strings.NewReader(dockered(t, "time,client", "1700000000,c"))}, "-")
	check.Equal(t, "format", r.Lines().Files[0].Format, events.CSV)
	check.Equal(t, "unread", r.Lines().Causes, nil)
	check.Equal(t, "requests", got, []string{`2023-11-14T22:13:20Z "c"   `})
}

// A member called log has no special meaning without Docker's other members.
func TestNotDocker(t *testing.T) {
	t.Parallel()
	got, _ := readAll(t, events.Options{Stdin: strings.NewReader(`{"log":"x","client":"c","time":1700000000}` + "\n")}, "-")
	check.Equal(t, "requests", len(got), 1)
}

// Programs that ship the logs of a provider wrap them, or use their own names of members.
func TestWrappers(t *testing.T) {
	t.Parallel()
	const (
		auth0 = `{"log_id":"1","data":{"date":"2026-08-05T19:19:43Z","type":"sertft","client_id":"spa","user_id":"ada","ip":"192.0.2.1","log_id":"1"}}`
		okta  = `{"actor":{"id":"spa","type":"PublicClientApp"},"client":{"ipAddress":"192.0.2.1"},"eventType":"app.oauth2.token.grant.access_token","outcome":{"result":"SUCCESS"},` +
			`"published":"2026-08-05T19:19:43Z","debugContext":{"debugData":{"grantType":"refresh_token"}},"target":[{"id":"ada","type":"User"}]}`
		want = `2026-08-05T19:19:43Z "spa" ada refresh_token  192.0.2.1`
	)
	for name, tt := range map[string]struct {
		format events.Format
		line   string
	}{
		"Auth0 by Amazon EventBridge": {events.Auth0, `{"version":"0","id":"e","detail-type":"Auth0 log","source":"aws.partner/auth0.com/x","time":"2026-08-05T19:19:44Z","detail":` + auth0 + `}`},
		"Auth0 by Azure Event Grid":   {events.Auth0, `{"id":"e","topic":"/t","subject":"auth0","eventType":"Auth0.Log","eventTime":"2026-08-05T19:19:44Z","data":` + auth0 + `,"dataVersion":"1.0"}`},
		"Auth0 by Splunk":             {events.Auth0, `{"time":1785957583,"host":"h","source":"auth0","event":` + auth0 + `}`},
		"Okta by Splunk":              {events.Okta, `{"time":1785957583,"host":"h","source":"okta","event":` + okta + `}`},
		"Entra by PowerShell": {events.Entra, `{"AppId":"spa","CreatedDateTime":"2026-08-05T19:19:43Z","IPAddress":"192.0.2.1","IsInteractive":false,` +
			`"Status":{"ErrorCode":0,"FailureReason":"Other."},"UserId":"ada","ServicePrincipalId":"","AdditionalProperties":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, r := readAll(t, events.Options{Stdin: strings.NewReader(tt.line)}, "-")
			check.Equal(t, "format", r.Lines().Files[0].Format, tt.format)
			check.Equal(t, "requests", got, []string{want})
		})
	}
	failed := `{"AppId":"spa","CreatedDateTime":"2026-08-05T19:19:43Z","Status":{"ErrorCode":50126},"UserId":"ada"}`
	got, _ := readAll(t, events.Options{Stdin: strings.NewReader(failed)}, "-")
	check.Equal(t, "a failure of Entra by PowerShell", got, []string{`2026-08-05T19:19:43Z "spa" ada authorization_code  failed`})
}
