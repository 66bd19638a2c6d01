package mongo

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestOpenFails: each fault has its own error, within the timeout, and no error repeats the
// password.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	const password = "s3cr3t"
	uri, _ := mongotest.Database(t)
	server, _, _ := strings.Cut(uri, "/?")
	server = strings.TrimSuffix(server, "/")
	refuses := fakeServer(t, bson.D{
		{Key: "ok", Value: 0},
		{Key: "code", Value: 18},
		{Key: "codeName", Value: "AuthenticationFailed"},
		{Key: "errmsg", Value: "Authentication failed."},
	})
	for _, test := range []struct {
		name, uri string
		want      error
		says      string
	}{
		{"no URI", "", ErrURI, ""},
		{"another scheme", "postgres://me:" + password + "@localhost/", ErrURI, `must begin with mongodb:// or mongodb+srv://`},
		{"no host", "mongodb://", ErrURI, ""},
		{"an unknown port", "mongodb://localhost:port", ErrURI, "port"},
		{"a password not encoded", "mongodb://me:" + password + "/%zz@localhost/", ErrURI, "percent-encode"},
		{"a bad option", "mongodb://me:" + password + "@localhost/?w=-3", ErrURI, "w"},
		{"a bad option beside a secret", "mongodb://localhost/?w=-3&tlsCertificateKeyFilePassword=" + password, ErrURI, "options"},
		{"a password with an at sign", "mongodb://me:x@" + password + "@%zz/", ErrURI, ""},
		{"contradicting options", "mongodb://me:" + password + "@a,b/?directConnection=true", ErrURI, "direct"},
		{"wrong password", "mongodb://me:" + password + "@" + refuses + "/?authSource=admin", ErrAuth, refuses},
		{"no listener", "mongodb://me:" + password + "@127.0.0.1:1/", ErrUnreachable, "127.0.0.1:1"},
		{"no answer", "mongodb://me:" + password + "@" + silent(t) + "/", ErrUnreachable, ""},
		{"no such host", "mongodb://me:" + password + "@no-such-host.invalid/", ErrUnreachable, "no-such-host.invalid"},
		{"no such service", "mongodb+srv://me:" + password + "@no-such-host.invalid/", ErrUnreachable, "no-such-host.invalid"},
		{"another replica set", server + "/?replicaSet=stray", ErrReplicaSet, "stray"},
		{"not the protocol", "mongodb://me:" + password + "@" + babbling(t) + "/", ErrUnreachable, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // most of them wait for a timeout
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := Open(ctx, Options{URI: test.uri, Database: "oauth"})
			if ctx.Err() != nil {
				t.Error("it took more than 3 seconds")
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v, want %v with %q", err, test.want, test.says)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// silent listens and never answers.
func silent(t *testing.T) string {
	t.Helper()
	return serve(t, func(net.Conn) {})
}

// babbling answers in another protocol.
func babbling(t *testing.T) string {
	t.Helper()
	return serve(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
}

func serve(t *testing.T, greet func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			greet(conn)
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestClosed(t *testing.T) {
	uri, database := mongotest.Database(t)
	s, err := Open(t.Context(), Options{URI: uri, Database: database})
	check.OK(t, err)
	_, err = s.Now(t.Context())
	check.OK(t, err, "now")
	for range 2 {
		check.OK(t, s.Close(), "close")
	}
	_, err = s.Now(t.Context())
	check.ErrorIs(t, err, mongo.ErrClientDisconnected, "now after close")
}

// TestNoSecretInErrors: whatever characters a password has, and wherever the URI is broken, no
// error repeats it.
func TestNoSecretInErrors(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		password := "s3cr3t" + rapid.StringMatching(`[ -~]{0,8}`).Draw(t, "password")
		uri := "mongodb://me:" + password + "@" + rapid.StringMatching(`[a-z%:/?&=,@]{0,12}`).Draw(t, "rest")
		_, err := parseURI(context.Background(), uri)
		if err == nil {
			return
		}
		refused++
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Fatalf("%q is refused with %q", uri, err)
		}
	})
	if refused == 0 {
		t.Error("nothing was ever refused: the test is blind")
	}
}

// TestConnections: the driver opens as many connections as the URI allows, or its default.
func TestConnections(t *testing.T) {
	uri, database := mongotest.Database(t)
	for option, want := range map[string]int{"": 100, "maxPoolSize=7": 7, "maxPoolSize=0": 100} {
		u, err := url.Parse(uri)
		check.OK(t, err)
		u.Path = "/"
		if option != "" {
			u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+option, "&")
		}
		s, err := Open(t.Context(), Options{URI: u.String(), Database: database})
		check.OK(t, err)
		check.Equal(t, "connections with "+option, s.Connections(), want)
		check.OK(t, s.Close())
	}
}
