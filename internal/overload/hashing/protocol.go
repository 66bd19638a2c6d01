package hashing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"oauth-server/internal/secret"
)

// Server and child exchange frames: the length of the body in four bytes, and the body. The first
// frame from the child is [ready], or the reason why it is not ready. After that each frame to it
// is a task, and each frame from it a result.
const (
	maxFrame    = 4096 // bytes of a body; a task has at most 1,024 for the password, 512 for a hash and 64 for a salt
	frameHeader = 4
	taskHeader  = 4 + 4 + 1 + 1 + 1 + 2
)

// ready is the greeting of a child that can compute. The number is the protocol version.
const ready = "oauth-server hashing 1"

var (
	errFrame = errors.New("hashing: frame is empty or too long")
	errTask  = errors.New("hashing: malformed task")
)

// appendFrame appends a frame with that body.
func appendFrame(b, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(body))) //nolint:gosec // G115: at most maxFrame
	return append(b, body...)
}

// readFrame reads a frame into buf, which has maxFrame bytes, and returns its body. The error is
// io.EOF at the end of the input.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(header[:])
	if n == 0 || n > maxFrame {
		return nil, errFrame
	}
	_, err := io.ReadFull(r, buf[:n])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("hashing: read a frame: %w", err)
	}
	return buf[:n], nil
}

// appendTask appends the frame of a task: memory, passes, lanes, length of the key, lengths of salt
// and foreign hash; then salt, foreign hash and password.
func appendTask(b []byte, t secret.Task) []byte {
	body := taskHeader + len(t.Salt) + len(t.Foreign) + len(t.Password)
	//nolint:gosec // G115: Task.Check bounds all of them
	b = binary.BigEndian.AppendUint32(b, uint32(body))
	b = binary.BigEndian.AppendUint32(b, t.Memory)
	b = binary.BigEndian.AppendUint32(b, t.Passes)
	b = append(b, t.Lanes, uint8(t.Length), uint8(len(t.Salt)))  //nolint:gosec // G115: as above
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.Foreign))) //nolint:gosec // G115: as above
	b = append(append(append(b, t.Salt...), t.Foreign...), t.Password...)
	return b
}

// parseTask reads the body of a task, and refuses a task that is out of bounds. It keeps no
// reference to body.
func parseTask(body []byte) (secret.Task, error) {
	if len(body) < taskHeader {
		return secret.Task{}, errTask
	}
	t := secret.Task{
		Memory: binary.BigEndian.Uint32(body),
		Passes: binary.BigEndian.Uint32(body[4:]),
		Lanes:  body[8],
		Length: int(body[9]),
	}
	salt, foreign, rest := int(body[10]), int(binary.BigEndian.Uint16(body[11:])), body[taskHeader:]
	if len(rest) < salt+foreign {
		return secret.Task{}, errTask
	}
	t.Salt = append([]byte(nil), rest[:salt]...)
	t.Foreign, t.Password = string(rest[salt:salt+foreign]), string(rest[salt+foreign:])
	if err := t.Check(); err != nil {
		return secret.Task{}, fmt.Errorf("%w: %w", errTask, err)
	}
	return t, nil
}
