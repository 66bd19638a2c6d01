package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"oauth-server/internal/check"
)

// stuck is a client that does not read its answer until a channel is closed.
type stuck struct {
	http.ResponseWriter
	writes, read chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	close(s.writes)
	<-s.read
	return s.ResponseWriter.Write(b)
}

// TestSlowReaderTakesNoRoom checks that the reservation of a request without a token is canceled
// when the upstream has answered, and not only when the client has read the answer.
func TestSlowReaderTakesNoRoom(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(fails)
	slow, done := stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}, make(chan struct{})
	go func() {
		defer close(done)
		w.ServeHTTP(slow, tokenRequest(t.Context()))
	}()
	<-slow.writes
	check.Equal(t, "under way", w.Stats().UnderWay, 0)
	w.upstream(issues("shop", ""))
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, tokenRequest(t.Context()))
	check.Equal(t, "status of the next request", rec.Code, 200)
	close(slow.read)
	<-done
	check.Equal(t, "under way", w.Stats().UnderWay, 0)
}
