package events

import (
	"bytes"
	"errors"
	"io"
)

// The sizes of a single read, and of the longest line.
const (
	blockSize   = 256 << 10
	longestLine = 1 << 20
)

// bom is the byte order mark of UTF-8.
var bom = []byte("\xef\xbb\xbf")

// input splits a stream into records: lines, or the values of one JSON document. A record is valid until the next.
type input struct {
	from  io.Reader
	buf   []byte
	start int // begin of the part that is not split yet
	end   int
	err   error // why reading ended
	line  uint64
	doc   document
	table *table // its cells can have line breaks; nil: not a table
	// joined counts the lines that belong to a record begun in an earlier line.
	joined uint64
	pieces [streams]pieces
	wrap   *wrapper
}

func newInput(from io.Reader) *input {
	return &input{from: from, buf: make([]byte, blockSize), wrap: newWrapper()}
}

// fill reads more data after the unsplit part, and reports whether there was more. The buffer grows
// to the longest line and a block. When it is full, fill cannot read more, and the caller must
// check for that.
func (in *input) fill() bool {
	if in.err != nil {
		return false
	}
	if in.start > 0 && in.end > in.start && in.end == len(in.buf) {
		in.end = copy(in.buf, in.buf[in.start:in.end])
		in.start = 0
	} else if in.start == in.end {
		in.start, in.end = 0, 0
	}
	if in.end == len(in.buf) {
		in.buf = append(in.buf, make([]byte, len(in.buf))...)
	}
	for range 100 {
		n, err := in.from.Read(in.buf[in.end:])
		in.end += n
		if err != nil {
			in.err = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	in.err = io.ErrNoProgress
	return false
}

// head returns the beginning of the stream, as far as it fits into the buffer, without taking it.
func (in *input) head() []byte {
	for in.end-in.start < blockSize && in.fill() {
	}
	return in.buf[in.start:min(in.end, in.start+blockSize)]
}

// next returns the next record and the number of its first line.
func (in *input) next() (record []byte, line uint64, p *problem, ok bool) {
	next := in.nextLine
	if in.doc.on {
		next = in.nextValue
	}
	for {
		in.wrap.stamp = in.wrap.stamp[:0]
		if record, line, p, ok = next(); !ok {
			return in.unfinished()
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

func (in *input) nextLine() (record []byte, line uint64, p *problem, ok bool) {
	seen := 0
	for {
		if i := bytes.IndexByte(in.buf[in.start+seen:in.end], '\n'); i >= 0 {
			record = in.buf[in.start : in.start+seen+i]
			in.start += seen + i + 1
			in.line++
			if len(record) > longestLine {
				return nil, in.line, errLong, true
			}
			if in.table != nil && bytes.IndexByte(record, '"') >= 0 {
				record, line = in.joinCells(len(record))
				return record, line, nil, true
			}
			return bytes.TrimSuffix(record, []byte{'\r'}), in.line, nil, true
		}
		if seen = in.end - in.start; seen > longestLine {
			in.line++
			in.passLine()
			return nil, in.line, errLong, true
		}
		if !in.fill() {
			return in.last()
		}
	}
}

// joinCells takes the lines after a line of n bytes, if a cell of it ends in one of them (RFC 4180
// 2.6). It takes the line alone if it is broken: no cell ends that way, or the result would have
// another number of columns than the table.
func (in *input) joinCells(n int) (record []byte, line uint64) {
	line = in.line
	in.start -= n + 1
	end := in.table.recordEnd(in.buf[in.start:in.end])
	for rest := in.end - in.start; (end == endless || end == rest) && rest <= longestLine && in.fill(); rest = in.end - in.start {
		end = in.table.recordEnd(in.buf[in.start:in.end])
	}
	if end < n || end > longestLine {
		end = n
	}
	record = in.buf[in.start : in.start+end]
	in.start = min(in.start+end+1, in.end)
	below := uint64(bytes.Count(record, []byte{'\n'})) //nolint:gosec // no negative count
	in.line += below
	in.joined += below
	return bytes.TrimSuffix(record, []byte{'\r'}), line
}

// passLine skips the rest of a line that is too long.
func (in *input) passLine() {
	for {
		if i := bytes.IndexByte(in.buf[in.start:in.end], '\n'); i >= 0 {
			in.start += i + 1
			return
		}
		in.start = in.end
		if !in.fill() {
			return
		}
	}
}

// last returns the text after the last line break, and then the problem that ended the stream
// early. In that case the text is part of the problem, because half a line is not read.
func (in *input) last() (record []byte, line uint64, p *problem, ok bool) {
	rest := in.buf[in.start:in.end]
	in.start = in.end
	if p := problemOf(in.err); p != nil {
		in.err = io.EOF
		in.line++
		return nil, in.line, p, true
	}
	if len(rest) == 0 {
		return nil, 0, nil, false
	}
	in.line++
	return bytes.TrimSuffix(rest, []byte{'\r'}), in.line, nil, true
}

// problemOf returns the problem that ended a stream; nil at its normal end.
func problemOf(err error) *problem {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, errFile):
		return errReading
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errTruncated
	}
	return errDamaged
}
