package sharing_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// traffic is what was sent to the collection of counters.
type traffic struct{ updates, commands, bytes int64 }

func (t *traffic) add(o traffic) {
	t.updates += o.updates
	t.commands += o.commands
	t.bytes += o.bytes
}

// wire stands between the driver and the database, and counts. Bytes are those of commands and of their replies.
type wire struct {
	uri        string
	collection string
	upstream   string

	mu     sync.Mutex
	so     traffic
	closed bool
	conns  map[net.Conn]bool
}

func newWire(tb testing.TB, uri, collection string) *wire {
	tb.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w := &wire{collection: collection, upstream: u.Host, conns: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	w.uri = u.String()
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			relays.Go(func() { w.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		w.close()
		relays.Wait()
	})
	return w
}

// close ends all connections.
func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for c := range w.conns {
		_ = c.Close()
	}
}

// counted returns what has passed by now.
func (w *wire) counted() traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.so
}

func (w *wire) register(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	return !w.closed
}

// serve relays one request after the other, and the reply to each.
func (w *wire) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", w.upstream)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	for open := w.register(client) && w.register(server); open; {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		t := w.classify(request)
		if _, err := server.Write(request); err != nil {
			return
		}
		reply, err := readMessage(server)
		if err != nil {
			return
		}
		if t.commands > 0 {
			t.bytes += int64(len(reply))
			w.mu.Lock()
			w.so.add(t)
			w.mu.Unlock()
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

const headerSize, opMsg, maxMessage = 16, 2013, 48 << 20

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

// classify returns what a command of the collection counts as; nothing for others.
func (w *wire) classify(m []byte) (t traffic) {
	if binary.LittleEndian.Uint32(m[12:]) != opMsg {
		return t
	}
	sequences := 0
	for rest := m[headerSize+4:]; len(rest) > 4; {
		size := int(binary.LittleEndian.Uint32(rest[1:]))
		section := rest[1 : 1+size]
		if rest[0] == 0 {
			command, err := bson.Raw(section).IndexErr(0)
			if err != nil {
				return traffic{}
			}
			if name, _ := command.Value().StringValueOK(); name != w.collection {
				return traffic{}
			}
			t.commands, t.bytes = 1, int64(len(m))
			t.updates = statements(bson.Raw(section), command.Key())
		} else {
			sequences += documents(section[4:])
		}
		rest = rest[1+size:]
	}
	t.updates += int64(sequences)
	return t
}

// statements counts the updates in the body of a command.
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

// documents counts those of a sequence, which begins with its name.
func documents(sequence []byte) (n int) {
	for i, c := range sequence {
		if c == 0 {
			sequence = sequence[i+1:]
			break
		}
	}
	for len(sequence) > 4 {
		sequence = sequence[binary.LittleEndian.Uint32(sequence):]
		n++
	}
	return n
}
