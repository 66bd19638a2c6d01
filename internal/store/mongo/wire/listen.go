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

// Relay connects each client to the server until the listener is closed. It calls command or reply
// with each message before passing it on, from many goroutines at once.
func (l *Listener) Relay(ctx context.Context, command, reply func(Message)) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := l.Dial(ctx)
		if err != nil {
			_ = client.Close()
			continue
		}
		go relay(server, client, command)
		go relay(client, server, reply)
	}
}

// relay passes on messages until one of the connections ends, and then ends the other.
func relay(to, from net.Conn, show func(Message)) {
	defer func() { _ = to.Close() }()
	for {
		m, err := Read(from)
		if err != nil {
			return
		}
		show(m)
		if _, err := to.Write(m); err != nil {
			return
		}
	}
}
