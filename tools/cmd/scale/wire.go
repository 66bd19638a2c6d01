package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"net/url"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson" //nolint:depguard // reads what is on the wire
)

// wire relays the messages between servers and MongoDB, and counts them.
type wire struct {
	uri      string // of MongoDB, as seen through it
	upstream string
	listener net.Listener

	mu       sync.Mutex
	commands map[string]int // by name and collection
	received int64          // bytes of answers
}

func newWire(ctx context.Context, uri string) (*wire, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{upstream: u.Host, listener: l, commands: map[string]int{}}
	u.Host = l.Addr().String()
	w.uri = u.String()
	go w.accept()
	return w, nil
}

func (w *wire) close() error { return w.listener.Close() }

// counts returns the commands so far, by name and collection, and the bytes of the answers.
func (w *wire) counts() (map[string]int, int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.commands), w.received
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.upstream) //nolint:noctx // ends with the connection of the client
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_ = w.relay(server, client, func(m []byte) { w.commands[commandOf(m)]++ })
			_ = server.Close()
		}()
		go func() {
			_ = w.relay(client, server, func(m []byte) { w.received += int64(len(m)) })
			_ = client.Close()
		}()
	}
}

// relay copies messages, and shows each before it is sent.
func (w *wire) relay(to io.Writer, from io.Reader, count func(message []byte)) error {
	for {
		m, err := readMessage(from)
		if err != nil {
			return err
		}
		w.mu.Lock()
		count(m)
		w.mu.Unlock()
		if _, err := to.Write(m); err != nil {
			return err
		}
	}
}

const headerSize, maxMessage = 16, 48 << 20

func readMessage(from io.Reader) ([]byte, error) {
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head)
	if size < headerSize || size > maxMessage {
		return nil, errors.New("no message of MongoDB's protocol")
	}
	m := make([]byte, size)
	copy(m, head)
	_, err := io.ReadFull(from, m[headerSize:])
	return m, err
}

// driver is the name of what the driver sends by itself.
const driver = "hello"

// commandOf returns the command of a message with the collection, such as "find clients".
func commandOf(m []byte) string {
	const opMsg, flags, kind = 2013, 4, 1
	if binary.LittleEndian.Uint32(m[12:]) != opMsg || len(m) <= headerSize+flags+kind {
		return driver // a greeting of the old form
	}
	first, err := bson.Raw(m[headerSize+flags+kind:]).IndexErr(0)
	if err != nil {
		return driver
	}
	if collection, ok := first.Value().StringValueOK(); ok {
		return first.Key() + " " + collection
	}
	switch first.Key() {
	case "isMaster", "ismaster", driver:
		return driver
	}
	return first.Key()
}
