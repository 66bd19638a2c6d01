package events_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/traffic"
)

// madeUp returns n lines of a format, with 50,000 clients and users and slightly out of order. In
// the template, T stands for the time, C for the client and U for the user.
func madeUp(format events.Format, n int) []byte {
	var out bytes.Buffer
	at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	layout := "2006-01-02T15:04:05.000Z"
	if format == events.Keycloak {
		layout = "2006-01-02 15:04:05,000"
	}
	if format == events.Combined || format == events.Common {
		layout = "02/Jan/2006:15:04:05 -0700"
	}
	if format == events.CSV {
		out.WriteString("time,client,user,grant,status,source\n")
	}
	for i := range n {
		who := i * 7919 % 50_000
		moment := at.Add(time.Duration(i-i%5) * 10 * time.Millisecond)
		line := strings.NewReplacer("$T", moment.Format(layout), "$C", fmt.Sprintf("client-%d", who%997), "$U", fmt.Sprintf("user-%d", who)).Replace(templates[format])
		out.WriteString(line + "\n")
	}
	return out.Bytes()
}

var templates = map[events.Format]string{
	events.OAuthServer: `time=$T level=INFO msg=request method=POST path=/token status=200 bytes=812 duration_ms=0.412 remote=192.0.2.7 grant_type=refresh_token client_id=$C user_hash=$U request_id=0b5e4a5c7d9f4f6b`,
	events.Keycloak:    `$T DEBUG [org.keycloak.events] (executor-thread-2) type="REFRESH_TOKEN", realmId="0f2c5e2a-1111-4a4a-8c8c-123456789abc", realmName="shop", clientId="$C", userId="$U", sessionId="s-4", ipAddress="172.18.0.5", token_id="onrtrt:t-4", grant_type="refresh_token", refresh_token_type="Refresh", scope="openid email profile", refresh_token_id="t-5", client_auth_method="client-secret"`,
	events.Auth0:       `{"log_id":"1","data":{"date":"$T","type":"sertft","description":"","connection_id":"","client_id":"$C","client_name":"Default App","ip":"203.0.113.57","user_agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15","hostname":"tenant.example","user_id":"$U","user_name":"ada@example.com","scope":"openid profile"}}`,
	events.Okta:        `{"actor":{"id":"$C","type":"PublicClientApp","alternateId":"$C","displayName":"Portal","detailEntry":null},"client":{"userAgent":{"rawUserAgent":"client/1.0","os":"Unknown","browser":"UNKNOWN"},"zone":"None","device":"Unknown","id":null,"ipAddress":"192.0.2.20","geographicalContext":{"city":"Town","state":"Test State","country":"Test Country","postalCode":"00000","geolocation":{"lat":0.0,"lon":0.0}}},"displayMessage":"OIDC access token is granted","eventType":"app.oauth2.token.grant.access_token","outcome":{"result":"SUCCESS","reason":null},"published":"$T","debugContext":{"debugData":{"grantedScopes":"openid, profile","grantType":"refresh_token"}},"target":[{"id":"$U","type":"User"},{"id":"t","type":"access_token","detailEntry":{"expires":"2027-04-01T09:00:11.000Z"}}]}`,
	events.Entra:       `{"time":"$T","resourceId":"/tenants/88888888-2222-4333-8444-555555555555/providers/Microsoft.aadiam","operationName":"Sign-in activity","operationVersion":"1.0","category":"NonInteractiveUserSignInLogs","tenantId":"88888888-2222-4333-8444-555555555555","resultType":"0","callerIpAddress":"192.0.2.4","properties":{"id":"77777777-2222-4333-8444-555555555555","createdDateTime":"$T","userId":"$U","appId":"$C","ipAddress":"192.0.2.4","status":{"errorCode":0},"location":{"city":"Gotham","state":"Nowhere","geoCoordinates":{"latitude":1.5,"longitude":2.5}},"appliedConditionalAccessPolicies":[],"isInteractive":false,"resourceDisplayName":"Windows Azure Service Management API"}}`,
	events.JSON:        `{"time":"$T","client":"$C","user":"$U","grant":"refresh_token","status":200,"source":"192.0.2.4"}`,
	events.CSV:         `$T,$C,$U,refresh_token,200,192.0.2.4`,
	events.Common:      `192.0.2.4 - $C [$T] "POST /oauth2/token HTTP/1.1" 200 912`,
	events.Combined:    `192.0.2.4 - $C [$T] "POST /oauth2/token?grant_type=client_credentials HTTP/1.1" 200 912 "-" "Go-http-client/1.1"`,
}

// BenchmarkRead measures one core. The metric lines/s must be at least 33,000; the goal is ten
// times that.
func BenchmarkRead(b *testing.B) {
	for format := range templates {
		b.Run(format, func(b *testing.B) {
			const lines = 200_000
			log := madeUp(format, lines)
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := events.Open([]string{"-"}, events.Options{Stdin: bytes.NewReader(log)})
				check.OK(b, err)
				var q traffic.Request
				for r.Next(&q) {
				}
				if l := r.Lines(); l.Read != lines {
					b.Fatalf("%+v", l)
				}
				r.Close()
			}
			b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
