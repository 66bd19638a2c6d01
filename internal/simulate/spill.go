package simulate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// spill is a temporary file of requests for further passes. Most requests take about 10 bytes.
type spill struct {
	file  *os.File
	w     *bufio.Writer
	buf   []byte
	names map[string]uint64
	last  int64 // time of the last request, microseconds
	count uint64
}

// maxNames is how many names get a number. After that the numbering starts again.
const maxNames = 1 << 16

// The flags of a request in the file.
const (
	hasUser byte = 1 << iota
	hasGrant
	hasSource
	hasScope
	hasLifetime
	hasFailed
	hasUnknown
)

const spillBuffer = 1 << 18

// newSpill makes a file in the directory for temporary files.
func newSpill() (*spill, error) {
	f, err := os.CreateTemp("", "oauth-server-simulate-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	_ = os.Remove(f.Name()) // if open files cannot be removed, close removes it
	return &spill{file: f, w: bufio.NewWriterSize(f, spillBuffer), names: map[string]uint64{}}, nil
}

// close removes the file.
func (s *spill) close() error {
	err := s.file.Close()
	if gone := os.Remove(s.file.Name()); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// add appends a request.
func (s *spill) add(r *traffic.Request) error {
	at := r.At.UnixMicro()
	s.buf = binary.AppendUvarint(s.buf[:0], uint64(at-s.last)) //nolint:gosec // modulo is meant: the first may be before 1970
	s.last = at
	flags := len(s.buf)
	s.buf = append(s.buf, 0)
	set := func(is bool, flag byte) bool {
		if is {
			s.buf[flags] |= flag
		}
		return is
	}
	s.name(r.Client)
	if set(r.User != "", hasUser) {
		s.name(r.User)
	}
	if set(r.Grant != "", hasGrant) {
		s.name(r.Grant)
	}
	if set(r.Source.IsValid(), hasSource) {
		s.name(string(r.Source.Unmap().AsSlice()))
	}
	if set(r.Scope != "", hasScope) {
		s.name(r.Scope)
	}
	if set(r.Lifetime != 0, hasLifetime) {
		s.buf = binary.AppendVarint(s.buf, int64(r.Lifetime))
	}
	set(r.Failed, hasFailed)
	set(r.Unknown, hasUnknown)
	s.count++
	_, err := s.w.Write(s.buf)
	return err
}

// name appends the number of a name. For a name without a number it appends 0, the length and the
// name.
func (s *spill) name(name string) {
	if n, known := s.names[name]; known {
		s.buf = binary.AppendUvarint(s.buf, n)
		return
	}
	s.buf = binary.AppendUvarint(append(s.buf, 0), uint64(len(name)))
	s.buf = append(s.buf, name...)
	if len(s.names) == maxNames {
		clear(s.names)
	}
	s.names[name] = uint64(len(s.names) + 1)
}

// requests returns the added requests, from the beginning. Only one reader can be used at a time.
func (s *spill) requests() (*spilled, error) {
	if err := s.w.Flush(); err != nil {
		return nil, err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return &spilled{r: bufio.NewReaderSize(s.file, spillBuffer), left: s.count}, nil
}

// spilled yields the requests of a spill.
type spilled struct {
	r     *bufio.Reader
	left  uint64
	names []string
	last  int64
	err   error
}

// Next implements [traffic.Source].
func (s *spilled) Next(r *traffic.Request) bool {
	if s.left == 0 || s.err != nil {
		return false
	}
	s.left--
	s.last += int64(s.number()) //nolint:gosec // modulo is meant
	flags, err := s.r.ReadByte()
	s.fail(err)
	*r = traffic.Request{At: time.UnixMicro(s.last), Client: s.name(), Failed: flags&hasFailed != 0, Unknown: flags&hasUnknown != 0}
	if flags&hasUser != 0 {
		r.User = s.name()
	}
	if flags&hasGrant != 0 {
		r.Grant = s.name()
	}
	if flags&hasSource != 0 {
		r.Source, _ = netip.AddrFromSlice([]byte(s.name()))
	}
	if flags&hasScope != 0 {
		r.Scope = s.name()
	}
	if flags&hasLifetime != 0 {
		life, err := binary.ReadVarint(s.r)
		s.fail(err)
		r.Lifetime = time.Duration(life)
	}
	return s.err == nil
}

func (s *spilled) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("read the temporary file again: %w", err)
	}
}

func (s *spilled) number() uint64 {
	n, err := binary.ReadUvarint(s.r)
	s.fail(err)
	return n
}

func (s *spilled) name() string {
	if n := s.number(); n > 0 {
		if n > uint64(len(s.names)) {
			s.fail(io.ErrUnexpectedEOF)
			return ""
		}
		return s.names[n-1]
	}
	b := make([]byte, s.number())
	_, err := io.ReadFull(s.r, b)
	s.fail(err)
	if len(s.names) == maxNames {
		s.names = s.names[:0]
	}
	s.names = append(s.names, string(b))
	return s.names[len(s.names)-1]
}

// Answer implements [traffic.Source].
func (*spilled) Answer(*traffic.Request, traffic.Answer) {}

// Err implements [traffic.Source].
func (s *spilled) Err() error { return s.err }
