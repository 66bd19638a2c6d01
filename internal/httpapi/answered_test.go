package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
)

func TestEveryAnswerIsObserved(t *testing.T) {
	const good = "grant_type=client_credentials&client_id=shop&client_secret=" + secretOf
	tests := map[string]struct {
		method, target, form string
		want                 httpapi.Answer
	}{
		"token":             {http.MethodPost, "/token", good, httpapi.Answer{Route: "/token", Method: "POST", Status: 200, GrantType: "client_credentials"}},
		"token below path":  {http.MethodPost, "/oauth/token", good, httpapi.Answer{Route: "/token", Method: "POST", Status: 200, GrantType: "client_credentials"}},
		"no grant type":     {http.MethodPost, "/token", "client_id=shop", httpapi.Answer{Route: "/token", Method: "POST", Status: 400, Error: "invalid_request"}},
		"wrong method":      {http.MethodGet, "/token", "", httpapi.Answer{Route: "/token", Method: "GET", Status: 405, Error: "invalid_request"}},
		"health":            {http.MethodGet, "/healthz", "", httpapi.Answer{Route: "/healthz", Method: "GET", Status: 200}},
		"wrong secret":      {http.MethodPost, "/token", good + "x", httpapi.Answer{Route: "/token", Method: "POST", Status: 401, GrantType: "client_credentials", Error: "invalid_client"}},
		"nothing there":     {http.MethodGet, "/made/up", "", httpapi.Answer{Method: "GET", Status: 404, Error: "invalid_request"}},
		"query left out":    {http.MethodGet, "/healthz?user=alice", "", httpapi.Answer{Route: "/healthz", Method: "GET", Status: 200}},
		"issuer's own path": {http.MethodGet, "/oauth", "", httpapi.Answer{Route: "/", Method: "GET", Status: 200}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var answers []httpapi.Answer
			s := newServer(t, newFake(), func(o *httpapi.Options) {
				o.Issuer = "https://as.example/oauth"
				o.Answered = func(_ context.Context, a httpapi.Answer) { answers = append(answers, a) }
			})
			r := httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.form))
			r.Header.Set("Content-Type", formType)
			s.ServeHTTP(httptest.NewRecorder(), r)
			check.Equal(t, "answers", len(answers), 1)
			if answers[0].Duration <= 0 {
				t.Fatalf("duration %v, want more than 0", answers[0].Duration)
			}
			answers[0].Duration = 0
			check.Equal(t, "answer", answers[0], tt.want)
		})
	}
}
