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
	pieces [streams]pieces
	wrap   *wrapper
}

func newInput(from io.Reader) *input {
	in := &input{Reader: bufio.NewReaderSize(from, longestLine+1), wrap: newWrapper()}
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
		if stream == noStream || !goesOn && in.pieces[stream].line == 0 {
			return record, line, p, true
		}
		if line, p = in.join(&in.pieces[stream], record, line); !goesOn {
			record = in.pieces[stream].text
			in.pieces[stream].line = 0
			return record, line, p, true
		}
	}
}

// pieces has the pieces of a line. A container runtime writes them one after the other, between
// lines of the other stream.
type pieces struct {
	text []byte
	line uint64 // number of the first line; 0: no pieces
}

// join appends a piece to the others, and returns the line of the first.
func (in *input) join(all *pieces, record []byte, line uint64) (first uint64, p *problem) {
	if all.line == 0 {
		all.text, all.line = all.text[:0], line
	} else {
		in.joined++
	}
	if len(all.text) <= longestLine {
		all.text = append(all.text, record...)
	}
	if len(all.text) > longestLine {
		p = errLong
	}
	return all.line, p
}

// unfinished returns a line without its last piece, which the log does not have.
func (in *input) unfinished() (record []byte, line uint64, p *problem, ok bool) {
	for stream := range in.pieces {
		if all := &in.pieces[stream]; all.line > 0 {
			if line, all.line = all.line, 0; len(all.text) > longestLine {
				return nil, line, errLong, true
			}
			return all.text, line, nil, true
		}
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
