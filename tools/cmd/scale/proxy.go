package main

import (
	"context"
	"io"
	"maps"
	"sync"

	"oauth-server/internal/store/mongo/wire"
)

// proxy relays the messages between servers and MongoDB, and counts them.
type proxy struct {
	*wire.Listener

	mu       sync.Mutex
	commands map[string]int // by name and collection
	received int64          // bytes of answers
}

func newProxy(ctx context.Context, uri string) (*proxy, error) {
	l, err := wire.Listen(ctx, uri)
	if err != nil {
		return nil, err
	}
	p := &proxy{Listener: l, commands: map[string]int{}}
	go p.accept(ctx)
	return p, nil
}

// counts returns the commands so far, by name and collection, and the bytes of the answers.
func (p *proxy) counts() (map[string]int, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.commands), p.received
}

func (p *proxy) accept(ctx context.Context) {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := p.Dial(ctx) // it ends with the connection of the client
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_ = p.relay(server, client, func(m wire.Message) { p.commands[commandOf(m)]++ })
			_ = server.Close()
		}()
		go func() {
			_ = p.relay(client, server, func(m wire.Message) { p.received += int64(len(m)) })
			_ = client.Close()
		}()
	}
}

// relay copies messages, and shows each before it is sent.
func (p *proxy) relay(to io.Writer, from io.Reader, count func(m wire.Message)) error {
	for {
		m, err := wire.Read(from)
		if err != nil {
			return err
		}
		p.mu.Lock()
		count(m)
		p.mu.Unlock()
		if _, err := to.Write(m); err != nil {
			return err
		}
	}
}

// driver is the name of what the driver sends by itself.
const driver = "hello"

// commandOf returns the command of a message with the collection, such as "find clients".
func commandOf(m wire.Message) string {
	name, collection := m.Command()
	if collection != "" {
		return name + " " + collection
	}
	switch name {
	case "", "isMaster", "ismaster": // without a name it is a greeting of the old form
		return driver
	}
	return name
}
