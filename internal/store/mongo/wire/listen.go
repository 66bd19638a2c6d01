package wire

import (
	"context"
	"net"
	"net/url"
)

// Listener accepts a server's clients on a free port of the loopback address.
type Listener struct {
	net.Listener
	// URI is the URI of the server through the listener.
	URI string

	upstream string
}

// Listen listens for clients of the server at uri, which names one host.
func Listen(ctx context.Context, uri string) (*Listener, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	upstream := u.Host
	u.Host = l.Addr().String()
	return &Listener{Listener: l, URI: u.String(), upstream: upstream}, nil
}

// Dial connects to the server. The connection does not end with ctx.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", l.upstream)
}
