package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// BenchmarkRefresh measures the cost of a refresh with the embedded store, without net/http. 64
// concurrent refreshes share its commits.
//
//	TMPDIR=/dev/shm go test -run '^$' -bench Refresh -benchtime 20000x ./internal/app
func BenchmarkRefresh(b *testing.B) {
	var secret string
	r := &running{}
	cfg := testConfig(b)
	cfg.RateLimit.Mode = "off"
	r.run(b, cfg, io.Discard, func(ctx context.Context, store Store) (err error) {
		if _, err = CreateUser(ctx, store, "alice", "correct horse battery staple", "", time.Now()); err != nil {
			return err
		}
		_, secret, err = CreateClient(ctx, store, clientcfg.Client{ID: "shop", Grants: []clientcfg.Grant{clientcfg.Password, clientcfg.RefreshToken}}, time.Now())
		return err
	})
	ask := func(form url.Values) string {
		req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/token", strings.NewReader(form.Encode()))
		req.SetBasicAuth("shop", secret)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		r.edge.http.Handler.ServeHTTP(w, req)
		var answer struct {
			RefreshToken string `json:"refresh_token"`
		}
		check.OK(b, json.Unmarshal(w.Body.Bytes(), &answer))
		if answer.RefreshToken == "" {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
		return answer.RefreshToken
	}
	const atOnce = 64
	tokens := make(chan string, atOnce)
	for range atOnce {
		tokens <- ask(url.Values{"grant_type": {"password"}, "username": {"alice"}, "password": {"correct horse battery staple"}})
	}
	b.ReportAllocs()
	b.SetParallelism(atOnce / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		token := <-tokens
		for pb.Next() {
			token = ask(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
		}
	})
}
