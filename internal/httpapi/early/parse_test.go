package early

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
)

const firstLine = "POST /token HTTP/1.1\r\n"

// message returns a request with those fields, including the length of its body.
func message(fields, body string) string {
	return fmt.Sprintf("POST /token HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		fields, len(body), body)
}

const (
	basic = "Authorization: Basic c2hvcDpzZWNyZXQ=\r\n" // shop:secret
	grant = "grant_type=client_credentials"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    bool
	}{
		"basic":                {message(basic, grant), true},
		"other fields":         {message(basic+"Accept: */*\r\nUser-Agent: a\r\nconnection: Keep-Alive\r\n", grant), true},
		"fields in any case":   {message("aUTHORIZATION: bASIC c2hvcDpzZWNyZXQ=\r\n", grant), true},
		"from a script":        {message(basic+"Origin: https://app.example\r\n", grant), false}, // whose answer has fields for it
		"expects to continue":  {message(basic+"Expect: 100-continue\r\n", grant), false},
		"closes":               {message(basic+"Connection: close\r\n", grant), false},
		"two lengths":          {message(basic+"Content-Length: 30\r\n", grant), false},
		"a folded field":       {message(basic+"X: a\r\n b\r\n", grant), true}, // as net/http reads it
		"a bare line feed":     {message(basic+"X: a\nY: b\r\n", grant), true},
		"a line feed, no end":  {strings.ReplaceAll(message(basic, grant), "\r\n\r\n", "\r\n\n"), true},
		"another body behind":  {message(basic+"\n", grant), false},
		"chunked":              {message(basic+"Transfer-Encoding: chunked\r\n", grant), false},
		"a space in a name":    {message(basic+"X : a\r\n", grant), false},
		"a carriage return":    {message(basic+"X: a\rY: b\r\n", grant), false},
		"no text":              {message(basic+"X: a\x00\r\n", grant), false},
		"no name of a field":   {message(basic+"Transfer-Encoding\x80: chunked\r\n", grant), false},
		"two hosts":            {message(basic+"Host: y\r\n", grant), false},
		"no host":              {strings.Replace(message(basic, grant), "Host: x\r\n", "", 1), false},
		"not a host":           {strings.Replace(message(basic, grant), "Host: x", "Host: x y", 1), false},
		"a host with a port":   {strings.Replace(message(basic, grant), "Host: x", "Host: [2001:db8::1]:80", 1), true},
		"a length with a sign": {strings.Replace(message(basic, grant), "Length: ", "Length: +", 1), false},
		"no colon":             {message(basic+"X\r\n", grant), false},
		"more than it":         {message(basic, grant) + "P", false},
		"less than it":         {strings.TrimSuffix(message(basic, grant), "s"), false},
		"another path":         {strings.Replace(message(basic, grant), "/token", "/tokem", 1), false},
		"a query":              {strings.Replace(message(basic, grant), "/token", "/token?", 1), false},
		"another method":       {strings.Replace(message(basic, grant), "POST", "GET", 1), false},
		"HTTP/1.0":             {strings.Replace(message(basic, grant), "1.1", "1.0", 1), false},
		"a header without end": {"POST /token HTTP/1.1\r\nHost: x\r\n", false},
		"TLS":                  {"\x16\x03\x01\x02\x00\x01", false},
		"nothing":              {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, body, ok := parse([]byte(tc.message), firstLine)
			check.Equal(t, "taken", ok, tc.want)
			if ok {
				check.Equal(t, "request", r.Method+" "+r.RequestURI+" "+strings.Replace(r.Header.Get("Authorization"), "bASIC", "Basic", 1)+" "+body, "POST /token Basic c2hvcDpzZWNyZXQ= "+grant)
			}
		})
	}
}

// FuzzParse checks that a server reads an accepted request in the same way, and reads nothing else.
func FuzzParse(f *testing.F) {
	for _, fields := range []string{"", basic, basic + "Connection: keep-alive\r\n", "X: \r\n", "Content-Length: 1\r\n", "\r\n", "A: b\nC: d\r\n"} {
		for _, body := range []string{grant, "grant_type=refresh_token&refresh_token=a", "a;b=c&" + grant, "&&" + grant + "&x=%zz"} {
			f.Add([]byte(message(fields, body)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, body, ok := parse(b, firstLine)
		if !ok {
			return
		}
		ours, theirs := net.Pipe()
		type read struct {
			header http.Header
			body   string
		}
		requests := make(chan read, 2)
		s := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			requests <- read{r.Header, string(body)}
		})}
		l := &oneConn{conn: theirs, ended: make(chan struct{})}
		served := make(chan error)
		go func() { served <- s.Serve(l) }()
		go func() { _, _ = ours.Write(b) }()
		answer, err := http.ReadResponse(bufio.NewReader(ours), nil)
		check.OK(t, err)
		check.OK(t, answer.Body.Close())
		check.Equal(t, "status", answer.StatusCode, http.StatusOK)
		got := <-requests
		check.Equal(t, "body", got.body, body)
		check.Equal(t, "header", fmt.Sprint(got.header), fmt.Sprint(r.Header))
		check.OK(t, s.Close())
		check.OK(t, ours.Close())
		check.ErrorIs(t, <-served, http.ErrServerClosed)
		check.Equal(t, "others", len(requests), 0)
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn  net.Conn
	ended chan struct{}
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { l.once.Do(func() { close(l.ended) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
