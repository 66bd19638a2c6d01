package mongo

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// opcodes of MongoDB's wire protocol.
const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

// fakeServer speaks just enough of MongoDB's protocol to be greeted, and answers every other
// command with the document it was given.
func fakeServer(t *testing.T, answer bson.D) (address string) {
	t.Helper()
	return fakeServerThat(t, greeting, answer)
}

// fakeServerThat is a fakeServer with another greeting.
func fakeServerThat(t *testing.T, greeting, answer bson.D) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveFake(conn, greeting, answer)
		}
	}()
	return listener.Addr().String()
}

var greeting = bson.D{
	{Key: "ismaster", Value: true},
	{Key: "isWritablePrimary", Value: true},
	{Key: "helloOk", Value: true},
	{Key: "minWireVersion", Value: 0},
	{Key: "maxWireVersion", Value: 21},
	{Key: "maxBsonObjectSize", Value: 16 << 20},
	{Key: "maxMessageSizeBytes", Value: 48 << 20},
	{Key: "maxWriteBatchSize", Value: 100_000},
	{Key: "saslSupportedMechs", Value: bson.A{"SCRAM-SHA-256"}},
	{Key: "ok", Value: 1},
}

func serveFake(conn net.Conn, greeting, answer bson.D) {
	defer func() { _ = conn.Close() }()
	head := make([]byte, 16)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head)-16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		reply := answer
		if command := commandName(body, binary.LittleEndian.Uint32(head[12:])); command == "hello" || command == "isMaster" || command == "ismaster" {
			reply = greeting
		}
		if _, err := conn.Write(encodeReply(head, reply)); err != nil {
			return
		}
	}
}

// commandName is the first key of the command in the body.
func commandName(body []byte, opcode uint32) string {
	if opcode == opQuery {
		rest := body[4:]
		for rest[0] != 0 { // the collection's name
			rest = rest[1:]
		}
		body = rest[1+8:]
	} else {
		body = body[4+1:] // flags, kind of the section
	}
	first, err := bson.Raw(body).IndexErr(0)
	if err != nil {
		return ""
	}
	return first.Key()
}

// encodeReply answers an OP_QUERY with an OP_REPLY and an OP_MSG with its like.
func encodeReply(request []byte, doc bson.D) []byte {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	opcode, prefix := uint32(opMsg), make([]byte, 5) // no flags, one section of kind 0
	if binary.LittleEndian.Uint32(request[12:]) == opQuery {
		opcode, prefix = opReply, make([]byte, 20)
		prefix[16] = 1 // one document
	}
	le := binary.LittleEndian
	out := le.AppendUint32(nil, uint32(16+len(prefix)+len(raw)))
	out = le.AppendUint32(out, 0)
	out = append(out, request[4:8]...) // in response to
	out = le.AppendUint32(out, opcode)
	return append(append(out, prefix...), raw...)
}
