package sharing_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/wire"
)

// traffic is what was sent to the collection of counters.
type traffic struct{ updates, commands, bytes int64 }

func (t *traffic) add(o traffic) {
	t.updates += o.updates
	t.commands += o.commands
	t.bytes += o.bytes
}

// proxy stands between the driver and the database, and counts. Bytes are those of commands and of their replies.
type proxy struct {
	*wire.Listener
	collection string

	mu     sync.Mutex
	so     traffic
	closed bool
	conns  map[net.Conn]bool
}

func newProxy(tb testing.TB, uri, collection string) *proxy {
	tb.Helper()
	listener, err := wire.Listen(tb.Context(), uri)
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{Listener: listener, collection: collection, conns: map[net.Conn]bool{}}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			relays.Go(func() { p.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		p.close()
		relays.Wait()
	})
	return p
}

// close ends all connections.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// counted returns what has passed by now.
func (p *proxy) counted() traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.so
}

func (p *proxy) register(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return !p.closed
}

// serve relays one request after the other, and the reply to each.
func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := p.Dial(context.Background())
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	for open := p.register(client) && p.register(server); open; {
		request, err := wire.Read(client)
		if err != nil {
			return
		}
		t := p.classify(request)
		if _, err := server.Write(request); err != nil {
			return
		}
		reply, err := wire.Read(server)
		if err != nil {
			return
		}
		if t.commands > 0 {
			t.bytes += int64(len(reply))
			p.mu.Lock()
			p.so.add(t)
			p.mu.Unlock()
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// classify returns what a command of the collection counts as; nothing for others.
func (p *proxy) classify(m wire.Message) traffic {
	name, collection := m.Command()
	if collection != p.collection {
		return traffic{}
	}
	command, err := m.Document()
	if err != nil {
		return traffic{}
	}
	return traffic{updates: statements(command, name), commands: 1, bytes: int64(len(m))}
}

// statements counts the updates of a command.
func statements(body bson.Raw, command string) int64 {
	if command == "findAndModify" {
		return 1
	}
	list, ok := body.Lookup("updates").ArrayOK()
	if !ok {
		return 0
	}
	all, err := list.Values()
	if err != nil {
		return 0
	}
	return int64(len(all))
}

func TestClassify(t *testing.T) {
	p := &proxy{collection: collection}
	none := bson.D{}
	for name, tc := range map[string]struct {
		command bson.D
		want    traffic // without the bytes
	}{
		"update":           {bson.D{{Key: "update", Value: collection}, {Key: "updates", Value: bson.A{none, none}}}, traffic{updates: 2, commands: 1}},
		"increment":        {bson.D{{Key: "findAndModify", Value: collection}, {Key: "update", Value: none}}, traffic{updates: 1, commands: 1}},
		"read":             {bson.D{{Key: "find", Value: collection}}, traffic{commands: 1}},
		"other collection": {bson.D{{Key: "update", Value: "other"}}, traffic{}},
		"no collection":    {bson.D{{Key: "ping", Value: 1}}, traffic{}},
	} {
		m, err := wire.New(tc.command, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		tc.want.bytes = tc.want.commands * int64(len(m))
		if got := p.classify(m); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
