package main

import (
	"context"
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
	go l.Relay(ctx,
		func(m wire.Message) { p.count(func() { p.commands[commandOf(m)]++ }) },
		func(m wire.Message) { p.count(func() { p.received += int64(len(m)) }) })
	return p, nil
}

// counts returns the commands so far, by name and collection, and the bytes of the answers.
func (p *proxy) counts() (map[string]int, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.commands), p.received
}

func (p *proxy) count(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
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
