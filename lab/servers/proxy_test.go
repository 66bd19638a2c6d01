package servers

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/wire"
)

func message(t *testing.T, command bson.D) wire.Message {
	t.Helper()
	m, err := wire.New(command, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCommandOf(t *testing.T) {
	oldGreeting := message(t, bson.D{{Key: "isMaster", Value: 1}})
	binary.LittleEndian.PutUint32(oldGreeting[12:], 2004)
	for want, m := range map[string]wire.Message{
		"find clients": message(t, bson.D{{Key: "find", Value: "clients"}, {Key: "filter", Value: bson.D{}}}),
		"getMore":      message(t, bson.D{{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "x"}}),
		Driver:         oldGreeting,
		"ping":         message(t, bson.D{{Key: "ping", Value: 1}}),
	} {
		if got := commandOf(m); got != want {
			t.Errorf("command %q, want %q", got, want)
		}
	}
	for _, name := range []string{"isMaster", "ismaster", "hello"} {
		if got := commandOf(message(t, bson.D{{Key: name, Value: 1}})); got != Driver {
			t.Errorf("the command of the greeting %s is %q", name, got)
		}
	}
}

// What passes the proxy arrives as it was, and is counted.
func TestProxyCounts(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	p, err := NewProxy(t.Context(), "mongodb://"+server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	client, err := net.Dial("tcp", strings.TrimPrefix(p.URI, "mongodb://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	upstream, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = upstream.Close() }()
	question := message(t, bson.D{{Key: "find", Value: "clients"}})
	reply := message(t, bson.D{{Key: "ok", Value: 1}})
	binary.LittleEndian.PutUint32(reply[8:], 1) // what it answers
	for range 2 {
		for _, step := range []struct {
			from, to net.Conn
			m        wire.Message
		}{{client, upstream, question}, {upstream, client, reply}} {
			if _, err := step.from.Write(step.m); err != nil {
				t.Fatal(err)
			}
			got, err := wire.Read(step.to)
			if err != nil || string(got) != string(step.m) {
				t.Fatalf("got %q, %v", got, err)
			}
		}
	}
	want := Traffic{Commands: 2, Sent: int64(2 * len(question)), Received: int64(2 * len(reply))}
	if diff := cmp.Diff(map[string]Traffic{"find clients": want}, p.Traffic()); diff != "" {
		t.Error(diff)
	}
}

func TestUpdatesOf(t *testing.T) {
	none := bson.D{}
	for want, command := range map[int64]bson.D{
		0: {{Key: "find", Value: "x"}},
		1: {{Key: "findAndModify", Value: "x"}, {Key: "update", Value: none}},
		2: {{Key: "update", Value: "x"}, {Key: "updates", Value: bson.A{none, none}}},
	} {
		if got := updatesOf(message(t, command)); got != want {
			t.Errorf("%v: %d updates, want %d", command, got, want)
		}
	}
}
