package check

import (
	"net"
	"testing"
)

// Connected returns the two ends of a TCP connection. That of the server is closed at the end of the test; the client's is for
// the test to close, as one that hangs up.
func Connected(tb testing.TB) (client, server net.Conn) {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	OK(tb, err)
	client, err = new(net.Dialer).DialContext(tb.Context(), "tcp", l.Addr().String())
	OK(tb, err)
	server, err = l.Accept()
	OK(tb, err)
	OK(tb, l.Close())
	tb.Cleanup(func() { OK(tb, server.Close()) })
	return client, server
}
