package mongotest

import (
	"encoding/binary"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// message is one message of MongoDB's wire protocol, header included.
type message []byte

// maxMessage is what servers take at most.
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

// command is the name of the command that the message carries, empty for a
// greeting of the old form.
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
