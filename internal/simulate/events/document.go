package events

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// document splits a stream of JSON values that are not on one line each: the responses of APIs,
// which are arrays, or objects with an array in one member, compact or indented; and objects
// without separators.
type document struct {
	*jsontext.Decoder
	from *counter
	// members are the names of the members around the records, from the outside in. Arrays can be
	// around any of them.
	members []string
	pairs   bool   // the records are arrays, as in Loki
	objects int    // that are around the next value
	missing bool   // the innermost of them had no such member yet
	begin   uint64 // its first line
	failed  bool   // the rest is not valid JSON
}

// lax accepts what loggers write. The records are parsed again.
var lax = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// arrays are the members in which APIs return arrays, and the first byte of their elements: of
// Microsoft Graph, Azure Monitor, this server, CloudWatch, Loki, the event hooks of Okta, and
// Elasticsearch.
var arrays = map[string]jsontext.Kind{
	"/value": '{', "/records": '{', "/entries": '{', "/logEvents": '{', "/events": '{', "/data/events": '{', "/hits/hits": '{',
	"/values": '[', "/streams/values": '[', "/data/result/values": '[',
}

// arrayOf returns the path of the member with the array if the value at the beginning of head is an
// object with one. Loki has it in each element of an array.
func arrayOf(head []byte) (path string) {
	d := jsontext.NewDecoder(bytes.NewReader(head), lax...)
	for {
		token, err := d.ReadToken()
		if err != nil || d.StackDepth() == 0 {
			return ""
		}
		path = strings.ReplaceAll(string(d.StackPointer()), "/0", "")
		if first := arrays[path]; token.Kind() == '[' && first != 0 && d.PeekKind() == first {
			return path
		}
	}
}

// documentOf returns the document in the stream. It returns nil if the stream is to be split into
// lines.
func documentOf(in *input) *document {
	head := in.head()
	i := space(head, 0)
	path := arrayOf(head)
	switch {
	case i == len(head):
		return nil
	case head[i] == '[':
		if next := space(head, i+1); next < len(head) && head[next] != '{' && head[next] != ']' && path == "" {
			return nil
		}
	case head[i] != '{' || path == "" && !isSplit(head[i:]):
		return nil
	}
	c := &counter{from: in.Reader, left: math.MaxInt}
	d := &document{Decoder: jsontext.NewDecoder(c, lax...), from: c, pairs: arrays[path] == '['}
	if path != "" {
		d.members = strings.Split(path[1:], "/")
	}
	return d
}

// isSplit reports whether the object at the beginning of head has several lines, or shares its line
// with others.
func isSplit(head []byte) bool {
	first, rest, more := bytes.Cut(head, []byte{'\n'})
	if end := passOver(first, 0); end > 0 {
		next := space(first, end)
		return next < len(first) && first[next] == '{'
	}
	// The first line of a log may be cut off. The lines after it then begin an object.
	next := space(rest, 0)
	return more && (next == len(rest) || rest[next] != '{')
}

// next returns the next record and its first line. A value that is not valid JSON ends the document.
func (d *document) next() (record []byte, line uint64, p *problem, ok bool) {
	for !d.failed {
		var err error
		kind := d.PeekKind()
		around, length := d.StackIndex(d.StackDepth())
		isPair := d.pairs && around == '[' && d.objects == len(d.members)
		switch {
		case kind == '}' && d.missing:
			d.missing = false
			return nil, d.begin, errNoArray, true
		case kind == '{' && d.objects < len(d.members):
			d.objects++
			d.missing, d.begin = true, d.nextLine()
			_, err = d.ReadToken()
		case kind == '}':
			d.objects--
			_, err = d.ReadToken()
		case around == '{' && length%2 == 0:
			err = d.name()
		case kind == '[' && !isPair || kind == ']':
			_, err = d.ReadToken()
		default:
			return d.record()
		}
		if err != nil {
			d.failed = true
			return nil, d.nextLine(), d.from.problem(), true
		}
	}
	return nil, 0, nil, false
}

// name reads the name of a member, and skips its value unless the records are in it.
func (d *document) name() error {
	name, err := d.ReadToken()
	if err == nil && name.String() == d.members[d.objects-1] {
		d.missing = false
		return nil
	}
	return errors.Join(err, d.SkipValue())
}

// record reads a value.
func (d *document) record() (record []byte, line uint64, p *problem, ok bool) {
	line = d.nextLine()
	d.from.left = longestLine
	record, err := d.ReadValue()
	d.from.left = math.MaxInt
	switch {
	case errors.Is(err, errTooMuch):
		p, err = errLong, d.SkipValue()
	case err == nil && len(record) > longestLine:
		p = errLong
	case err == nil && record[0] != '{' && record[0] != '[':
		p = errNoObject
	}
	if err != nil {
		d.failed = true
		return nil, line, d.from.problem(), err != io.EOF //nolint:errorlint // another error can be about the end
	}
	return record, line, p, true
}

// nextLine returns the first line of the next value.
func (d *document) nextLine() uint64 {
	b := d.UnreadBuffer()
	return d.from.lineAt(d.InputOffset() + int64(len(b)-len(bytes.TrimLeft(b, " \t\r\n,:"))))
}

// Problems of documents.
var (
	errNoArray = &problem{wholeLine, "has no records at the path of the first object"}
	errTooMuch = errors.New("too much")
)

// counter counts the lines of a stream.
type counter struct {
	from   io.Reader
	err    error // why the stream ended
	left   int   // so many bytes can be read before errTooMuch
	read   int64
	line   uint64
	breaks []int64 // offsets of the line breaks that line does not count yet
}

// Read implements [io.Reader].
func (c *counter) Read(p []byte) (n int, err error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err = c.from.Read(p[:min(len(p), c.left)])
	if len(c.breaks) > longestLine { // a value that is skipped: lines below are a few off
		c.line += uint64(len(c.breaks))
		c.breaks = nil
	}
	for i, b := range p[:n] {
		if b == '\n' {
			c.breaks = append(c.breaks, c.read+int64(i))
		}
	}
	c.read, c.left, c.err = c.read+int64(n), c.left-n, err
	return n, err
}

// lineAt returns the number of the line at an offset, which is not before the last one.
func (c *counter) lineAt(offset int64) uint64 {
	for len(c.breaks) > 0 && c.breaks[0] < offset {
		c.breaks = c.breaks[1:]
		c.line++
	}
	return c.line + 1
}

// problem returns the problem of a value that cannot be read.
func (c *counter) problem() *problem {
	if p := problemOf(c.err); p != nil {
		return p
	}
	return errJSON
}
