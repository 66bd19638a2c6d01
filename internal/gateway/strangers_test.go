package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestStrangersWhoHangUp: who never waits to be refused has few requests under way, too.
func TestStrangersWhoHangUp(t *testing.T) {
	w := newWorld(t, 100)
	under, refuse := make(chan struct{}), make(chan struct{})
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		under <- struct{}{}
		<-refuse
		fails(rw, r)
	})
	ask := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+tokenPath, strings.NewReader("client_id=shop&grant_type=client_credentials"))
		check.OK(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			t.Error("it was answered")
		}
	}
	first, hangUp := context.WithCancel(t.Context())
	for range 5 {
		go ask(first)
		<-under
	}
	hangUp()
	for range 5 {
		refuse <- struct{}{}
	}
	check.Eventually(t, "none is under way", func() bool { return w.Stats().UnderWay == 0 })
	second, hangUp := context.WithCancel(t.Context())
	for range 2 {
		go ask(second)
		<-under
	}
	w.upstream(fails)
	w.wantStatus("a third one", "grant_type=client_credentials", 429)
	hangUp()
	close(refuse)
	check.Eventually(t, "all have ended", func() bool { return w.Stats().UnderWay == 0 })
}
