package mongotest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// message is one message of MongoDB's wire protocol, header included.
type message []byte

// maxMessage is the largest message that servers accept, in bytes.
const maxMessage = 48 << 20

// opMsg is the opcode of everything but the first greeting.
const opMsg = 2013

func readMessage(r io.Reader) (message, error) {
	head := make([]byte, 16)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head)
	if size < 16 || size > maxMessage {
		return nil, errors.New("no message of MongoDB's protocol")
	}
	m := make(message, size)
	copy(m, head)
	_, err := io.ReadFull(r, m[16:])
	return m, err
}

// command returns the name of the command that the message carries. It is empty for a greeting of
// the old form.
func (m message) command() string {
	const flags, kind = 4, 1
	body := m[16:]
	if binary.LittleEndian.Uint32(m[12:]) != opMsg || len(body) <= flags+kind {
		return ""
	}
	first, err := bson.Raw(body[flags+kind:]).IndexErr(0)
	if err != nil {
		return ""
	}
	return first.Key()
}

// document returns the whole command. The sequences of documents that the message carries are
// arrays in it, behind the other fields. It is nil for a greeting of the old form.
func (m message) document() (bson.Raw, error) {
	if m.command() == "" {
		return nil, nil
	}
	var command bson.D
	for rest := m[16+4:]; len(rest) > 0; {
		kind, section := rest[0], rest[1:]
		size := int(binary.LittleEndian.Uint32(section)) // of the document, or of the whole sequence
		if size < 4 || size > len(section) {
			return nil, fmt.Errorf("a section of %d bytes, of which there are %d", size, len(section))
		}
		section, rest = section[:size], section[size:]
		var err error
		switch kind {
		case 0:
			err = appendFields(&command, bson.Raw(section))
		case 1:
			err = appendSequence(&command, section[4:])
		default:
			err = fmt.Errorf("a section of kind %d", kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return bson.Marshal(command)
}

func appendFields(command *bson.D, body bson.Raw) error {
	elements, err := body.Elements()
	for _, e := range elements {
		*command = append(*command, bson.E{Key: e.Key(), Value: e.Value()})
	}
	return err
}

// appendSequence reads an identifier and the documents that follow it.
func appendSequence(command *bson.D, section []byte) error {
	name, documents, ok := strings.Cut(string(section), "\x00")
	if !ok {
		return errors.New("a sequence without a name")
	}
	var list bson.A
	for rest := []byte(documents); len(rest) > 0; {
		size := binary.LittleEndian.Uint32(rest)
		if int64(size) > int64(len(rest)) {
			return errors.New("a sequence ends in a document")
		}
		list = append(list, bson.Raw(rest[:size]))
		rest = rest[size:]
	}
	*command = append(*command, bson.E{Key: name, Value: list})
	return nil
}
