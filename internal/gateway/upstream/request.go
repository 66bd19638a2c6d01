package upstream

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Request is a request with its body in memory. [Pool.Send] changes nothing in it.
type Request struct {
	Method string
	Target string // path and query; Send refuses spaces and control characters
	Host   string
	Header http.Header // except fields about the host and the length of the body, which Send writes itself
	Body   []byte
	// Interim is called with each interim answer (1xx). Nil: they are ignored.
	Interim func(status int, fields http.Header)
	// Outlives is called when the context ends after the request was sent, from another goroutine.
	// It reports whether the request continues. Nil: it does not.
	Outlives func(cause error) bool
}

// errTarget is the error of a request that the upstream could read as a request for another target.
var errTarget = errors.New("upstream: the request target has a space or a control character")

func (r *Request) malformed() bool {
	return strings.ContainsFunc(r.Target, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// own are the fields that write does not take from Header. An HTTP/2 client can send a Host field.
var own = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true}

// write writes the request and flushes w (RFC 9112). Its error is of the connection.
func (r *Request) write(w *bufio.Writer) error {
	for _, part := range []string{r.Method, " ", r.Target, " HTTP/1.1\r\nHost: ", withoutZone(r.Host), "\r\n"} {
		_, _ = w.WriteString(part) // Flush returns the first error
	}
	if len(r.Body) > 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		_, _ = w.WriteString("Content-Length: " + strconv.Itoa(len(r.Body)) + "\r\n")
	}
	_ = r.Header.WriteSubset(w, own)
	_, _ = w.WriteString("\r\n")
	_, _ = w.Write(r.Body)
	return w.Flush()
}

// withoutZone removes the zone of an IPv6 address, which has a meaning on this machine only (RFC 6874
// section 1).
func withoutZone(host string) string {
	address, rest, _ := strings.Cut(host, "%")
	if _, port, found := strings.Cut(rest, "]"); found {
		return address + "]" + port
	}
	return host
}
