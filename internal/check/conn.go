package check

import (
	"net"
	"testing"
)

// Connected returns the two ends of a TCP connection. The server's end is closed when the test
// ends. The test closes the client's end itself, like a client that disconnects.
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
