package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// wire is a gateway in front of an upstream, both accessed byte by byte.
type wire struct {
	t        *testing.T
	front    string
	upstream string
	answer   string      // of the upstream
	came     chan string // requests at the upstream
}

func newWire(t *testing.T) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, l.Close()) })
	w := &wire{t: t, upstream: l.Addr().String(), answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", came: make(chan string, 1)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.serve(conn)
		}
	}()
	front := httptest.NewUnstartedServer(newWorld(t, 1000, func(o *gateway.Options) { o.Upstream = &url.URL{Scheme: "http", Host: w.upstream} }))
	front.Config.DisableGeneralOptionsHandler = true
	front.Start()
	t.Cleanup(front.Close)
	w.front = front.Listener.Addr().String()
	return w
}

// serve answers one request.
func (w *wire) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var text strings.Builder
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &text)))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.came <- text.String()
	_, _ = io.WriteString(conn, w.answer)
}

// arrived returns the bytes of a request that arrived at the upstream and was answered.
func (w *wire) arrived() string {
	w.t.Helper()
	select {
	case text := <-w.came:
		return text
	default:
		w.t.Fatal("nothing came")
		return ""
	}
}

// ask sends a request and returns the whole answer.
func (w *wire) ask(to, request string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", to)
	check.OK(w.t, err)
	defer func() { check.OK(w.t, conn.Close()) }()
	_, err = io.WriteString(conn, request)
	check.OK(w.t, err)
	answer, err := io.ReadAll(conn)
	check.OK(w.t, err)
	return string(answer)
}

const rest = " HTTP/1.1\r\nHost: idp.example\r\nConnection: close\r\n"

// TestTargets checks that the target of a request arrives byte by byte.
func TestTargets(t *testing.T) {
	for name, tc := range map[string]struct{ sent, want string }{ // empty: as sent
		"encoded slash":               {"/a%2Fb", ""},
		"encoded slash and a bar":     {"/a%2Fb|c", ""},
		"encoded slash, UTF-8":        {"/a%2fb/caf\xc3\xa9/\xe5\x90\x8d", ""},
		"what no URI has":             {"/a%2F^`{}<>\"[]\\", ""},
		"dots and empty segments":     {"/./a/../b//c/", ""},
		"parameters":                  {"/a;b=c%2Fd|/e,f", ""},
		"encoded letters":             {"/%61%7e|", ""},
		"a query that does not parse": {"/a%2F|?b=%zz&c;d+e&&=|\xc3\xa9?x#y%2f", ""},
		"an empty query":              {"/a%2F|?", ""},
		"two slashes":                 {"//a//b%2Fc?", ""},
		"two slashes and a bar":       {"//a%2F|b", "//a%2F%7Cb"},
		"two slashes and UTF-8":       {"//a%2F\xc3\xa9", "//a%2F%C3%A9"},
		"a fragment":                  {"/token%2F#a", "/token%2F%23a"},
		"Latin-1":                     {"/a%2F\xe9|\xa0", "/a%2F%E9|%A0"},
		"a URL":                       {"http://idp.example/a%2Fb|c?d", "/a%2Fb|c?d"},
		"a URL without a path":        {"http://idp.example", "/"},
		"a URL with a query alone":    {"http://idp.example?a", "/?a"},
		"a query that has a URL":      {"/a%2F|?b=http://x/y", ""},
		"a path that has a URL":       {"/http://x/a%2F|", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			want := tc.want
			if want == "" {
				want = tc.sent
			}
			w.ask(w.front, "GET "+tc.sent+rest+"\r\n")
			line, _, _ := strings.Cut(w.arrived(), "\r\n")
			check.Equal(t, "request line", line, "GET "+want+" HTTP/1.1")
		})
	}
}

// TestTargetsOfTokenRequests checks the same for token requests.
func TestTargetsOfTokenRequests(t *testing.T) {
	for _, target := range []string{
		"/realms/a%2Fb|\xc3\xa9/protocol/openid-connect/token?", "/REALMS/a|/protocol/openid-connect/token;x%2Fy?a=b+|c",
	} {
		w := newWire(t)
		w.ask(w.front, "POST "+target+rest+"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nclient_id=a")
		line, _, _ := strings.Cut(w.arrived(), "\r\n")
		check.Equal(t, "request line", line, "POST "+target+" HTTP/1.1")
	}
}

// TestOptionsOfTheServer checks that OPTIONS *, which has no path, goes to the upstream.
func TestOptionsOfTheServer(t *testing.T) {
	w := newWire(t)
	w.answer = "HTTP/1.1 204 No Content\r\nAllow: GET, POST\r\n\r\n"
	answer := w.ask(w.front, "OPTIONS *"+rest+"\r\n")
	line, _, _ := strings.Cut(w.arrived(), "\r\n")
	check.Equal(t, "request line", line, "OPTIONS * HTTP/1.1")
	check.Equal(t, "answered by the upstream", strings.Contains(answer, "\r\nAllow: GET, POST\r\n"), true)
}

// added matches the fields that the gateway or net/http adds to answers.
var added = regexp.MustCompile(`(?m)^(Date|X-Request-Id|Connection): .*\r\n`)

// TestAnswersArrive checks that answers arrive for all paths, with interim answers and trailers.
func TestAnswersArrive(t *testing.T) {
	const page = "<html><p>a page"
	for name, want := range map[string]string{
		"no type":           "HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\n\r\n" + page,
		"an empty type":     "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nContent-Type: \r\n\r\n" + page,
		"a type":            "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nContent-Type: a/b\r\n\r\n" + page,
		"no body":           "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"no content":        "HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n",
		"not modified":      "HTTP/1.1 304 Not Modified\r\nEtag: a\r\n\r\n",
		"fields twice":      "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWww-Authenticate: b\r\nWww-Authenticate: a\r\n\r\n",
		"early hints":       "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
		"trailer":           "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n",
		"trailer of a page": "HTTP/1.1 404 Not Found\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n" + page + "\r\n0\r\nX-Sum: 1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.answer = want
			for path, request := range map[string]string{
				"token": "POST " + tokenPath + rest + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nclient_id=a",
				"other": "POST /login" + rest + "\r\n",
			} {
				got := w.ask(w.front, request)
				w.arrived()
				check.Equal(t, path, added.ReplaceAllString(got, ""), want)
			}
			if strings.Contains(want, "\r\n\r\n"+page) {
				got := w.ask(w.front, "HEAD /login"+rest+"\r\n")
				w.arrived()
				check.Equal(t, "HEAD", added.ReplaceAllString(got, ""), strings.TrimSuffix(want, page))
			}
		})
	}
}

// TestMalformedStatus checks that a client gets 502 if the upstream answers with a status that no
// server can send.
func TestMalformedStatus(t *testing.T) {
	w := newWire(t)
	w.answer = "HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n"
	for path, request := range map[string]string{
		"token": "POST " + tokenPath + rest + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nclient_id=a",
		"other": "POST /login" + rest + "\r\n",
	} {
		line, _, _ := strings.Cut(w.ask(w.front, request), "\r\n")
		w.arrived()
		check.Equal(t, path, line, "HTTP/1.1 502 Bad Gateway")
	}
}

// TestUnannouncedTrailer checks that the client learns the name of a trailer field before the body,
// because the body of an answer to a token request is read first.
func TestUnannouncedTrailer(t *testing.T) {
	w := newWire(t)
	w.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n"
	got := w.ask(w.front, "POST "+tokenPath+rest+"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nclient_id=a")
	check.Equal(t, "answer", added.ReplaceAllString(got, ""),
		"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n")
}

// TestInterimAnswersOfTokenRequests checks that hop-by-hop fields of an interim answer do not arrive.
// The final answer has only its own fields.
func TestInterimAnswersOfTokenRequests(t *testing.T) {
	w := newWire(t)
	w.answer = "HTTP/1.1 103 Early Hints\r\nConnection: x\r\nX: 1\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	got := w.ask(w.front, "POST "+tokenPath+rest+"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nclient_id=a")
	w.arrived()
	check.Equal(t, "answer", added.ReplaceAllString(got, ""), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

// TestNoInterimAnswersForHTTP10 checks that HTTP/1.0 clients get no interim answers.
func TestNoInterimAnswersForHTTP10(t *testing.T) {
	w := newWire(t)
	w.answer = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for _, request := range []string{
		"GET /a HTTP/1.0\r\n\r\n",
		"POST " + tokenPath + " HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\n\r\nclient_id=a",
	} {
		check.Equal(t, "answer", added.ReplaceAllString(w.ask(w.front, request), ""), "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
		w.arrived()
	}
}

// TestRequestTrailer checks that the trailer of a request arrives, except fields about its origin.
// The trailer of a token request is removed, because it would not be checked.
func TestRequestTrailer(t *testing.T) {
	const trailer = "Trailer: X-Sum, X-Real-Ip, Host, a b\r\nTransfer-Encoding: chunked\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n" +
		"b\r\nclient_id=a\r\n0\r\nX-Sum: 1\r\nX-Real-Ip: 192.0.2.7\r\nHost: a\r\nX-Unannounced: 1\r\n\r\n"
	w := newWire(t)
	w.ask(w.front, "POST /login"+rest+trailer)
	got := w.arrived()
	check.Equal(t, "announced", strings.Contains(got, "\r\nTrailer: X-Sum\r\n"), true)
	check.Equal(t, "end", strings.HasSuffix(got, "b\r\nclient_id=a\r\n0\r\nX-Sum: 1\r\n\r\n"), true)
	w.ask(w.front, "POST "+tokenPath+rest+trailer)
	got = w.arrived()
	check.Equal(t, "end of a token request", strings.HasSuffix(got, "\r\n\r\nclient_id=a"), true)
	check.Equal(t, "announced", strings.Contains(got, "Trailer"), false)
}
