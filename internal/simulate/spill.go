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

// spill is a temporary file of requests for further passes. A request takes a few bytes if one with
// the same client, user and other fields is not long ago.
type spill struct {
	file  *os.File
	w     *bufio.Writer
	buf   []byte
	known map[traffic.Request]uint64 // numbers of the requests before, without their times
	last  int64                      // time of the last request, microseconds
	count uint64
}

// maxKnown is how many requests get a number. After that the numbering starts again.
const maxKnown = 1 << 16

const spillBuffer = 1 << 18

// newSpill makes a file in the directory for temporary files.
func newSpill() (*spill, error) {
	f, err := os.CreateTemp("", "oauth-server-simulate-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	_ = os.Remove(f.Name()) // if open files cannot be removed, close removes it
	return &spill{file: f, w: bufio.NewWriterSize(f, spillBuffer), known: map[traffic.Request]uint64{}}, nil
}

// close removes the file.
func (s *spill) close() error {
	err := s.file.Close()
	if gone := os.Remove(s.file.Name()); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// add appends a request: its time, and its number, or 0 and its fields.
func (s *spill) add(r *traffic.Request) error {
	at, rest := r.At.UnixMicro(), *r
	rest.At = time.Time{}
	number, is := s.known[rest]
	s.buf = binary.AppendUvarint(binary.AppendVarint(s.buf[:0], at-s.last), number)
	s.last = at
	s.count++
	if !is {
		if len(s.known) == maxKnown {
			clear(s.known)
		}
		s.known[rest] = uint64(len(s.known) + 1)
		for _, text := range []string{r.Client, r.User, r.Grant, r.Scope, string(r.Source.AsSlice())} {
			s.buf = append(binary.AppendUvarint(s.buf, uint64(len(text))), text...)
		}
		s.buf = binary.AppendVarint(s.buf, int64(r.Lifetime))
		s.buf = append(s.buf, oneIf(r.Failed), oneIf(r.Unknown))
	}
	_, err := s.w.Write(s.buf)
	return err
}

func oneIf(is bool) byte {
	if is {
		return 1
	}
	return 0
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
	known []traffic.Request
	last  int64
	err   error
}

// Next implements [traffic.Source].
func (s *spilled) Next(r *traffic.Request) bool {
	if s.left == 0 || s.err != nil {
		return false
	}
	s.left--
	s.last += s.number()
	n, err := binary.ReadUvarint(s.r)
	s.fail(err)
	if n == 0 {
		if len(s.known) == maxKnown {
			s.known = s.known[:0]
		}
		s.known = append(s.known, s.fields())
		n = uint64(len(s.known))
	}
	if n > uint64(len(s.known)) {
		s.fail(io.ErrUnexpectedEOF)
	}
	if s.err != nil {
		return false
	}
	*r = s.known[n-1]
	r.At = time.UnixMicro(s.last)
	return true
}

// fields reads the fields of a request, without its time.
func (s *spilled) fields() (r traffic.Request) {
	var source string
	for _, text := range []*string{&r.Client, &r.User, &r.Grant, &r.Scope, &source} {
		n, err := binary.ReadUvarint(s.r)
		s.fail(err)
		if s.err == nil && n > 0 {
			b := make([]byte, n)
			_, err := io.ReadFull(s.r, b)
			s.fail(err)
			*text = string(b)
		}
	}
	r.Source, _ = netip.AddrFromSlice([]byte(source))
	r.Lifetime = time.Duration(s.number())
	r.Failed, r.Unknown = s.number() != 0, s.number() != 0
	return r
}

// number reads a signed number.
func (s *spilled) number() int64 {
	n, err := binary.ReadVarint(s.r)
	s.fail(err)
	return n
}

func (s *spilled) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("read the temporary file again: %w", err)
	}
}

// Answer implements [traffic.Source].
func (*spilled) Answer(*traffic.Request, traffic.Answer) {}

// Err implements [traffic.Source].
func (s *spilled) Err() error { return s.err }
