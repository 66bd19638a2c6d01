package wire_test

import (
	"io"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/wire"
)

// TestListen: clients find the listener under the URI, which differs only in the host, and the
// listener finds the server.
func TestListen(t *testing.T) {
	t.Parallel()
	server, err := wire.Listen(t.Context(), "mongodb://nowhere.invalid:1/")
	check.OK(t, err)
	defer func() { check.OK(t, server.Close()) }()
	host := server.Addr().String()
	l, err := wire.Listen(t.Context(), "mongodb://ada:pw@"+host+"/db?replicaSet=rs")
	check.OK(t, err)
	defer func() { check.OK(t, l.Close()) }()
	check.Equal(t, "URI", l.URI, "mongodb://ada:pw@"+l.Addr().String()+"/db?replicaSet=rs")
	check.Equal(t, "on loopback", strings.HasPrefix(l.Addr().String(), "127.0.0.1:"), true)
	out, err := l.Dial(t.Context())
	check.OK(t, err)
	in, err := server.Accept()
	check.OK(t, err)
	_, err = io.WriteString(out, "hello")
	check.OK(t, err)
	check.OK(t, out.Close())
	got, err := io.ReadAll(in)
	check.OK(t, err)
	check.OK(t, in.Close())
	check.Equal(t, "what the server gets", string(got), "hello")
	_, err = wire.Listen(t.Context(), "mongodb://%zz")
	check.ErrorSays(t, err, "invalid URL escape")
}
