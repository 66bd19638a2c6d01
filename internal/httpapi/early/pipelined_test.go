package early

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
)

// TestBehindAnother covers data after a request in the same read. It is in the buffer of net/http,
// so the data after it does not start a request, whatever it looks like.
func TestBehindAnother(t *testing.T) {
	first, looksLikeOne := "GET / HTTP/1.1\r\nHost: x\r\n\r\n", message(basic, grant)
	for name, behind := range map[string]string{
		"the header of one with a body": fmt.Sprintf("POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(looksLikeOne)),
		"its first character":           "X", // a request with the method XPOST
		"a field that is not complete":  "GET /other HTTP/1.1\r\nX: ",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(message(basic, grant))
			w.want(http.StatusOK)
			w.on.Store(true)
			w.write(first + behind)
			w.want(http.StatusOK)
			w.write(looksLikeOne)
			w.want(http.StatusOK)
			check.Equal(t, "asked", w.asked.Load(), 0)
		})
	}
}
