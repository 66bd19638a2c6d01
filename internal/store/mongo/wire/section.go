package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"
)

type kind byte

const (
	bodySection     kind = 0
	sequenceSection kind = 1
)

// section is a part of an OP_MSG. Its data begins with its length: that of the document which the body
// is, or of the whole sequence.
type section struct {
	kind kind
	data []byte
}

// sections yields the sections of an OP_MSG, up to the first error.
func (m Message) sections() iter.Seq2[section, error] {
	return func(yield func(section, error) bool) {
		rest, err := m.payload()
		for err == nil && len(rest) > 0 {
			s := section{kind: kind(rest[0])}
			if s.data, rest, err = cut(rest[1:]); err != nil {
				break
			}
			if s.kind != bodySection && s.kind != sequenceSection {
				err = fmt.Errorf("a section of kind %d", s.kind)
				break
			}
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(section{}, err)
		}
	}
}

// payload returns the bytes of all sections.
func (m Message) payload() ([]byte, error) {
	if opcode := binary.LittleEndian.Uint32(m[12:]); opcode != opMsg {
		return nil, fmt.Errorf("a message with the opcode %d", opcode)
	}
	const checksumPresent, checksumSize = 1, 4
	rest := m[headerSize:]
	if len(rest) < flagsSize {
		return nil, errors.New("a message without flags")
	}
	flags, rest := binary.LittleEndian.Uint32(rest), rest[flagsSize:]
	if flags&checksumPresent != 0 {
		if len(rest) < checksumSize {
			return nil, errors.New("a message without its checksum")
		}
		rest = rest[:len(rest)-checksumSize]
	}
	return rest, nil
}

func sequenceOf(data []byte) (s Sequence, err error) {
	name, rest, ok := bytes.Cut(data[lengthSize:], []byte{0})
	if !ok {
		return Sequence{}, errors.New("a sequence without a name")
	}
	s.Name = string(name)
	for len(rest) > 0 {
		var document bson.Raw
		if document, rest, err = cut(rest); err != nil {
			return Sequence{}, err
		}
		s.Documents = append(s.Documents, document)
	}
	return s, nil
}

const lengthSize = 4

// cut splits off what begins with its own length.
func cut(b []byte) (first, rest []byte, err error) {
	const shortest = lengthSize + 1 // an empty document, or a sequence with an empty name
	if len(b) < shortest {
		return nil, nil, fmt.Errorf("%d bytes, which are no document", len(b))
	}
	size := binary.LittleEndian.Uint32(b)
	if size < shortest || uint64(size) > uint64(len(b)) {
		return nil, nil, fmt.Errorf("a length of %d bytes, of which there are %d", size, len(b))
	}
	return b[:size], b[size:], nil
}
