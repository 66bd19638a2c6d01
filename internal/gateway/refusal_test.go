package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
)

// TestWhichServersCheckSecrets checks which answers show that a server checks secrets. After such an
// answer, a request with another secret is decided separately from concurrent requests with wrong
// secrets.
func TestWhichServersCheckSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		form   string
		want   int
	}{
		"invalid_client":            {fails, "client_secret=wrong", 200},
		"Keycloak":                  {refuses(401, `{"error":"unauthorized_client","error_description":"Invalid client or Invalid client credentials"}`), "client_secret=wrong", 200},
		"Keycloak, public client":   {refuses(401, `{"error":"unauthorized_client","error_description":"Public client not allowed to retrieve service account"}`), "client_secret=wrong", 429},
		"another error":             {refuses(400, `{"error":"invalid_grant"}`), "client_secret=wrong", 429},
		"no secret":                 {fails, "", 429},
		"a secret and an assertion": {fails, "client_secret=wrong&client_assertion_type=x&client_assertion=y", 429},
	} {
		t.Run(name, func(t *testing.T) {
			const limit, form = 3, "grant_type=client_credentials&client_id=shop&client_secret="
			w := newWorld(t, limit)
			w.upstream(tt.answer)
			w.send(http.MethodPost, tokenPath, "grant_type=client_credentials&client_id=shop&"+tt.form)
			arrived, end := w.slowly()
			done := make(chan struct{})
			for i := range limit {
				go func() {
					defer func() { done <- struct{}{} }()
					w.send(http.MethodPost, tokenPath, fmt.Sprint(form, "wrong", i))
				}()
				<-arrived
			}
			check.Equal(t, "status", w.send(http.MethodPost, tokenPath, form+"right").status, tt.want)
			end()
			for range limit {
				<-done
			}
		})
	}
}
