package events

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// The size of the beginning that is examined, and of the longest line.
const (
	headSize    = 256 << 10
	longestLine = 1 << 20
)

// bom is the byte order mark of UTF-8.
var bom = []byte("\xef\xbb\xbf")

// input splits a stream into records: lines, or the values of one JSON document. A record is valid until the next.
type input struct {
	*bufio.Reader
	ended bool // nothing more can be read
	line  uint64
	doc   *document // nil: the records are lines
	table *table    // its cells can have line breaks; nil: not a table
	// joined counts the lines that belong to a record begun in an earlier line.
	joined uint64
	pieces map[string]*pieces // by the stream of a container
	wrap   *wrapper
}

func newInput(from io.Reader) *input {
	in := &input{Reader: bufio.NewReaderSize(from, longestLine+1), pieces: map[string]*pieces{}, wrap: newWrapper()}
	if bytes.HasPrefix(in.head(), bom) {
		_, _ = in.Discard(len(bom))
	}
	return in
}

// head returns the beginning of the stream, without taking it.
func (in *input) head() []byte {
	head, _ := in.Peek(headSize) // next reports the error
	return head
}

// next returns the next record and the number of its first line.
func (in *input) next() (record []byte, line uint64, p *problem, ok bool) {
	next := in.nextLine
	if in.doc != nil {
		next = in.doc.next
	}
	for {
		in.wrap.stamp = in.wrap.stamp[:0]
		if in.ended {
			return in.unfinished()
		}
		if record, line, p, ok = next(); !ok {
			in.ended = true
			continue
		}
		record = bytes.TrimPrefix(record, bom) // concatenated files have one in the middle
		record, stream, goesOn := in.wrap.container(record)
		all := in.pieces[stream]
		if all == nil && !goesOn {
			return record, line, p, true
		}
		if all == nil {
			all = &pieces{line: line}
			in.pieces[stream] = all
		} else {
			in.joined++
		}
		if all.add(record); !goesOn {
			delete(in.pieces, stream)
			return all.text, all.line, all.problem(), true
		}
	}
}

// pieces has the pieces of a line. A container runtime writes them one after the other, between
// lines of the other stream.
type pieces struct {
	text []byte
	line uint64 // number of the first line
}

func (all *pieces) add(piece []byte) {
	if len(all.text) <= longestLine {
		all.text = append(all.text, piece...)
	}
}

func (all *pieces) problem() *problem {
	if len(all.text) > longestLine {
		return errLong
	}
	return nil
}

// unfinished returns a line without its last piece, which the log does not have.
func (in *input) unfinished() (record []byte, line uint64, p *problem, ok bool) {
	for stream, all := range in.pieces {
		delete(in.pieces, stream)
		return all.text, all.line, all.problem(), true
	}
	return nil, 0, nil, false
}

// nextLine returns the next line. Where the stream ends early, half a line is a part of the problem.
func (in *input) nextLine() (record []byte, line uint64, p *problem, ok bool) {
	record, err := in.peekLine()
	in.line++
	switch line = in.line; {
	case len(record) > longestLine:
		for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
			_, err = in.ReadSlice('\n')
		}
		return nil, line, errLong, true
	case err != nil:
		_, _ = in.Discard(len(record))
		in.ended = true
		if p = problemOf(err); p != nil {
			return nil, line, p, true
		}
		return record, line, nil, len(record) > 0
	}
	n := len(record)
	if in.table != nil && bytes.IndexByte(record, '"') >= 0 {
		n = in.recordLength(n)
		record, _ = in.Peek(n)
		below := uint64(bytes.Count(record[:n-1], []byte{'\n'})) //nolint:gosec // G115: no negative count
		in.line += below
		in.joined += below
	}
	_, _ = in.Discard(n)
	return bytes.TrimSuffix(bytes.TrimSuffix(record, []byte{'\n'}), []byte{'\r'}), line, nil, true
}

// peekLine returns the next line with its line break, without taking it. A line that is too long is
// cut off. The error is why a line has no break.
func (in *input) peekLine() (line []byte, err error) {
	for seen := 0; err == nil && seen <= longestLine; {
		line, _ = in.Peek(in.Buffered())
		if i := bytes.IndexByte(line[seen:], '\n'); i >= 0 {
			return line[:seen+i+1], nil
		}
		seen = len(line)
		_, err = in.Peek(seen + 1)
	}
	line, _ = in.Peek(in.Buffered()) // it may have moved
	return line, err
}

// recordLength returns the length of the record that begins with a line of n bytes, with its line
// break.
func (in *input) recordLength(n int) int {
	for {
		b, _ := in.Peek(in.Buffered())
		if end := in.table.recordEnd(b); end > 0 {
			return end
		}
		if _, err := in.Peek(len(b) + 1); err != nil {
			b, _ = in.Peek(in.Buffered()) // it may have moved
			if len(b) <= longestLine && in.table.recordEnd(append(bytes.Clone(b), '\n')) > len(b) {
				return len(b)
			}
			return n
		}
	}
}

// problemOf returns the problem that ended a stream; nil at its normal end.
func problemOf(err error) *problem {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errTruncated
	case err == nil || errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, errFile):
		return errReading
	}
	return errDamaged
}
