package gateway_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// deadlines records each write, and whether there is a deadline during it and after it.
type deadlines struct {
	*httptest.ResponseRecorder
	set   bool
	noted []string
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = !t.IsZero()
	d.noted = append(d.noted, map[bool]string{true: "deadline", false: "none"}[d.set])
	return nil
}

func (d *deadlines) Write(b []byte) (int, error) {
	d.noted = append(d.noted, "write")
	return d.ResponseRecorder.Write(b)
}

func (d *deadlines) FlushError() error {
	d.noted = append(d.noted, "flush")
	return nil
}

// TestEachWriteIsBounded checks that writes of token requests and streams have a deadline, and that
// the pauses between writes have none.
func TestEachWriteIsBounded(t *testing.T) {
	w := newWorld(t, 1)
	serve := func(path string) *deadlines {
		out := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := tokenRequest(t.Context())
		r.URL.Path = path
		w.ServeHTTP(out, r)
		return out
	}
	for path, answer := range map[string]http.HandlerFunc{tokenPath: fails, "/events": func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, "first")
		check.OK(t, http.NewResponseController(rw).Flush())
		_, _ = io.WriteString(rw, strings.Repeat("second", 10_000))
	}} {
		w.upstream(answer)
		out := serve(path)
		noted := strings.Join(out.noted, " ")
		check.Equal(t, path+": before and after everything", strings.HasPrefix(noted, "none ") && strings.HasSuffix(noted, " none deadline"), true)
		check.Equal(t, path+": something was written", strings.Contains(noted, "write"), true)
		for i, what := range out.noted {
			if (what == "write" || what == "flush") && (out.noted[i-1] != "deadline" || out.noted[i+1] != "none") {
				t.Errorf("%s: %s is not between a deadline and none: %s", path, what, noted)
			}
		}
	}
}

// TestContinueIsBounded checks the deadline of the interim answer that the server writes when the
// body is read.
func TestContinueIsBounded(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(fails)
	out := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, tokenPath, &noting{strings.NewReader("client_id=shop&grant_type=client_credentials"), out})
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Expect", "100-continue")
	w.ServeHTTP(out, r)
	check.Equal(t, "at first", out.noted[:2], []string{"deadline", "read"})
}

// noting records the reads of a body among the writes.
type noting struct {
	io.Reader
	out *deadlines
}

func (n *noting) Read(b []byte) (int, error) {
	n.out.noted = append(n.out.noted, "read")
	return n.Reader.Read(b)
}

// TestStalledReader checks that a client that does not read is cut off, and the upstream's answer
// with it.
func TestStalledReader(t *testing.T) {
	w := newWorld(t, 1)
	w.WriteWithin(20 * time.Millisecond)
	ended := make(chan struct{})
	w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for part := make([]byte, 1<<20); ; {
			if _, err := rw.Write(part); err != nil {
				return
			}
		}
	})
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	check.OK(t, err)
	defer func() { check.OK(t, c.Close()) }()
	_, err = io.WriteString(c, "GET /download HTTP/1.1\r\nHost: x\r\n\r\n")
	check.OK(t, err)
	<-ended
}

// TestUnreachableInTheLog checks that a request that is not a token request also has a log line
// with an ID if the upstream does not answer.
func TestUnreachableInTheLog(t *testing.T) {
	var log check.Buffer
	w := newWorld(t, 1, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.upstream(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	resp := w.send(http.MethodGet, "/jwks", "")
	check.Equal(t, "status", resp.status, http.StatusBadGateway)
	id := resp.header.Get("X-Request-Id")
	check.Equal(t, "there is an id", id != "", true)
	check.Eventually(t, "there is a line", func() bool { return strings.Contains(log.String(), "msg=request method=GET path=/jwks status=502") })
	check.Equal(t, "lines with the id: "+log.String(), strings.Count(log.String(), "request_id="+id), 2)
	check.Equal(t, "counted as requests of tokens", w.Stats().Requests, [gateway.Outcomes]uint64{})
}
