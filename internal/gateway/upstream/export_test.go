package upstream

import (
	"context"
	"net"
)

// Idle returns the number of idle connections.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Wrap wraps all further connections, below their TLS.
func (p *Pool) Wrap(wrap func(net.Conn) net.Conn) {
	dial := p.dialer
	p.dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return wrap(c), nil
	}
}
