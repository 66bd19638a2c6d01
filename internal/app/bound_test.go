package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/observe/metrics"
)

func TestBounds(t *testing.T) {
	gateway := config.Gateway{Upstream: "http://127.0.0.1:8080"}
	judge := config.Gateway{Judge: true, EnvoyListen: "127.0.0.1:9001"}
	for name, tc := range map[string]struct {
		gateway       config.Gateway
		files, memory int64
		store         int
		clients, here int
		operators     int
		envoy         int
	}{
		"nothing is known":       {config.Gateway{}, 0, 0, 0, 65536, 16384, 128, 0},
		"few files":              {config.Gateway{}, 512, 0, 0, 320, 80, 128, 0},
		"fewer files":            {config.Gateway{}, 256, 0, 0, 64, 16, 128, 0},
		"128 files":              {config.Gateway{}, 128, 0, 0, 16, 4, 64, 0},
		"the usual files":        {config.Gateway{}, 1024, 8 << 30, 100, 732, 183, 128, 0},
		"many files, 1 GiB":      {config.Gateway{}, 65536, 1 << 30, 100, 8192, 2048, 128, 0},
		"many files, 128 MiB":    {config.Gateway{}, 65536, 128 << 20, 0, 1024, 256, 128, 0},
		"hardly any":             {config.Gateway{}, 64, 1 << 20, 100, 16, 4, 32, 0},
		"a gateway":              {gateway, 65536, 0, 0, 16336, 4084, 128, 0},
		"a gateway of few files": {gateway, 1024, 0, 0, 208, 52, 128, 0},
		"a judge":                {judge, 65536, 0, 0, 64320, 16080, 128, 1024},
		"a judge of few files":   {judge, 1024, 0, 0, 416, 104, 128, 416},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Gateway = tc.gateway
			b := newBounds(cfg, tc.files, tc.memory, tc.store, nil)
			check.Equal(t, "clients", b.clients.most, tc.clients)
			check.Equal(t, "of a source", b.clients.perSource, tc.here)
			check.Equal(t, "operators", b.operators.most, tc.operators)
			check.Equal(t, "operators of a source", b.operators.perSource, tc.operators/2)
			check.Equal(t, "Envoy is bounded", b.envoy != nil, tc.envoy > 0)
			if b.envoy != nil {
				check.Equal(t, "Envoy", b.envoy.most, tc.envoy)
			}
		})
	}
}

// TestBound checks which entries are cut and which are refused. A step is a new source, or an
// action on earlier ones.
func TestBound(t *testing.T) {
	const here, there, elsewhere, proxy = "192.0.2.1", "2001:db8::1", "192.0.2.3", "10.0.0.1"
	comes := func(from string) func(*fakes) { return func(f *fakes) { f.comes(from) } }
	wakes := func(i int) func(*fakes) { return func(f *fakes) { f.all[i].locked((*held).wake) } }
	rests := func(i int) func(*fakes) { return func(f *fakes) { f.all[i].locked((*held).rest) } }
	ends := func(i int) func(*fakes) { return func(f *fakes) { f.all[i].locked((*held).release) } }
	for name, tc := range map[string]struct {
		steps []func(*fakes)
		open  string // the numbers of the open ones at the end
		want  metrics.Refusals
	}{
		"room for all":         {[]func(*fakes){comes(here), comes(here), comes(there)}, "0 1 2", metrics.Refusals{}},
		"the oldest gives way": {[]func(*fakes){comes(here), comes(here), comes(here)}, "1 2", metrics.Refusals{Silent: 1}},
		"the most silent":      {[]func(*fakes){comes(here), comes(here), rests(0), comes(here)}, "0 2", metrics.Refusals{Silent: 1}},
		"one with a request":   {[]func(*fakes){comes(here), comes(here), wakes(0), comes(here)}, "0 2", metrics.Refusals{Silent: 1}},
		"after its request":    {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), rests(0), comes(here)}, "1 2", metrics.Refusals{Silent: 1}},
		"all have requests":    {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), comes(here)}, "0 1", metrics.Refusals{Source: 1}},
		"and others come":      {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), comes(here), comes(there)}, "0 1 3", metrics.Refusals{Source: 1}},
		"a /64 is one source":  {[]func(*fakes){comes(there), comes("2001:db8::2"), comes("2001:db8::3")}, "1 2", metrics.Refusals{Silent: 1}},
		"in all":               {[]func(*fakes){comes(here), comes(here), comes(there), comes(there), comes(elsewhere)}, "1 2 3 4", metrics.Refusals{Silent: 1}},
		"in all, busy":         {[]func(*fakes){comes(here), comes(here), comes(there), comes(there), wakes(0), wakes(1), wakes(2), wakes(3), comes(elsewhere)}, "0 1 2 3", metrics.Refusals{Total: 1}},
		"room again":           {[]func(*fakes){comes(here), comes(here), wakes(0), wakes(1), ends(0), ends(0), comes(here)}, "1 2", metrics.Refusals{}},
		"its only one":         {[]func(*fakes){comes(here), comes(there), comes(there), comes(proxy), wakes(1), wakes(2), wakes(3), comes(here)}, "0 1 2 3 4", metrics.Refusals{}},
		"a proxy":              {[]func(*fakes){comes(proxy), comes(proxy), comes(proxy), comes(proxy), comes(proxy)}, "1 2 3 4", metrics.Refusals{Silent: 1}},
		"after the end":        {[]func(*fakes){comes(here), ends(0), rests(0), wakes(0), comes(here), comes(here)}, "1 2", metrics.Refusals{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bound{most: 4, perSource: 2, trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, log: slog.New(slog.DiscardHandler)}
			if name == "its only one" {
				b.most = 5
			}
			f := &fakes{bound: b}
			for _, step := range tc.steps {
				step(f)
			}
			var open []string
			for i, h := range f.all {
				if h != nil && !h.released {
					open = append(open, fmt.Sprint(i))
				}
			}
			check.Equal(t, "open", strings.Join(open, " "), tc.open)
			st := b.stats()
			check.Equal(t, "counted", st.Open, len(open))
			check.Equal(t, "refusals", st.Refusals, tc.want)
			for _, h := range f.all {
				if h != nil {
					h.locked((*held).release)
				}
			}
			check.Equal(t, "sources at the end", len(b.sources), 0)
			check.Equal(t, "silent at the end", b.all[connections].silent.Len(), 0)
		})
	}
}

// fakes are connections. A refused one is nil.
type fakes struct {
	bound *bound
	all   []*held
}

func (f *fakes) comes(from string) {
	f.all = append(f.all, f.bound.take(connections, netip.MustParseAddr(from), func() {}))
}

// smallServer returns a server with 16 connections, 4 for each source. It answers each complete
// request.
func smallServer(t *testing.T, cfg *config.Config, log io.Writer) *Server {
	t.Helper()
	s, err := New(t.Context(), cfg, Options{Logger: NewLogger(cfg.Log, log), Memory: 1})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check.OK(t, <-ended)
	})
	return s
}

// dial connects from a loopback address and sends the request.
func dial(t *testing.T, from, to, request string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	check.OK(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, request)
	check.OK(t, err)
	return c
}

// answered reports whether the answer has status 200.
func answered(c net.Conn) bool {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}

// TestOneSourceTakesNoRoomOfOthers checks that others are served whatever an address does with its
// connections, and that the address itself is served too.
func TestOneSourceTakesNoRoomOfOthers(t *testing.T) {
	const get = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, tc := range map[string]struct{ first string }{
		"silent from the start": {""},
		"a slow header":         {"GET /healthz HTTP/1.1\r\nHost:"},
		"a slow body":           {"POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 65536\r\n\r\ngrant_type="},
		"idle":                  {get},
	} {
		t.Run(name, func(t *testing.T) {
			var log check.Buffer
			cfg := testConfig(t)
			cfg.AdminListen = "127.0.0.1:0"
			s := smallServer(t, cfg, &log)
			for _, address := range []string{s.Addr(), s.AdminAddr()} {
				for range 100 {
					c := dial(t, "127.0.0.1", address, tc.first)
					if tc.first == get {
						check.Equal(t, "served", answered(c), true)
					}
				}
				for _, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.1"} {
					check.Equal(t, from+" is served", answered(dial(t, from, address, get)), true)
				}
			}
			st := s.base.bounds.clients.stats()
			if st.Open > 16 || st.Silent < 90 {
				t.Errorf("clients: %+v", st)
			}
			check.Equal(t, "lines", strings.Count(log.String(), "too many connections"), 2) // one for each listener
		})
	}
}

// TestStreamsAreBounded checks that HTTP/2 requests without their bodies make room for others, also
// from the same address.
func TestStreamsAreBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.TLS = certificateFiles(t)
	cert := writeCertificate(t, cfg.TLS, 1)
	s := smallServer(t, cfg, io.Discard)
	trust := &tls.Config{RootCAs: pool(cert), ServerName: "127.0.0.1", NextProtos: []string{"h2"}}
	c, err := tls.Dial("tcp", s.Addr(), trust)
	check.OK(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, http2.ClientPreface)
	check.OK(t, err)
	f := http2.NewFramer(c, c)
	check.OK(t, f.WriteSettings())
	go func() { _, _ = io.Copy(io.Discard, c) }()
	var head bytes.Buffer
	e := hpack.NewEncoder(&head)
	for stream := uint32(1); stream < 40; stream += 2 {
		head.Reset()
		for _, field := range [][2]string{
			{":method", "POST"},
			{":scheme", "https"},
			{":authority", "x"},
			{":path", "/token"},
			{"content-type", "application/x-www-form-urlencoded"},
			{"content-length", "65536"},
		} {
			check.OK(t, e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
		}
		check.OK(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true}))
	}
	check.Eventually(t, "the first of twenty are ended", func() bool { return s.base.bounds.clients.stats().Silent == 16 })
	check.Equal(t, "under way", s.base.bounds.clients.stats().Requests, 4)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Addr()+"/healthz", http.NoBody)
	check.OK(t, err)
	res, err := client.Do(req)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, "status of a good one", res.StatusCode, http.StatusOK)
}

// TestHTTP2IsBounded checks how much a connection can make the server allocate before anything
// useful has arrived.
func TestHTTP2IsBounded(t *testing.T) {
	h2 := newHTTPServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler)).HTTP2
	for name, v := range map[string]struct{ got, most int }{
		"streams":                    {h2.MaxConcurrentStreams, 100},
		"frame":                      {h2.MaxReadFrameSize, 16 << 10},
		"unread data":                {h2.MaxReceiveBufferPerStream, 128 << 10},
		"unread data of all streams": {h2.MaxReceiveBufferPerConnection, 128 << 10},
		"stalled writes":             {int(h2.WriteByteTimeout.Seconds()), 60},
	} {
		if v.got <= 0 || v.got > v.most {
			t.Errorf("%s: %d, want at most %d", name, v.got, v.most)
		}
	}
}
