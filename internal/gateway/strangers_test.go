package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
)

// TestStrangersWhoHangUp checks that a caller that never waits for the refusal may also have only a
// few requests in progress.
func TestStrangersWhoHangUp(t *testing.T) {
	w := newWorld(t, 100)
	under, refuse := make(chan struct{}), make(chan struct{})
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		under <- struct{}{}
		<-refuse
		fails(rw, r)
	})
	ask := func(ctx context.Context) {
		req := w.request(ctx, http.MethodPost, tokenPath, strings.NewReader("client_id=shop&grant_type=client_credentials"))
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			t.Error("it was answered")
		}
	}
	var gone sync.WaitGroup
	first, hangUp := context.WithCancel(t.Context())
	for range 5 {
		gone.Go(func() { ask(first) })
		<-under
	}
	hangUp()
	gone.Wait()
	for range 5 {
		refuse <- struct{}{}
	}
	check.Eventually(t, "none is under way", func() bool { return w.Stats().UnderWay == 0 })
	second, hangUp := context.WithCancel(t.Context())
	for range 2 {
		gone.Go(func() { ask(second) })
		<-under
	}
	w.upstream(fails)
	w.wantStatus("a third one", "grant_type=client_credentials", 429)
	hangUp()
	gone.Wait()
	close(refuse)
	check.Eventually(t, "all have ended", func() bool { return w.Stats().UnderWay == 0 })
}

// TestGuessesOfForeignPages checks that guesses that a page makes browsers send do not count as
// guesses of others at the same address.
func TestGuessesOfForeignPages(t *testing.T) {
	w := newWorld(t, 100)
	ask := func(header, value string) int {
		return w.do(http.MethodPost, tokenPath, strings.NewReader("client_id=shop&grant_type=client_credentials"), map[string]string{header: value}).status
	}
	w.upstream(fails)
	for range 10 {
		check.Equal(t, "a guess", ask("Sec-Fetch-Site", "cross-site"), 401)
		check.Equal(t, "a guess", ask("Origin", "https://evil.example"), 401)
	}
	under, answer := make(chan struct{}), make(chan struct{})
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		under <- struct{}{}
		<-answer
		fails(rw, r)
	})
	done := make(chan int)
	begin := func(header, value string) {
		go func() { done <- ask(header, value) }()
		<-under
	}
	for range 2 {
		begin("Origin", "null")
	}
	check.Equal(t, "one more of a page", ask("Origin", "null"), 429)
	for range 4 {
		begin("Sec-Fetch-Site", "none")
	}
	close(answer)
	for range 6 {
		check.Equal(t, "under way", <-done, 401)
	}
}
