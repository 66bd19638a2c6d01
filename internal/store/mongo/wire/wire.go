// Package wire reads and makes messages of MongoDB's wire protocol, for what stands between a driver
// and a server: the proxies of tests, tools and benchmarks. It starts no server and depends on the
// driver's BSON only. Compressed messages, which the two must have agreed on, are relayed like any
// other, but have no command.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Message is one message as it is sent, header included. It comes from [Read] or [New].
type Message []byte

const (
	headerSize = 16
	flagsSize  = 4
	// maxSize is more than servers accept, in bytes.
	maxSize = 48 << 20
	// opMsg is the opcode of everything but the first greeting.
	opMsg = 2013
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
		return nil, fmt.Errorf("no message of MongoDB's protocol: a length of %d bytes", size)
	}
	m := make(Message, size)
	copy(m, head)
	_, err := io.ReadFull(r, m[headerSize:])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// New returns an OP_MSG of a document, and sequences behind it. A reply names the ID of its request.
func New(document bson.D, id, responseTo uint32, sequences ...Sequence) (Message, error) {
	body, err := bson.Marshal(document)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	m := make(Message, lengthSize, headerSize+flagsSize+1+len(body))
	m = le.AppendUint32(m, id)
	m = le.AppendUint32(m, responseTo)
	m = le.AppendUint32(m, opMsg)
	m = le.AppendUint32(m, 0) // no flags
	m = append(append(m, byte(bodySection)), body...)
	for _, s := range sequences {
		data := append([]byte(s.Name+"\x00"), slices.Concat(s.Documents...)...)
		m = append(m, byte(sequenceSection))
		m = le.AppendUint32(m, uint32(lengthSize+len(data))) //nolint:gosec // G115: far below 4 GiB
		m = append(m, data...)
	}
	le.PutUint32(m, uint32(len(m))) //nolint:gosec // G115: the same
	return m, nil
}

// ID returns the ID that the sender gave to the message.
func (m Message) ID() uint32 { return binary.LittleEndian.Uint32(m[4:]) }

// Command returns the name of the command that the message carries, and the collection if the command
// begins with one, as {find: "clients"} does. Of a reply it is the first field. Both are empty for a
// greeting of the old form.
func (m Message) Command() (name, collection string) {
	for s, err := range m.sections() {
		if err != nil || s.kind != bodySection {
			continue
		}
		first, err := bson.Raw(s.data).IndexErr(0)
		if err != nil {
			break
		}
		collection, _ = first.Value().StringValueOK()
		return first.Key(), collection
	}
	return "", ""
}

// Sequence is an array of documents that a command has beside its body, such as the updates of
// "update".
type Sequence struct {
	Name      string
	Documents []bson.Raw
}

// Contents returns what an OP_MSG carries, which shares its memory. The lengths are right; whether the
// fields of the documents are valid is not looked at.
func (m Message) Contents() (body bson.Raw, sequences []Sequence, err error) {
	for s, err := range m.sections() {
		if err != nil {
			return nil, nil, err
		}
		if s.kind == sequenceSection {
			sequence, err := sequenceOf(s.data)
			if err != nil {
				return nil, nil, err
			}
			sequences = append(sequences, sequence)
			continue
		}
		if body != nil {
			return nil, nil, errors.New("a message with two bodies")
		}
		body = s.data
	}
	if body == nil {
		return nil, nil, errors.New("a message without a body")
	}
	return body, sequences, nil
}
