package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// smallServer returns a server with 16 connections, 4 for each source. It answers each complete
// request.
func smallServer(t *testing.T, cfg *config.Config, log io.Writer) *Server {
	t.Helper()
	s, err := New(t.Context(), cfg, Options{Logger: newLogger(cfg.Log, log), Memory: 1})
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
//
// Attack (connections): One address holds all connections. Connections are bounded in total and
// per source. A new one replaces the longest silent one. The admin listener has its own bound.
// Also connbound.TestBound.
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
			st := s.base.bounds.Stats()[0]
			if st.Open > 16 || st.Silent < 90 {
				t.Errorf("clients: %+v", st)
			}
			check.Equal(t, "lines", strings.Count(log.String(), "too many connections"), 2) // one for each listener
		})
	}
}

// TestStreamsAreBounded checks that HTTP/2 requests without their bodies make room for others, also
// from the same address.
//
// Attack (connections): Many HTTP/2 requests on one connection. Streams are bounded like
// connections.
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
	check.Eventually(t, "the first of twenty are ended", func() bool { return s.base.bounds.Stats()[0].Silent == 16 })
	check.Equal(t, "under way", s.base.bounds.Stats()[0].Requests, 4)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Addr()+"/healthz", http.NoBody)
	check.OK(t, err)
	res, err := client.Do(req)
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, "status of a good one", res.StatusCode, http.StatusOK)
}
