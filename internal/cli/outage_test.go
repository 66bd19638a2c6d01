package cli

import (
	"io"
	"net"
	"sync"
	"testing"

	"oauth-server/internal/check"
)

// proxy stands between a server and its database, and can be cut.
type proxy struct {
	t      *testing.T
	target string

	mu       sync.Mutex
	listener net.Listener
	address  string
	conns    []net.Conn
}

func newProxyAt(t *testing.T, address, target string) *proxy {
	t.Helper()
	p := &proxy{t: t, target: target, address: address}
	p.mend()
	t.Cleanup(p.cut)
	return p
}

// mend lets connections through.
func (p *proxy) mend() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.address)
	check.OK(p.t, err)
	p.mu.Lock()
	p.listener, p.address = l, l.Addr().String()
	p.mu.Unlock()
	go p.serve(l)
}

// cut ends all connections and takes no more.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(l net.Listener) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		go pipe(from, to)
		go pipe(to, from)
	}
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
