package servers

import (
	"context"
	"encoding/binary"
	"maps"
	"net"
	"sync"

	"oauth-server/internal/store/mongo/wire"
)

// Traffic counts the messages to MongoDB and back.
type Traffic struct{ Commands, Updates, Sent, Received int64 } // the last two are bytes

// Proxy relays the messages between servers and MongoDB, and counts them.
type Proxy struct {
	*wire.Listener

	mu      sync.Mutex
	traffic map[string]Traffic // by command and collection
	asked   map[uint32]string  // commands without a reply, by request ID. Two server processes may use the same ID
}

// NewProxy starts a proxy before the MongoDB at the URI. It ends when it is closed and its connections have ended.
func NewProxy(ctx context.Context, uri string) (*Proxy, error) {
	l, err := wire.Listen(ctx, uri)
	if err != nil {
		return nil, err
	}
	p := &Proxy{Listener: l, traffic: map[string]Traffic{}, asked: map[uint32]string{}}
	go p.serve(ctx)
	return p, nil
}

// serve connects each client to MongoDB until the listener is closed, and counts each message before passing it on.
func (p *Proxy) serve(ctx context.Context) {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := p.Dial(ctx)
		if err != nil {
			_ = client.Close()
			continue
		}
		go relay(server, client, p.command)
		go relay(client, server, p.reply)
	}
}

// relay passes on messages until one of the connections ends, and then ends the other.
func relay(to, from net.Conn, count func(wire.Message)) {
	defer func() { _ = to.Close() }()
	for {
		m, err := wire.Read(from)
		if err != nil {
			return
		}
		count(m)
		if _, err := to.Write(m); err != nil {
			return
		}
	}
}

// Traffic returns the traffic so far, by command and collection, such as "find clients".
func (p *Proxy) Traffic() map[string]Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.traffic)
}

// command counts a message to MongoDB.
func (p *Proxy) command(m wire.Message) {
	name := commandOf(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.traffic[name]
	t.Commands++
	t.Updates += updatesOf(m)
	t.Sent += int64(len(m))
	p.traffic[name] = t
	p.asked[binary.LittleEndian.Uint32(m[4:])] = name
}

// reply counts a message of MongoDB, for the command that it answers.
func (p *Proxy) reply(m wire.Message) {
	id := binary.LittleEndian.Uint32(m[8:])
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.asked[id]
	delete(p.asked, id)
	t := p.traffic[name]
	t.Received += int64(len(m))
	p.traffic[name] = t
}

// Driver is the name of what MongoDB's driver sends by itself.
const Driver = "hello"

// commandOf returns the command of a message with the collection, such as "find clients".
func commandOf(m wire.Message) string {
	name, collection := m.Command()
	if collection != "" {
		return name + " " + collection
	}
	switch name {
	case "", "isMaster", "ismaster": // without a name it is a greeting of the old form
		return Driver
	}
	return name
}

// updatesOf counts the updates of a command.
func updatesOf(m wire.Message) int64 {
	switch name, _ := m.Command(); name {
	case "findAndModify":
		return 1
	case "update":
		body, err := m.Document()
		if err != nil {
			return 0
		}
		list, ok := body.Lookup("updates").ArrayOK()
		if !ok {
			return 0
		}
		all, _ := list.Values()
		return int64(len(all))
	}
	return 0
}
