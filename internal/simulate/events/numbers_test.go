package events_test

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

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

// The same holds for the numbers of providers, and for numeric IDs.
func TestFloats(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ line, want string }{
		"this server": {
			`{"time":"2026-07-01T09:00:00Z","level":"INFO","msg":"request","method":"POST","path":"/token","status":200.0,"duration_ms":1e3,"client_id":"c","grant_type":"client_credentials"}`,
			`2026-07-01T08:59:59Z "c"  client_credentials `,
		},
		"entra": {
			`{"AppId":"c","CreatedDateTime":"2026-08-05T19:19:43Z","Status":{"ErrorCode":0.0},"UserId":"u"}`, `2026-08-05T19:19:43Z "c" u authorization_code `,
		},
		"keycloak": {
			`{"time":1.7e12,"type":"REFRESH_TOKEN","realmId":"r","clientId":"c","userId":"u","details":{"access_token_expiration_time":6e1}}`,
			`2023-11-14T22:13:20Z "c" u refresh_token  1m0s`,
		},
		"ids": {`{"time":1.7000000005e9,"client":4622.0,"user":1e3}`, `2023-11-14T22:13:20.5Z "4622" 1000  `},
		"lifetime": {
			`{"time":"1700000000000.0","client":"c","lifetime":"NaN"}`, `2023-11-14T22:13:20Z "c"   `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, r := readAll(t, events.Options{Stdin: strings.NewReader(tt.line)}, "-")
			check.Equal(t, "causes", r.Lines().Causes, nil)
			check.Equal(t, "requests", got, []string{tt.want})
		})
	}
}
