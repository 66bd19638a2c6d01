package mongotest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"oauth-server/internal/store/mongo/wire"
)

// Fault is what the proxy does with one request.
type Fault int

// The faults. All except the first close the client's connection, so the client does not know the
// outcome of the request.
const (
	Pass        Fault = iota
	LoseRequest       // the server never receives it
	LoseReply         // the server executes it, and its reply is dropped
	Delay             // the server receives it at the next [Proxy.Deliver]
)

// Proxy relays messages of MongoDB's protocol between the driver and a server. Depending on its
// rule it loses, delays or alters them.
type Proxy struct {
	URI string // URI of the server through the proxy

	listener *wire.Listener

	mu      sync.Mutex
	decide  func(command string) Fault
	down    bool
	clients map[net.Conn]bool
	delayed []wire.Message

	alteration Alteration // under mu, like the others
}

// NewProxy starts a proxy to the server of that URI. It ends with the test.
func NewProxy(tb testing.TB, uri string) *Proxy {
	tb.Helper()
	listener, err := wire.Listen(tb.Context(), uri)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{URI: listener.URI, listener: listener, clients: map[net.Conn]bool{}}
	go p.accept()
	tb.Cleanup(func() {
		_ = listener.Close()
		p.Break()
	})
	return p
}

// Decide sets the rule for faults. It is called for each request, with the name of its command,
// such as "update". Nil lets everything pass.
func (p *Proxy) Decide(rule func(command string) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = rule
}

// Break closes all connections and refuses new ones until [Proxy.Restore].
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.clients {
		_ = c.Close()
	}
}

// Restore admits connections again.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Deliver sends the delayed requests to the server, in their order, and waits for each reply. It
// returns the number of requests.
func (p *Proxy) Deliver() (int, error) {
	p.mu.Lock()
	delayed := p.delayed
	p.delayed = nil
	p.mu.Unlock()
	var errs []error
	for _, m := range delayed {
		errs = append(errs, p.deliver(m))
	}
	return len(delayed), errors.Join(errs...)
}

func (p *Proxy) deliver(m wire.Message) error {
	server, err := p.listener.Dial(context.Background()) //nolint:forbidigo // connections end with the proxy
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	_, err = roundTrip(server, m)
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.admit(client) {
			_ = client.Close()
			continue
		}
		go p.serve(client)
	}
}

func (p *Proxy) admit(client net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return false
	}
	p.clients[client] = true
	return true
}

// serve relays one request after the other, and the reply to each, until the connection is to
// close.
func (p *Proxy) serve(client net.Conn) {
	defer func() {
		p.mu.Lock()
		delete(p.clients, client)
		p.mu.Unlock()
		_ = client.Close()
	}()
	server, err := p.listener.Dial(context.Background()) //nolint:forbidigo // connections end with the proxy
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	for p.relay(client, server) {
		continue
	}
}

// relay relays one request and its reply. It returns false if the connection is to close.
func (p *Proxy) relay(client, server net.Conn) (open bool) {
	request, err := wire.Read(client)
	if err != nil {
		return false
	}
	fault := p.fault(request)
	if fault == LoseRequest || fault == Delay {
		return false
	}
	reply, err := p.forward(server, request)
	if err != nil || fault == LoseReply {
		return false
	}
	_, err = client.Write(reply)
	return err == nil
}

// fault returns the fault of a request, and stores a delayed request.
func (p *Proxy) fault(request wire.Message) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.decide == nil {
		return Pass
	}
	fault := p.decide(commandName(request))
	if fault == Delay {
		p.delayed = append(p.delayed, request)
	}
	return fault
}
