package gateway_test

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

func TestPatience(t *testing.T) {
	for name, tc := range map[string]struct {
		received int64
		waited   time.Duration
		want     time.Duration
	}{
		"nothing came":               {0, 0, 30 * time.Second},
		"nothing came for a while":   {0, 20 * time.Second, 10 * time.Second},
		"nothing came for too long":  {0, 31 * time.Second, 0},
		"a byte now and then":        {60, 29 * time.Second, time.Second},
		"slowly":                     {250 * 3600, time.Hour, 30 * time.Second},
		"too slowly":                 {200 * 3600, time.Hour, 0},
		"fast":                       {1 << 30, time.Minute, time.Minute},
		"more than anyone ever sent": {math.MaxInt64, 0, time.Minute},
	} {
		check.Equal(t, name, gateway.Patience(tc.received, tc.waited), tc.want)
	}
}

// uploading is a gateway in front of an upstream that reads the body of each request, or answers at
// once.
func uploading(t *testing.T, reads bool) (address string, ended chan error) {
	t.Helper()
	ended = make(chan error, 1)
	up := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if reads {
			_, err := io.Copy(io.Discard, r.Body)
			ended <- err
		}
		_, _ = io.WriteString(rw, "done")
	}))
	t.Cleanup(up.Close)
	target, err := url.Parse(up.URL)
	check.OK(t, err)
	w := newWorld(t, 1, func(o *gateway.Options) { o.Upstream = target })
	w.UploadGrace(50 * time.Millisecond)
	return strings.TrimPrefix(w.url, "http://"), ended
}

// TestBodyThatDoesNotCome checks that the client and the upstream are disconnected, however much of
// the body has arrived, and whether or not the upstream waits for it.
//
// Attack (connections): Slow uploads through a gateway. A body that falls below the minimum rate
// ends with 408. Also envoy.TestCallThatDoesNotComeIn.
func TestBodyThatDoesNotCome(t *testing.T) {
	for name, head := range map[string]string{
		"nothing":          "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
		"a byte":           "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx",
		"chunks":           "PUT /elsewhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"a GET":            "GET /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n",
		"after a continue": "POST /elsewhere HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
		"a refused method": "PRI /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n",
	} {
		for _, reads := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				address, ended := uploading(t, reads)
				c, err := net.Dial("tcp", address)
				check.OK(t, err)
				defer func() { check.OK(t, c.Close()) }()
				_, err = io.WriteString(c, head)
				check.OK(t, err)
				answer, _ := io.ReadAll(c) // until the gateway closes the connection
				status := strings.Contains(string(answer), " 408 ") || strings.Contains(string(answer), " 405 ")
				if reads && !status || !reads && answer == nil {
					t.Errorf("answer %q", answer)
				}
				select { // a request may have been cut off before it was sent
				case err := <-ended:
					check.Equal(t, "the upstream has read it all", err == nil, false)
				default: // it ends before the test's server does
				}
			})
		}
	}
}

// TestBodyThatComes sends a body in pieces, each within the time.
func TestBodyThatComes(t *testing.T) {
	address, ended := uploading(t, true)
	c, err := net.Dial("tcp", address)
	check.OK(t, err)
	defer func() { check.OK(t, c.Close()) }()
	part := strings.Repeat("x", 20_000)
	_, err = io.WriteString(c, "POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"+part) // it earns the time for the rest
	check.OK(t, err)
	for range 9 {
		_, err = io.WriteString(c, part)
		check.OK(t, err)
	}
	check.OK(t, <-ended)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, "status", res.StatusCode, http.StatusOK)
}
