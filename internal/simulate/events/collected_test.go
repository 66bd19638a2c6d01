package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// quote returns a text in JSON.
func quote(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a text has no error
	}
	return strings.TrimSpace(out.String())
}

// collectors convert a program's line to the form in which it is collected. The time of that form
// is not the time of the event.
var collectors = map[string]func(line string) string{
	"none": func(line string) string { return line },
	"Docker": func(line string) string {
		return `{"log":` + quote(line+"\n") + `,"stream":"stdout","time":"2030-01-01T00:00:00.5Z"}`
	},
	"a container runtime": func(line string) string { return `2030-01-01T00:00:00.123456789Z stdout F ` + line },
	"Filebeat": func(line string) string {
		return `{"@timestamp":"2030-01-01T00:00:00Z","type":"log","message":` + quote(line) + `,"log":{"offset":7,"file":{"path":"/x"}},"agent":{"type":"filebeat"}}`
	},
	"Filebeat, of Docker": func(line string) string {
		return `{"@timestamp":"2030-01-01T00:00:00Z","message":` + quote(`{"log":`+quote(line+"\n")+`,"stream":"stderr","time":"2030-01-01T00:00:00Z"}`) + `}`
	},
	"Elastic, as answered": func(line string) string {
		return `{"_index":"x","_id":"1","_source":{"@timestamp":"2030-01-01T00:00:00Z","message":` + quote(line) + `}}`
	},
	"Fluent Bit": func(line string) string {
		return `{"date":1893456000.5,"log":` + quote(line) + `,"kubernetes":{"pod_name":"kc-0"}}`
	},
	"Fluentd": func(line string) string {
		return "2030-01-01T00:00:00+00:00\tkube.kc\t" + `{"stream":"stdout","log":` + quote(line+"\n") + `}`
	},
	"Fluentd, forwarded": func(line string) string { return `[1893456000,{"log":` + quote(line) + `}]` },
	"Vector": func(line string) string {
		return `{"file":"/x","host":"h","message":` + quote(line) + `,"source_type":"file","timestamp":"2030-01-01T00:00:00Z"}`
	},
	"Logstash": func(line string) string {
		return `{"@version":"1","@timestamp":"2030-01-01T00:00:00Z","event":{"original":"x"},"message":` + quote(line) + `}`
	},
	"Google Cloud": func(line string) string {
		return `{"insertId":"i","receiveTimestamp":"2030-01-01T00:00:01Z","resource":{"type":"k8s_container","labels":{}},"severity":"INFO","textPayload":` + quote(line+"\n") + `,"timestamp":"2030-01-01T00:00:00Z"}`
	},
	"Google Cloud, parsed": func(line string) string {
		return `{"insertId":"i","jsonPayload":{"message":` + quote(line) + `},"timestamp":"2030-01-01T00:00:00Z"}`
	},
	"journald": func(line string) string {
		return `{"__REALTIME_TIMESTAMP":"1893456000000000","_HOSTNAME":"h","PRIORITY":"6","MESSAGE":` + quote(line) + `}`
	},
	"journald, as bytes": func(line string) string {
		return `{"MESSAGE":[` + strings.Trim(strings.ReplaceAll(fmt.Sprintf("%d", []byte(line)), " ", ","), "[]") + `],"__REALTIME_TIMESTAMP":"1893456000000000"}`
	},
	"journald, as text": func(line string) string { return "2030-01-01T00:00:00+0000 host kc.sh[7]: " + line },
	"logcli, as JSON": func(line string) string {
		return `{"labels":{"app":"kc"},"line":` + quote(line) + `,"timestamp":"2030-01-01T00:00:00Z"}`
	},
	"logcli, as text":     func(line string) string { return `2030-01-01T00:00:00Z {app="kc", pod="kc-0"} ` + line },
	"Loki, a pair":        func(line string) string { return `["1893456000000000000",` + quote(line) + `]` },
	"Loki, with metadata": func(line string) string { return `["1893456000000000000",` + quote(line) + `,{"level":"debug"}]` },
	"Splunk": func(line string) string {
		return `{"time":1893456000,"host":"h","source":"x","event":` + quote(line) + `}`
	},
	"Splunk, exported": func(line string) string {
		return `{"preview":false,"result":{"_raw":` + quote(line) + `,"_time":"2030-01-01T00:00:00Z"}}`
	},
	"CloudWatch": func(line string) string { return `{"id":"3","timestamp":1893456000000,"message":` + quote(line) + `}` },
	"CloudWatch Insights": func(line string) string {
		return `{"@timestamp":"2030-01-01 00:00:00.000","@message":` + quote(line) + `}`
	},
	"OpenTelemetry": func(line string) string {
		return `{"timeUnixNano":"1893456000000000000","body":{"stringValue":` + quote(line) + `}}`
	},
	"Graylog": func(line string) string {
		return `{"version":"1.1","host":"h","short_message":` + quote(line) + `,"timestamp":1893456000.5,"level":6}`
	},
	"Datadog": func(line string) string {
		return `{"id":"x","content":{"timestamp":"2030-01-01T00:00:00Z","message":` + quote(line) + `}}`
	},
	"Azure": func(line string) string {
		return `{"TimeGenerated":"2030-01-01T00:00:00Z","LogMessage":` + quote(line) + `,"ContainerName":"kc"}`
	},
}

// TestCollected: however a line was collected, it is read like the original line, at its own time.
func TestCollected(t *testing.T) {
	t.Parallel()
	for format, tt := range map[string]struct {
		line, want string
		format     events.Format
	}{
		"keycloak": {
			`2026-03-02 09:00:00,000 DEBUG [org.keycloak.events] (executor-thread-1) type="REFRESH_TOKEN", realmId="r", clientId="a \"b\" {c}", userId="ü", ipAddress="192.0.2.1", grant_type="refresh_token"`,
			`2026-03-02T09:00:00Z "a \"b\" {c}" ü refresh_token  192.0.2.1`, events.Keycloak,
		},
		"keycloak JSON": {
			`{"timestamp":"2026-03-02T10:00:00+01:00","loggerName":"org.keycloak.events","level":"DEBUG","message":"type=\"REFRESH_TOKEN\", realmId=\"r\", clientId=\"a\", userId=\"null\"","mdc":{}}`,
			`2026-03-02T09:00:00Z "a"  refresh_token `, events.Keycloak,
		},
		"keycloak ECS": {
			`{"@timestamp":"2026-03-02T09:00:00Z","log.logger":"org.keycloak.events","message":"type=\"REFRESH_TOKEN\", realmId=\"r\", clientId=\"a\"","ecs.version":"1.2.0"}`,
			`2026-03-02T09:00:00Z "a"  refresh_token `, events.Keycloak,
		},
		"keycloak event": {
			`{"time":1772442000000,"type":"REFRESH_TOKEN","realmId":"r","clientId":"a","details":{"grant_type":"refresh_token"}}`,
			`2026-03-02T09:00:00Z "a"  refresh_token `, events.Keycloak,
		},
		"this server": {
			`time=2026-03-02T09:00:00Z level=INFO msg=request method=POST path=/token status=200 duration_ms=0 remote=192.0.2.1 grant_type=refresh_token client_id="a \"b" user_hash=x`,
			`2026-03-02T09:00:00Z "a \"b" x refresh_token  192.0.2.1`, events.OAuthServer,
		},
		"this server, plain": {
			`time=2026-03-02T09:00:00Z level=INFO msg=request method=POST path=/token status=200 duration_ms=0 grant_type=refresh_token client_id=a user_hash=x`,
			`2026-03-02T09:00:00Z "a" x refresh_token `, events.OAuthServer,
		},
		"this server, JSON": {
			`{"time":"2026-03-02T09:00:00Z","level":"INFO","msg":"request","method":"POST","path":"/token","status":200,"duration_ms":0,"client_id":"a","grant_type":"client_credentials"}`,
			`2026-03-02T09:00:00Z "a"  client_credentials `, events.OAuthServer,
		},
		"auth0": {
			`{"log_id":"1","data":{"date":"2026-03-02T09:00:00Z","type":"sertft","client_id":"a","user_id":"u","log_id":"1"}}`,
			`2026-03-02T09:00:00Z "a" u refresh_token `, events.Auth0,
		},
		"entra": {
			`{"time":"2026-03-02T09:30:00Z","category":"NonInteractiveUserSignInLogs","properties":{"createdDateTime":"2026-03-02T09:00:00Z","userId":"u","appId":"a"}}`,
			`2026-03-02T09:00:00Z "a" u refresh_token `, events.Entra,
		},
		"combined": {
			`192.0.2.1 - a [02/Mar/2026:09:00:00 +0000] "POST /token HTTP/1.1" 200 9 "-" "curl {x}"`,
			`2026-03-02T09:00:00Z "a"    192.0.2.1`, events.Combined,
		},
		"json": {`{"time":"2026-03-02T09:00:00Z","client":"a"}`, `2026-03-02T09:00:00Z "a"   `, events.JSON},
	} {
		for name, collect := range collectors {
			if name == "logcli, as text" && tt.line[0] == '{' {
				continue // the line itself cannot be recognised among the objects
			}
			t.Run(format+" by "+name, func(t *testing.T) {
				t.Parallel()
				line := collect(tt.line)
				for text, n := range map[string]int{line: 1, line + "\n" + line + "\n": 2, "[" + line + ",\n" + line + "]": 2} {
					if text[0] == '[' && line[0] != '{' {
						continue
					}
					got, r := readAll(t, events.Options{Stdin: strings.NewReader(text)}, "-")
					check.Equal(t, "format", r.Lines().Files[0].Format, tt.format)
					check.Equal(t, "causes", r.Lines().Causes, nil)
					check.Equal(t, "requests", len(got), n)
					check.Equal(t, "request", got[0], tt.want)
				}
			})
		}
	}
}

// A mapping applies to the line of the program, or else to the line as collected.
func TestCollectedByMapping(t *testing.T) {
	t.Parallel()
	inner := `{"what":"issued","at":"2026-03-02T09:00:00Z","app":{"id":"a"}}`
	for name, collect := range collectors {
		if name == "logcli, as text" {
			continue
		}
		got, r := readAll(t, events.Options{
			Mapping: mapping(t, ".what==issued,time=.at,client=.app.id"), Stdin: strings.NewReader(collect(inner) + "\n" + collect(strings.Replace(inner, "issued", "revoked", 1))),
		}, "-")
		check.Equal(t, name, got, []string{`2026-03-02T09:00:00Z "a"   `})
		check.Equal(t, name, summary(r.Lines()), "1 read, 1 skipped, 0 unread")
	}
}

// Other changes of collectors to a line are undone as well, or reported.
func TestCollectedOtherwise(t *testing.T) {
	t.Parallel()
	const (
		pairs                 = `type=\"CLIENT_LOGIN\", realmId=\"r\", clientId=\"a\", grant_type=\"client_credentials\"`
		nine, collected, noon = "2026-03-02T09:00:00Z", "2030-01-01T00:00:00Z", "2026-03-02T12:00:00Z"
		local, later          = "2026-03-02 09:00:00,000", "2026-03-02T09:00:01Z"
		auth0                 = `{"log_id":"1","data":{"date":"2026-08-05T19:19:43Z","type":"sertft","client_id":"spa","user_id":"ada","ip":"192.0.2.1","log_id":"1"}}`
		okta                  = `{"actor":{"id":"spa","type":"PublicClientApp"},"client":{"ipAddress":"192.0.2.1"},"eventType":"app.oauth2.token.grant.access_token","outcome":{"result":"SUCCESS"},` +
			`"published":"2026-08-05T19:19:43Z","debugContext":{"debugData":{"grantType":"refresh_token"}},"target":[{"id":"ada","type":"User"}]}`
	)
	spa := []string{`2026-08-05T19:19:43Z "spa" ada refresh_token  192.0.2.1`}
	keycloak := func(at, client string) string {
		return at + ` DEBUG [org.keycloak.events] (executor-thread-1) type="CLIENT_LOGIN", realmId="r", clientId="` + client + `"`
	}
	pair := func(at int, client string) string {
		return fmt.Sprintf(`["%d000000000",%s]`, 1893456000+at, quote(keycloak(fmt.Sprintf("2026-03-02 09:00:%02d,000", at), client)))
	}
	request := func(at, client string) string { return fmt.Sprintf("%s %q  client_credentials ", at, client) }
	wrap := func(line string) string { return `{"message":` + quote(line) + `}` }
	readCases(t, map[string]logCase{
		"time taken out, Google Cloud": {
			format: events.Keycloak, text: `{"jsonPayload":{"loggerName":"org.keycloak.events","message":"` + pairs + `"},"timestamp":"` + noon + `","receiveTimestamp":"` + collected + `"}`,
			want: []string{request(noon, "a")},
		},
		"time taken out, of this server": {
			format: events.OAuthServer, text: `{"jsonPayload":{"level":"INFO","msg":"request","method":"POST","path":"/token","status":200.0,"duration_ms":0.0,"client_id":"a","grant_type":"client_credentials"},"timestamp":"` + noon + `"}`,
			want: []string{request(noon, "a")},
		},
		"time taken out, of a container": {
			format: events.Keycloak, text: noon + ` stdout F [org.keycloak.events] type="CLIENT_LOGIN", realmId="r", clientId="a"`,
			want: []string{request(noon, "a")},
		},
		"no date, of a container": {
			format: events.Keycloak, text: noon + ` stdout F ` + keycloak("12:00:00,500", "a"),
			want: []string{request(noon, "a")},
		},
		"merged by Fluent Bit": {
			format: events.Keycloak, text: `{"@timestamp":"` + collected + `","date":1893456000.0,"timestamp":"` + nine + `","loggerName":"org.keycloak.events","message":"` + pairs + `","time":"` + collected + `"}` +
				"\n" + `{"timestamp":"` + nine + `","loggerName":"org.keycloak.events","message":"` + pairs + `","@timestamp":"` + collected + `"}`,
			want: []string{request(nine, "a"), request(nine, "a")},
		},
		"merged by Fluent Bit, of Auth0": {
			format: events.Auth0, text: `{"log_id":"1","data":{"date":"` + nine + `","type":"seccft","client_id":"a"},"type":"x","date":1893456000.5}`,
			want: []string{request(nine, "a")},
		},
		"no category in the format": {
			format: events.Keycloak, text: keycloak(local, "a") + "\n" + `2026-03-02 09:00:00,000 DEBUG (x) type="CLIENT_LOGIN", realmId="r", clientId="b"`,
			want: []string{request(nine, "a"), request(nine, "b")},
		},
		"pieces of a container runtime": {
			format: events.Keycloak, text: noon + " stdout P " + keycloak(local, "a")[:60] + "\n" + noon + " stdout P " + keycloak(local, "a")[60:80] +
				"\n" + noon + " stdout F " + keycloak(local, "a")[80:] + "\n" + noon + " stdout F " + keycloak("2026-03-02 09:00:01,000", "b"),
			want: []string{request(nine, "a"), request(later, "b")},
		},
		"pieces of two streams": {
			format: events.Keycloak, text: noon + " stdout P " + keycloak(local, "a")[:60] + "\n" + noon + " stderr F " + keycloak("2026-03-02 09:00:01,000", "b") +
				"\n" + noon + " stdout F " + keycloak(local, "a")[60:],
			want: []string{request(nine, "a"), request(later, "b")},
		},
		"pieces of two streams of Docker": {
			format: events.Keycloak, text: `{"log":` + quote(strings.Repeat("x", 16<<10)+keycloak(" 2026-03-02 09:00:00,000", "a")[:60]) + `,"stream":"stdout"}` + "\n" +
				`{"log":` + quote(keycloak("2026-03-02 09:00:01,000", "b")+"\n") + `,"stream":"stderr"}` + "\n" +
				`{"log":` + quote(keycloak(" 2026-03-02 09:00:00,000", "a")[60:]+"\n") + `,"stream":"stdout"}`,
			want: []string{request(nine, "a"), request(later, "b")},
		},
		"a pair with text of this server": {
			format: events.OAuthServer, text: `[1893456000.5, {"log":"time=` + nine + ` level=INFO msg=request method=POST path=/token status=200 grant_type=client_credentials client_id=a"}]`,
			want: []string{request(nine, "a")},
		},
		"a pair that is cut off": {
			format: events.OAuthServer, text: `x {"log":"time=` + nine + ` level=INFO msg=request method=POST path=/token status=200 grant_type=client_credentials client_id=a`,
			lines: "0 read, 0 skipped, 1 unread: -:1: line: is not valid JSON",
		},
		"pieces that are too long": {
			format: events.Keycloak, text: keycloak(local, "a") + strings.Repeat("\n"+noon+" stdout P "+strings.Repeat("x", 16<<10), 100) + "\n" + noon + " stdout F x\n" + noon + " stdout P x",
			want: []string{request(nine, "a")}, lines: "1 read, 1 skipped, 1 unread: -:2: line: is longer than 1 MiB",
		},
		"pieces of Docker": {
			format: events.Keycloak, text: `{"log":"` + strings.Repeat("x", 16<<10) + `","stream":"stdout","time":"` + noon + `"}` + "\n" + `{"log":` + quote(keycloak(local, "a")+"\n") + `,"stream":"stdout"}`,
			want: []string{request(nine, "a")},
		},
		"an answer of Loki": {
			format: events.Keycloak, text: `{"status":"success","data":{"resultType":"streams","result":[{"stream":{"app":"kc"},"values":[` + pair(0, "a") + "," + pair(2, "b") + "]},\n" +
				`{"stream":{"values":"x"},"values":[` + pair(1, "c") + `]}],"stats":{"summary":{"bytes":[1,2]}}}}`,
			want: []string{request(nine, "a"), request(later, "c"), request("2026-03-02T09:00:02Z", "b")},
		},
		"two answers of Loki, indented": {
			format: events.Keycloak, text: strings.Repeat("{\n  \"data\": {\n    \"result\": [\n      {\n \"stream\": {},\n \"values\": [\n [\n\"1\",\n"+quote(keycloak(local, "a"))+"\n]\n]\n}\n]\n}\n}\n", 2),
			want: []string{request(nine, "a"), request(nine, "a")},
		},
		"streams of Loki": {
			format: events.Keycloak, text: `{"stream":{},"values":[` + pair(0, "a") + `]}` + "\n" + `{"stream":{},"values":[` + pair(1, "b") + `]}`,
			want: []string{request(nine, "a"), request(later, "b")},
		},
		"what Loki is sent": {
			format: events.Keycloak, text: `{"streams":[{"stream":{},"values":[` + pair(0, "a") + `]}]}`,
			want: []string{request(nine, "a")},
		},
		"an answer of CloudWatch": {
			format: events.Keycloak, text: `{"logGroup":"g","logEvents":[{"id":"1","timestamp":1893456000000,"message":` + quote(keycloak(local, "a")) + `}]}`,
			want: []string{request(nine, "a")},
		},
		"an answer of CloudWatch to a search": {
			format: events.Keycloak, text: "{\n  \"events\": [\n" + `{"logStreamName":"s","timestamp":1893456000000,"message":` + quote(keycloak(local, "a")) + "}\n],\n" + `"nextToken":"x"}`,
			want: []string{request(nine, "a")},
		},
		"an event hook of Okta": {
			format: events.Okta, text: `{"eventType":"com.okta.event_hook","data":{"events":[{"eventType":"app.oauth2.token.grant.access_token","published":"` + nine +
				`","actor":{"id":"a","type":"PublicClientApp"},"outcome":{"result":"SUCCESS"},"debugContext":{"debugData":{"grantType":"client_credentials"}}}]}}`,
			want: []string{request(nine, "a")},
		},
		"an answer of Elasticsearch": {
			format: events.Keycloak, text: `{"took":3,"hits":{"total":{"value":1},"hits":[{"_id":"1","_source":{"message":` + quote(keycloak(local, "a")) + `}}]}}`,
			want: []string{request(nine, "a")},
		},
		"other lines of Keycloak": {
			format: events.Keycloak, text: `2026-03-02 09:00:00,000 INFO  [io.quarkus] (main) started` + "\n\tat org.keycloak.events.EventBuilder.send(EventBuilder.java:1)\n" +
				`{"log":"Listening on {x}","date":1}` + "\n" + `{"MESSAGE":"","__REALTIME_TIMESTAMP":"1"}` + "\n" + `{"timestamp":"x","loggerName":"io.quarkus","message":"{}"}` + "\n" +
				`{"type":"UPDATE_EMAIL","realmId":"r"}` + "\n" + `{"operationType":"UPDATE","resourceType":"CLIENT"}` + "\n",
			lines: "0 read, 7 skipped, 0 unread",
		},
		"bytes that are no text": {
			format: events.Keycloak, text: keycloak(local, "a") + "\n\x1f\x8b\x08\xff\n\x00\x00\n\x1b[33mWARN\x1b[39m\n",
			want: []string{request(nine, "a")}, lines: "1 read, 1 skipped, 2 unread: -:2: line: is neither an event nor a line of Keycloak's log",
		},
		"lines that are not understood": {
			format: events.Keycloak, text: keycloak(local, "a") + "\n" + `{"a":{"b":` + quote(keycloak(local, "b")) + `}}` + "\n" + `{"type":"access.LOGIN","realmId":"r"}` + "\n" +
				`[0] kube: [[1, {}], {"log"=>` + quote(keycloak(local, "c")) + `}]` + "\n" + `x {"type":"REFRESH_TOKEN","realmId":"r","cli`,
			want: []string{request(nine, "a")}, lines: "1 read, 0 skipped, 4 unread: -:2: line: is neither an event nor a line of Keycloak's log; " + "-:4: line: has an event with ambiguous fields; -:5: line: is not valid JSON",
		},
		"too many wrappers": {
			format: events.Keycloak, text: keycloak(local, "a") + "\n" + wrap(wrap(wrap(wrap(keycloak(local, "b"))))) + "\n" +
				wrap(wrap(wrap(wrap(wrap(keycloak(local, "c")))))),
			want: []string{request(nine, "a"), request(nine, "b")}, lines: "2 read, 0 skipped, 1 unread: -:3: line: is neither an event nor a line of Keycloak's log",
		},
		"of what is around": {
			mapping: "time=.@timestamp,client=.log.app", text: `{"@timestamp":"2026-03-02T09:00:00Z","message":"x","log":{"app":"a"}}`, want: []string{nine + ` "a"   `},
		},
		"of a web server": {
			format: events.Combined, mapping: "client=query.client_id",
			text: collectors["Filebeat"](`192.0.2.1 - - [02/Mar/2026:09:00:00 +0000] "POST /token?client_id=a HTTP/1.1" 200 9 "-" "x"`),
			want: []string{nine + ` "a"    192.0.2.1`},
		},
		"a table, of Docker": {
			format: events.CSV, text: collectors["Docker"]("time,client") + "\n" + collectors["Docker"]("1700000000,c0"), want: rows(0), lines: "1 read, 1 skipped, 0 unread",
		},
		"not of Docker": {format: events.JSON, text: `{"log":"x","client":"c0","time":1700000000}` + "\n", want: rows(0)},
		"Auth0 by Amazon EventBridge": {
			format: events.Auth0, text: `{"version":"0","id":"e","detail-type":"Auth0 log","source":"aws.partner/auth0.com/x","time":"2026-08-05T19:19:44Z","detail":` + auth0 + `}`, want: spa,
		},
		"Auth0 by Azure Event Grid": {
			format: events.Auth0, text: `{"id":"e","topic":"/t","subject":"auth0","eventType":"Auth0.Log","eventTime":"2026-08-05T19:19:44Z","data":` + auth0 + `,"dataVersion":"1.0"}`, want: spa,
		},
		"Auth0 by Splunk": {format: events.Auth0, text: `{"time":1785957583,"host":"h","source":"auth0","event":` + auth0 + `}`, want: spa},
		"Okta by Splunk":  {format: events.Okta, text: `{"time":1785957583,"host":"h","source":"okta","event":` + okta + `}`, want: spa},
		"Entra by PowerShell": {
			format: events.Entra, text: `{"AppId":"spa","CreatedDateTime":"2026-08-05T19:19:43Z","IPAddress":"192.0.2.1","IsInteractive":false,` +
				`"Status":{"ErrorCode":0,"FailureReason":"Other."},"UserId":"ada","ServicePrincipalId":"","AdditionalProperties":{}}`,
			want: spa,
		},
		"a failure of Entra by PowerShell": {
			text: `{"AppId":"spa","CreatedDateTime":"2026-08-05T19:19:43Z","Status":{"ErrorCode":50126},"UserId":"ada"}`, want: []string{`2026-08-05T19:19:43Z "spa" ada authorization_code  failed`},
		},
	})
}

// TestTogether: records are found in every form in which an API or a shipper combines them. A first
// line that is cut off is one line, whatever comes after it. In a document the rest after an invalid
// value is one line too.
func TestTogether(t *testing.T) {
	t.Parallel()
	all, read := logins(50)
	login, page := all[0], `{"value":[`+all[0]+"]}\n"
	const noJSON = "line: is not valid JSON"
	readCases(t, map[string]logCase{
		"one in a line":                 {text: "{\"value\":[\n" + strings.Join(all, ",\n") + "\n]}\n", want: read},
		"one in a line, after a member": {text: "{\"@odata.context\":\"x\",\"records\":[\n" + strings.Join(all, ",\n") + "\n]}\n", want: read},
		"all in one line":               {text: `{"entries":[` + strings.Join(all, ",") + `]}`, want: read},
		"two answers":                   {text: "{\"value\":[\n" + strings.Join(all[:20], ",\n") + "\n]}\n{\"value\":[\n" + strings.Join(all[20:], ",\n") + "\n]}\n", want: read},
		"nothing between them":          {text: strings.Join(all, ""), want: read},
		"a blank between them":          {text: strings.Join(all, " ") + "\n", want: read},
		"the first line is cut off":     {text: `{"a":"b` + "\n" + strings.Join(all[:3], "\n"), want: read[:3], lines: "3 read, 0 skipped, 1 unread: -:1: " + noJSON},
		"a value is invalid":            {text: "[" + login + ",\n{\"a\":}," + login + "]", want: read[:1], lines: "1 read, 0 skipped, 1 unread: -:2: " + noJSON},
		"the end is cut off":            {text: "[\n" + login + ",\n{\"a\":", want: read[:1], lines: "1 read, 0 skipped, 1 unread: -:3: " + noJSON},
		"the end of a page is cut off": {
			text: page + page[:len(page)-3], want: []string{read[0], read[0]}, lines: "2 read, 0 skipped, 1 unread: -:2: " + noJSON,
		},
		"a page without records": {
			text: page + "\n" + `{"error":{"value":[]}}` + "\n" + page, want: []string{read[0], read[0]},
			lines: "2 read, 0 skipped, 1 unread: -:3: line: has no records at the path of the first object",
		},
		"no object": {text: `{"value":[` + login + ",\n7]}", want: read[:1], lines: "1 read, 0 skipped, 1 unread: -:2: line: is not a JSON object"},
	})
}
