package mongotest

import (
	"encoding/binary"
	"net"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Alteration makes a server behave like another one. Each function may be nil. Commands and replies
// are documents, the writes of a command an array in it.
type Alteration struct {
	// Answer returns the reply to a command. If it is nil, the server gets the command.
	Answer func(command bson.D) bson.D
	// Request returns the command that the server gets.
	Request func(command bson.D) bson.D
	// Reply returns the reply that the client gets.
	Reply func(command, reply bson.D) bson.D
}

// Alter changes what passes through the proxy from now on.
func (p *Proxy) Alter(a Alteration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alteration = a
}

// forward sends a request to the server and returns its reply, both altered.
func (p *Proxy) forward(server net.Conn, request message) (message, error) {
	p.mu.Lock()
	a := p.alteration
	p.mu.Unlock()
	if request.command() == "" || a.Answer == nil && a.Request == nil && a.Reply == nil {
		return roundTrip(server, request)
	}
	command, err := request.decoded()
	if err != nil {
		return nil, err
	}
	id := binary.LittleEndian.Uint32(request[4:])
	if a.Answer != nil {
		if answer := a.Answer(command); answer != nil {
			return newMessage(answer, 0, id)
		}
	}
	if a.Request != nil {
		if request, err = newMessage(a.Request(command), id, 0); err != nil {
			return nil, err
		}
	}
	reply, err := roundTrip(server, request)
	if err != nil || a.Reply == nil {
		return reply, err
	}
	doc, err := reply.decoded()
	if err != nil {
		return nil, err
	}
	return newMessage(a.Reply(command, doc), 0, id)
}

func roundTrip(server net.Conn, request message) (reply message, err error) {
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// decoded returns the whole command or reply, with the documents in it as bson.D.
func (m message) decoded() (command bson.D, err error) {
	raw, err := m.document()
	if err != nil {
		return nil, err
	}
	return command, bson.Unmarshal(raw, &command)
}

// newMessage returns an OP_MSG of one document.
func newMessage(doc bson.D, id, responseTo uint32) (message, error) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	m := le.AppendUint32(nil, uint32(16+5+len(raw))) //nolint:gosec // a test's document
	m = le.AppendUint32(m, id)
	m = le.AppendUint32(m, responseTo)
	m = le.AppendUint32(m, opMsg)
	m = append(m, 0, 0, 0, 0, 0) // no flags, a section of kind 0
	return append(m, raw...), nil
}
