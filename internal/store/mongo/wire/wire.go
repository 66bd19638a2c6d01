// Package wire reads and makes messages of MongoDB's wire protocol, for programs between a driver
// and a server: the proxies of tests and of lab. It starts no server. It reads compressed messages
// like any other, but no command in them. Driver and server must have agreed on compression before.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// Message is one message as sent, header included. It comes from [Read] or [New].
type Message []byte

const (
	headerSize = 16
	// maxSize is more than servers accept, in bytes.
	maxSize = 48 << 20
)

// Read reads the next message. The error is io.EOF if r ends before it, and io.ErrUnexpectedEOF if r
// ends in it.
func Read(r io.Reader) (Message, error) {
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head)
	if size < headerSize || size > maxSize {
		return nil, fmt.Errorf("not a MongoDB message: a length of %d bytes", size)
	}
	m := append(make(Message, 0, size), head...)[:size]
	_, err := io.ReadFull(r, m[headerSize:])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// New returns an OP_MSG of a document. A reply names the ID of its request.
func New(document bson.D, id, responseTo int32) (Message, error) {
	body, err := bson.Marshal(document)
	if err != nil {
		return nil, err
	}
	start, m := wiremessage.AppendHeaderStart(nil, id, responseTo, wiremessage.OpMsg)
	m = wiremessage.AppendMsgFlags(m, 0)
	m = append(wiremessage.AppendMsgSectionType(m, wiremessage.SingleDocument), body...)
	return bsoncore.UpdateLength(m, start, int32(len(m))), nil //nolint:gosec // G115: far below 2 GiB
}

// ID returns the ID that the sender gave to the message.
func (m Message) ID() int32 {
	_, id, _, _, _, _ := wiremessage.ReadHeader(m)
	return id
}

// Command returns the name of the message's command, and the collection if the command begins with
// one, as {find: "clients"} does. For a reply it returns the name of the first field. Both are
// empty for a greeting of the old form.
func (m Message) Command() (name, collection string) {
	whole, err := m.Document()
	if err != nil {
		return "", ""
	}
	first, err := whole.IndexErr(0)
	if err != nil {
		return "", ""
	}
	collection, _ = first.Value().StringValueOK()
	return first.Key(), collection
}

// Document returns the command or reply of an OP_MSG. Sequences of documents, such as the updates
// of "update", are arrays in it, after the other fields.
func (m Message) Document() (bson.Raw, error) {
	_, _, _, opcode, rest, _ := wiremessage.ReadHeader(m)
	flags, rest, ok := wiremessage.ReadMsgFlags(rest)
	if opcode != wiremessage.OpMsg || !ok {
		return nil, fmt.Errorf("a message with the opcode %d and %d bytes", opcode, len(m))
	}
	if checksum := 4; flags&wiremessage.ChecksumPresent != 0 && len(rest) >= checksum {
		rest = rest[:len(rest)-checksum]
	}
	var body, sequences []byte
	for len(rest) > 0 && ok {
		kind, section, _ := wiremessage.ReadMsgSectionType(rest)
		switch kind {
		case wiremessage.SingleDocument:
			body, rest, ok = wiremessage.ReadMsgSectionSingleDocument(section)
		case wiremessage.DocumentSequence:
			var name string
			var documents []bsoncore.Document
			name, documents, rest, ok = wiremessage.ReadMsgSectionDocumentSequence(section)
			values := make([]bsoncore.Value, len(documents))
			for i, d := range documents {
				values[i] = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: d}
			}
			sequences = bsoncore.AppendArrayElement(sequences, name, bsoncore.BuildArray(nil, values...))
		default:
			ok = false
		}
	}
	const length, shortest = 4, 5
	if !ok || len(body) < shortest {
		return nil, errors.New("a message that is damaged, or has no body")
	}
	return bson.Raw(bsoncore.BuildDocument(nil, body[length:len(body)-1], sequences)), nil
}
