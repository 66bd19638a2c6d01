package mongo

import (
	"encoding/binary"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"oauth-server/internal/store/mongo/wire"
)

// fakeServer speaks just enough of MongoDB's protocol to answer a greeting, and answers every other
// command with the given document.
func fakeServer(t *testing.T, answer bson.D) (address string) {
	t.Helper()
	return fakeServerThat(t, greeting, answer)
}

// fakeServerThat is a fakeServer with another greeting.
func fakeServerThat(t *testing.T, greeting, answer bson.D) (address string) {
	t.Helper()
	return serve(t, func(conn net.Conn) { go serveFake(conn, greeting, answer) })
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
	for {
		m, err := wire.Read(conn)
		if err != nil {
			return
		}
		doc := answer
		name, _ := m.Command()
		if name == "" || name == "hello" || name == "isMaster" || name == "ismaster" {
			doc = greeting
		}
		reply, err := wire.New(doc, 0, m.ID())
		if name == "" {
			reply = oldReply(reply)
		}
		if err == nil {
			_, err = conn.Write(reply)
		}
		if err != nil {
			return
		}
	}
}

// oldReply converts an OP_MSG to an OP_REPLY, the reply to a greeting of the old form.
func oldReply(m wire.Message) wire.Message {
	const header, flagsAndKind = 16, 5
	reply := binary.LittleEndian.AppendUint32(make(wire.Message, header+16), 1) // one document
	copy(reply, m[:header])
	reply = append(reply, m[header+flagsAndKind:]...)
	binary.LittleEndian.PutUint32(reply, uint32(len(reply)))
	binary.LittleEndian.PutUint32(reply[12:], uint32(wiremessage.OpReply))
	return reply
}
